"""Docker and Podman: one container a node."""
