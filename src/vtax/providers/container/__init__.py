"""What clusters of containers have in common: one container a node, from the same root file system."""
