"""Whether vtax-run's wall time agrees with hyperfine's, for commands of 10 ms to 10 s on this machine.

Both measure the same commands, in turns and in random order within each round, hyperfine without a shell (-N). What
counts is the median ratio of a round, since neighbours in time are disturbed alike. Commands that sleep show what
starting and waiting costs, commands that count show the same on a busy CPU. Needs gcc and hyperfine (Debian's package).
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

AGREE = 0.02  # of the median
ROUNDS = {0.01: 41, 0.1: 21, 1.0: 15, 10.0: 5}
BURN = """
#include <stdlib.h>
int main(int argc, char **argv) {
  volatile unsigned long left = argc > 1 ? strtoul(argv[1], 0, 10) : 0;
  while (left) left--;
  return 0;
}
"""
TRIED = 200_000_000  # turns of the loop, to see how fast it is


def main() -> int:
    with tempfile.TemporaryDirectory() as place:
        here = Path(place)
        program, burn = build(here)
        per_turn_s = helper_s(here, program, [str(burn), str(TRIED)]) / TRIED
        print("| Command | Rounds | vtax-run, median | hyperfine, median | Median ratio |")
        print("| --- | --- | --- | --- | --- |")
        worst = 0.0
        for seconds, rounds in ROUNDS.items():
            for kind, command in (
                ("sleeps", ["sleep", f"{seconds:g}"]),
                ("counts", [str(burn), str(round(seconds / per_turn_s))]),
            ):
                ours, theirs, ratio = both(here, program, command, rounds)
                worst = max(worst, abs(ratio - 1))
                name = f"{kind} for about {seconds:g} s"
                print(f"| {name} | {rounds} | {1e3 * ours:.2f} ms | {1e3 * theirs:.2f} ms | {ratio:.4f} |", flush=True)
    print(f"\nlargest difference: {worst:.2%}; they are to agree within {AGREE:.0%}")
    return int(worst > AGREE)


def build(here: Path) -> tuple[Path, Path]:
    """vtax-run as in the root file system, and the command that counts."""
    (here / "burn.c").write_text(BURN)
    sources = {"vtax-run": files("vtax.image") / "guest" / "vtax-run.c", "burn": here / "burn.c"}
    for name, source in sources.items():
        subprocess.run(["gcc", "-O2", "-static", str(source), "-o", str(here / name)], check=True)
    return here / "vtax-run", here / "burn"


def both(here: Path, program: Path, command: Sequence[str], rounds: int) -> tuple[float, float, float]:
    """The medians of vtax-run and of hyperfine, and that of their ratios, after a round that does not count."""
    dice = random.Random(rounds)
    found: list[tuple[float, float]] = []
    for _ in range(rounds + 1):
        if dice.random() < 0.5:
            ours = helper_s(here, program, command)
            found.append((ours, hyperfine_s(here, command)))
        else:
            theirs = hyperfine_s(here, command)
            found.append((helper_s(here, program, command), theirs))
    mine, others = zip(*found[1:], strict=True)
    return statistics.median(mine), statistics.median(others), statistics.median(a / b for a, b in found[1:])


def helper_s(here: Path, program: Path, command: Sequence[str]) -> float:
    report = here / "usage.json"
    report.unlink(missing_ok=True)
    subprocess.run([str(program), "--report", str(report), "--", *command], check=True, stdin=subprocess.DEVNULL)
    return float(json.loads(report.read_text())["wall_s"])


def hyperfine_s(here: Path, command: Sequence[str]) -> float:
    report = here / "hyperfine.json"
    words = ["hyperfine", "-N", "--runs", "1", "--style", "none", "--export-json", str(report), " ".join(command)]
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return float(json.loads(report.read_text())["results"][0]["median"])


if __name__ == "__main__":
    sys.exit(main())
