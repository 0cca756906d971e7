"""Machines that Slurm gives: one allocation for each table of the study, and its nodes reached by `srun`."""
