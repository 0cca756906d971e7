"""The bare machine: the root file system entered by chroot, control groups as nodes."""
