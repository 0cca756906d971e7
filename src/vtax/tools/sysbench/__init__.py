"""sysbench: cpu, memory, fileio."""
