"""What a run of a command costs besides the command: the time from one trial to the next of `vtax measure -- true`.

A campaign with a few rounds is run, and of each environment the median of the times between the ends of successive
trials of one round counts. Trials alternate between the environments, so each such time begins when the trial before
is on the disk, and has everything in it: resuming and pausing nodes, counters, the run, its record.

    python bench/measuring.py --in host,docker [--rounds 3]

Ends with exit code 1 where a goal is missed. Needs what the environments need, and a cached root file system.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from vtax.analysis.order import planned_order
from vtax.store import Campaign

GOALS_MS = {"host": 60.0, "docker": 120.0, "podman": 120.0, "container": 120.0}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--in", dest="environments", default="host,docker")
    options.add_argument("--rounds", type=int, default=3)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as top:
        campaign = Path(top) / "campaign"
        vtax = Path(sys.executable).with_name("vtax")
        words = ("measure", "--in", asked.environments, "--rounds", f"{asked.rounds}", "-o", campaign, "--", "true")
        subprocess.run((vtax, *words), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found = between_ms(campaign)
    print("| Environment | Runs | Median | Largest | Goal |\n| --- | --- | --- | --- | --- |")
    missed = []
    for name, times_ms in found.items():
        goal_ms, median_ms = GOALS_MS.get(name), statistics.median(times_ms)
        goal = f"{goal_ms:g} ms" if goal_ms else "none"
        print(f"| {name} | {len(times_ms)} | {median_ms:.1f} ms | {max(times_ms):.1f} ms | {goal} |")
        if goal_ms and median_ms > goal_ms:
            missed.append(name)
    print(f"\nmissed: {', '.join(missed)}" if missed else "\nall goals met")
    return 1 if missed else 0


def between_ms(directory: Path) -> dict[str, list[float]]:
    """From the end of the trial before to the end of each, by environment, where both are of one round."""
    campaign = Campaign.open(directory)
    plan = campaign.plan()
    cells = {trial.id: cell for cell in plan.cells for trial in cell.trials}
    order = [trial.id for trial in planned_order(plan, lambda _: plan.interleave == "trial")]
    ended = {name: (directory / "trials" / name / "record.json").stat().st_mtime for name in order}
    found: dict[str, list[float]] = {}
    for before, after in itertools.pairwise(order):
        if cells[before].round == cells[after].round:
            found.setdefault(cells[after].environment, []).append(1e3 * (ended[after] - ended[before]))
    return found


if __name__ == "__main__":
    sys.exit(main())
