"""ping of iputils."""
