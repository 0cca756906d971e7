"""How fast and how large an import is: 10 MB and 100 MB of mixed logs, made of recorded outputs.

Run it as `python bench/import_logs.py [MEGABYTES ...]`. Prints seconds of CPU and wall time, and the largest memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
TOOLS = ("hpcc", "hpl", "stress-ng", "sysbench-cpu", "sysbench-memory", "sysbench-fileio", "iozone", "iperf3", "ping")
REPEATED = 4  # runs of the same output in one file
SMALLEST = 1500  # bytes of an output: of smaller ones, files and not text would be measured


def corpus(folder: Path, size: int) -> int:
    """Write files of mixed logs, about `size` bytes together. Every file begins with a different line."""
    files = sorted(
        path for tool in TOOLS for path in (DATA / tool).glob("*/*") if path.suffix not in (".toml", ".json")
    )
    texts = [path.read_bytes() for path in files if path.stat().st_size > SMALLEST]
    written = count = 0
    while written < size:
        text = texts[count % len(texts)]
        place = folder / f"set{count // 500}" / f"log{count}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(f"note {count}\n".encode() + (text.rstrip(b"\n") + b"\n") * REPEATED)
        written += place.stat().st_size
        count += 1
    return written


def measured(megabytes: int) -> tuple[float, float, float]:
    """Seconds of wall time and of CPU time, and the largest resident set in MiB, of one import."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpus(folder / "logs", megabytes * 10**6)
        program = "from vtax.cli.main import main; main()"
        argv = [sys.executable, "-c", program, "import", str(folder / "logs"), "-e", "x", "--into", str(folder / "c")]
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        wall_s, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, cpu_s, after.ru_maxrss / 1024


def main() -> None:
    print("MB   wall s  CPU s   MiB")
    for megabytes in [int(word) for word in sys.argv[1:]] or [10, 100]:
        wall_s, cpu_s, memory = measured(megabytes)
        print(f"{megabytes:<4} {wall_s:<7.1f} {cpu_s:<7.1f} {memory:.0f}")


if __name__ == "__main__":
    main()
