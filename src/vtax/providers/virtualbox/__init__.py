"""Virtual machines under VirtualBox."""
