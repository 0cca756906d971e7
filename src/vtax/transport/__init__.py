"""How commands reach nodes: on this machine (`local`) or through the system's OpenSSH (`ssh`)."""
