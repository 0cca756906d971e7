"""command: a command of a user's own, with metrics read from what it prints."""
