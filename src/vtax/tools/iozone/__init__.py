"""iozone: file operations."""
