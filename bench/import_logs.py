"""How fast and how large an import is: 10 MB and 100 MB of mixed logs, and 400 small ones, made of recorded outputs.

Run it as `python bench/import_logs.py [MEGABYTES ...] [--files COUNT]`. Prints seconds of CPU and wall time, and the
largest memory of one process.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
TOOLS = ("hpcc", "hpl", "stress-ng", "sysbench-cpu", "sysbench-memory", "sysbench-fileio", "iozone", "iperf3", "ping")
REPEATED = 4  # runs of the same output in one file
SMALLEST = 1500  # bytes of an output: of smaller ones, files and not text would be measured


def recorded() -> list[bytes]:
    """The outputs that files are made of."""
    files = sorted(
        path for tool in TOOLS for path in (DATA / tool).glob("*/*") if path.suffix not in (".toml", ".json")
    )
    return [path.read_bytes() for path in files if path.stat().st_size > SMALLEST]


def corpus(folder: Path, size: int) -> None:
    """Write files of mixed logs, about `size` bytes together. Every file begins with a different line."""
    texts, written, count = recorded(), 0, 0
    while written < size:
        written += put(folder, count, texts[count % len(texts)], REPEATED)
        count += 1


def small_files(folder: Path, count: int) -> None:
    """Write so many files with one output each."""
    texts = recorded()
    for number in range(count):
        put(folder, number, texts[number % len(texts)], 1)


def put(folder: Path, number: int, text: bytes, repeated: int) -> int:
    """Write a file; its size."""
    place = folder / f"set{number // 500}" / f"log{number}.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    return place.write_bytes(f"note {number}\n".encode() + (text.rstrip(b"\n") + b"\n") * repeated)


def measured(write: Callable[[Path], None]) -> tuple[float, float, float]:
    """Seconds of wall time and of CPU time, and the largest resident set in MiB, of one import."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "logs")
        program = "from vtax.cli.main import main; main()"
        argv = [sys.executable, "-c", program, "import", str(folder / "logs"), "-e", "x", "--into", str(folder / "c")]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s, after.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("megabytes", nargs="*", type=int)
    parser.add_argument("--files", type=int, default=0)
    asked = parser.parse_args()
    sizes = asked.megabytes or ([] if asked.files else [10, 100])
    cases = [(f"{size} MB", partial(corpus, size=size * 10**6)) for size in sizes]
    files = asked.files or (0 if asked.megabytes else 400)
    cases += [(f"{files} files", partial(small_files, count=files))] if files else []
    print("what        wall s  CPU s   MiB")
    for what, write in cases:
        wall_s, cpu_s, memory = measured(write)
        print(f"{what:<11} {wall_s:<7.1f} {cpu_s:<7.1f} {memory:.0f}", flush=True)


if __name__ == "__main__":
    main()
