"""Whether a workload's numbers are those of its tool run by hand: both in one node, in turns, adjacent in time.

The node is one of a cluster that `vtax up` makes. A run by vtax is the step of the plan, with all that is around a
command (vtax-supervise, vtax-run); by hand is the same command alone, as a person starts it in that node. What prepares
a run is done before both, and servers run for all of them. Both outputs are read by the workload's own metrics.

    python bench/by_hand.py syscalls [--in docker] [--pairs 24]

Prints, of every primary metric, the mean ratio of by vtax to by hand with its 95 % interval. Exit code 1 where an
interval leaves out 1: of many metrics, one in twenty does so by chance. Needs what the environment needs.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from scipy import stats

from vtax.cli.console import paths
from vtax.events import ignore
from vtax.model.nodes import Phase
from vtax.model.plan import Step, Work
from vtax.model.study import Study
from vtax.planning import preparation
from vtax.planning.study import load
from vtax.planning.workloads import study_of
from vtax.providers.base import Cluster
from vtax.running import clusters
from vtax.running.services import Services
from vtax.running.steps import prepare, transport_of
from vtax.tools.command.extract import extract
from vtax.tools.command.params import CommandParams

Numbers = Mapping[str, float]  # metric and labels -> value
ENTERING = "--"  # what follows it in a step is the command itself


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("workload")
    options.add_argument("--in", dest="environment", default="docker")
    options.add_argument("--pairs", type=int, default=24)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as top:
        file = Path(top) / "study.toml"
        file.write_text(study_text(asked.workload, asked.environment))
        study = load(file)
        plan = preparation.prepare(study, paths()).plan
        clusters.up(asked.environment, file, paths(), ignore)
        try:
            cluster = clusters.connect(asked.environment, paths()).cluster
            found = [compared(cluster, study, work, asked.pairs, Path(top)) for work in plan.work]
        finally:
            clusters.down(asked.environment, paths())
    print(f"{asked.workload} in {asked.environment}, {asked.pairs} pairs\n")
    print("| Entry | Metric | By hand, median | By vtax, median | Ratio | 95 % interval |")
    print("| --- | --- | --- | --- | --- | --- |")
    return max(shown(work.label, pairs) for work, pairs in zip(plan.work, found, strict=True))


def study_text(workload: str, provider: str) -> str:
    """The study that `vtax init` writes, with one environment."""
    head, _, rest = study_of(workload).partition("[environments.host]")
    tail = rest[rest.index("[nodes]") :].replace("iterations = 4", "iterations = 1")
    head = head.replace('baseline = "host"', f'baseline = "{provider}"')
    return f'{head}[environments.{provider}]\nprovider = "{provider}"\n\n{tail}'


def compared(cluster: Cluster, study: Study, work: Work, pairs: int, place: Path) -> list[tuple[Numbers, Numbers]]:
    """By hand and by vtax, in turns; the order changes from pair to pair."""

    def done(step: Step, argv: Sequence[str]) -> str:
        transport = transport_of(cluster, step, step.nodes[0], work.target)
        result = transport.run(argv, timeout_s=step.timeout_s, directory=work.target.directory)
        if result.exit_code not in step.success:
            said = f"{result.stdout[-500:]}{result.stderr[-500:]}"
            raise SystemExit(f"{' '.join(argv)}\nended with exit code {result.exit_code}: {said}")
        return result.stdout

    steps = {phase: [s for s in work.steps if s.phase is phase and not s.background] for phase in Phase}
    (run,) = steps[Phase.RUN]
    for node in work.target.names:
        cluster.node(node).transport.run(("mkdir", "-p", work.target.directory), timeout_s=30.0)
    for step in steps[Phase.SETUP]:
        prepare(cluster, step, work.target, study.files.__getitem__)
        done(step, step.argv)
    found = []
    with servers(cluster, work, place):
        for pair in range(pairs):
            both: dict[bool, Numbers] = {}
            for by_hand in (pair % 2 == 0, pair % 2 == 1):
                for step in steps[Phase.PREPARE]:
                    done(step, step.argv)
                prepare(cluster, run, work.target, study.files.__getitem__)  # removes the report of the run before
                both[by_hand] = numbers(work, done(run, command(run) if by_hand else run.argv))
            found.append((both[True], both[False]))
    return found


def command(step: Step) -> tuple[str, ...]:
    """The command alone, with the variables that the entry sets."""
    at = step.argv.index(ENTERING)
    own = step.argv[:at]
    if "--user" in own or "--directory" in own:
        raise SystemExit("its commands run as another user, or elsewhere, which this does not do by hand")
    variables = [own[place + 1] for place, word in enumerate(own) if word == "--set"]
    return (*(("env", *variables) if variables else ()), *step.argv[at + 1 :])


@contextmanager
def servers(cluster: Cluster, work: Work, place: Path) -> Iterator[None]:
    """The services of an entry, ready; stopped afterwards."""
    running = Services(cluster, work.target, place)
    try:
        for number, step in enumerate(work.steps):
            if step.service is not None:
                transport = transport_of(cluster, step, step.nodes[0], work.target)
                if why := running.start(number, step, step.service, transport):
                    raise SystemExit(why)
        yield
    finally:
        running.stop()


def numbers(work: Work, printed: str) -> Numbers:
    """The primary metrics in an output."""
    params = CommandParams.model_validate(dict(work.params))
    tables = [table for table in params.metrics if table.builtin is None]
    found = extract(tables, {"stdout": printed}, work.label)
    if found.refusals:
        raise SystemExit(f"{work.label}: {found.refusals[0]}")
    return {" ".join((one.metric.name, *one.labels.values())): one.value for one in found.values if one.metric.primary}


def shown(label: str, pairs: Sequence[tuple[Numbers, Numbers]]) -> int:
    """A row for every metric; 1 where an interval leaves out 1."""
    missed = 0
    for name in pairs[0][0]:
        logs = [math.log(vtax[name] / hand[name]) for hand, vtax in pairs]
        mean = statistics.fmean(logs)
        half = stats.t.ppf(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
        low, high = math.exp(mean - half), math.exp(mean + half)
        missed |= not low <= 1 <= high
        hand, vtax = (statistics.median(one[side][name] for one in pairs) for side in (0, 1))
        print(f"| {label} | {name} | {hand:.4g} | {vtax:.4g} | {math.exp(mean):.3f} | {low:.3f} to {high:.3f} |")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
