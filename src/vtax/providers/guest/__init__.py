"""What clusters of virtual machines have in common, whatever runs them."""
