"""Containers under Docker."""
