"""Where runs of hpcc and of HPL alone begin and end in logs."""

from __future__ import annotations

import re

HPCC = re.compile(r"\bHPC Challenge Benchmark version \d{1,3}\.\d")
HPL = re.compile(r"^HPLinpack \d{1,2}\.\d.{0,60}benchmark")
NVIDIA = re.compile(r"^HPL-NVIDIA \d{1,2}\.\d.{0,60}benchmark")


def starts(line: str) -> bool:
    return "HPC Challenge Benchmark version" in line and HPCC.search(line) is not None


def ends(line: str) -> bool:
    return "End of HPC Challenge tests." in line


def starts_hpl(line: str) -> bool:
    return line.startswith("HPL") and HPL.match(line) is not None


def starts_nvidia(line: str) -> bool:
    """The title of NVIDIA's build, below which some versions print HPL's own."""
    return line.startswith("HPL-N") and NVIDIA.match(line) is not None


def ends_hpl(line: str) -> bool:
    return line.startswith("End of Tests.")
