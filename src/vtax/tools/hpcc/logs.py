"""Where runs of hpcc and of HPL alone begin and end in logs."""

from __future__ import annotations


def starts(line: str) -> bool:
    return "HPC Challenge Benchmark version" in line


def ends(line: str) -> bool:
    return "End of HPC Challenge tests." in line


def starts_hpl(line: str) -> bool:
    return line.startswith("HPLinpack ") and "benchmark" in line and "input file" not in line
