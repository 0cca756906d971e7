"""Virtual machines under QEMU: one process a node, no daemon, from the same root file system as every environment."""
