"""How commands reach nodes: beside us (`local`) or through the system's OpenSSH (`ssh`)."""
