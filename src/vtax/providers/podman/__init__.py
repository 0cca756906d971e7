"""Containers under Podman, with or without root."""
