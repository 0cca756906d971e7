"""HPC Challenge, and HPL alone (xhpl), both from the source of hpcc."""
