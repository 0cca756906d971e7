"""What the analysis of a million measurements costs: time, memory, and how both grow.

    python bench/analysis.py [--json] [--check]

200 metrics (operations of one benchmark), two environments, 60 rounds, ranks that run together; whole cells, and four
iterations that alternate. The measurements are made one by one while they are read, as a parser would; making them is
timed apart and left out. `--check` exits with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Iterator

from vtax.analysis.analyse import analyse
from vtax.model.measurement import Measurement
from vtax.model.metric import Direction, Kind
from vtax.model.plan import Cell, Plan, PlannedTrial
from vtax.selftest.objects import plan_of

METRICS, ROUNDS = 200, 60
LOOKS = (6, 10, 16, 24, 40, 60)


def measurements(plan: Plan, total: int) -> Iterator[Measurement]:
    """About `total` of them: as many ranks in every trial as that takes."""
    dice = random.Random(1)
    ranks = round(total / (sum(len(cell.trials) for cell in plan.cells) * METRICS))
    labels = [
        [{"target": "workers", "operation": f"op{metric % 20}", "rank": str(rank)} for rank in range(ranks)]
        for metric in range(METRICS)
    ]
    for cell in plan.cells:
        for trial in cell.trials:
            for metric in range(METRICS):
                level = 1.0 + metric
                for rank in range(ranks):
                    value = level * (1 + 0.02 * dice.random())
                    yield measured(cell, trial, metric, value, labels[metric][rank])


def measured(cell: Cell, trial: PlannedTrial, metric: int, value: float, labels: dict[str, str]) -> Measurement:
    return Measurement.model_construct(
        environment=cell.environment,
        round=cell.round,
        cell=cell.id,
        trial=trial.id,
        iteration=trial.iteration,
        warmup=False,
        benchmark="sysbench-cpu",
        label="sysbench-cpu",
        metric=f"metric{metric // 20}",
        value=value,
        unit="s",
        kind=Kind.COST,
        direction=Direction.LOWER,
        primary=metric < 20,
        labels=labels,
        source=f"trials/{trial.id}/stdout",
    )


def cost(total: int, *, alternating: bool = False) -> tuple[float, int]:
    """Processor time of the analysis beyond that of making the measurements, s, and how many there were."""
    made = plan_of(1, LOOKS, 4, "trial") if alternating else plan_of(1, LOOKS, 1)
    start = time.process_time()
    count = sum(1 for _ in measurements(made, total))
    making = time.process_time() - start
    start = time.process_time()
    found = analyse(measurements(made, total), plan=made, findings=(), trials=())
    spent = time.process_time() - start - making
    assert len(found.comparisons) == METRICS
    return spent, count


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    options = arguments.parse_args()
    cost(ROUNDS * METRICS * 2)  # imports, tables
    half, _ = cost(500_000)
    whole, count = cost(1_000_000)
    by_trial, several = cost(1_000_000, alternating=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    rows = (
        (f"analysis of {count:,} measurements", whole, 10.0, "s"),
        (f"analysis of {several:,} measurements, alternating trials", by_trial, 10.0, "s"),
        ("twice the measurements", whole / half, 2.2, "times the time"),
        ("largest resident set", peak, 1.0, "GiB"),
    )
    if options.json:
        print(json.dumps([{"name": n, "measured": m, "goal": g, "unit": u} for n, m, g, u in rows], indent=2))
    else:
        for name, value, goal, unit in rows:
            print(f"{name}: {value:.2f} {unit} (goal: at most {goal:g})")
    return 1 if options.check and any(value > goal for _, value, goal, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
