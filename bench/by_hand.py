"""Whether a workload's numbers are those of its tool run by hand: both in one node, in turns, adjacent in time.

The node is one of a cluster that `vtax up` makes. A run by vtax is the step of the plan, with all that is around a
command (vtax-supervise, vtax-run); by hand is the same command alone, as a person starts it in that node. What prepares
a run is done before both, and every pair has new servers. Both outputs are read by the workload's own metrics.

    python bench/by_hand.py pairs.jsonl [WORKLOAD ...] [--in docker] [--pairs 24] [--minutes 9]
    python bench/by_hand.py pairs.jsonl --table

The first adds pairs to the file until every entry of the workloads (none: of all that there are) has enough, or the
time is up: the same command again continues. Runs are shorter than those of the workloads (SHORTER), where the tool
allows that. The second prints, of every primary metric, the mean ratio of by vtax to by hand with its 95 % interval. Of
many metrics, one in twenty leaves out 1 by chance: it says which still do with Bonferroni's correction for all of them.
Needs what the environment needs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scipy import stats

from vtax.cli.console import paths
from vtax.events import ignore
from vtax.model.nodes import Phase
from vtax.model.plan import Step, Work
from vtax.model.study import Study
from vtax.planning import preparation
from vtax.planning.study import load
from vtax.planning.workloads import study_of, workloads
from vtax.providers.base import Cluster
from vtax.running import clusters
from vtax.running.services import Services
from vtax.running.steps import prepare, transport_of
from vtax.tools.command.extract import extract
from vtax.tools.command.params import CommandParams

Numbers = Mapping[str, float]  # metric and labels -> value
ENTERING = "--"  # what follows it in a step is the command itself
SHORTER = {  # beginning of a workload's name -> keys by which a run takes about a second, of one or two entries
    "redis-pair": "values = { requests = 10000, connections = 10 }",
    "redis": "values = { requests = 10000 }",
    "pgbench-pair": "values = { clients = 8 }\nrun = { seconds = 2 }",
    "pgbench": "run = { seconds = 2 }",
    "mariadb-pair": 'values = { rows = 1000, test = "oltp_read_only", connections = 8 }\nrun = { seconds = 1 }',
    "mariadb": 'values = { rows = 1000, test = "oltp_read_write", connections = 1 }\nrun = { seconds = 1 }',
    "nginx-pair": "values = { connections = 10 }\nrun = { seconds = 1 }",
    "nginx": "values = { connections = 100 }\nrun = { seconds = 1 }",
    "memcached-pair": 'values = { operations = 20000, test = "get", connections = 10 }',
    "memcached": 'values = { operations = 20000, test = "set", connections = 100 }',
    "hackbench": "values = { loops = 300 }",
    "sevenzip": 'run = { command = ["7z", "b", "1", "-mmt1", "-md18"] }',
    **dict.fromkeys(  # the longer names first
        ("fio-randread-4k-buffered", "fio-randwrite-4k-buffered", "fio-read-128k-buffered", "fio-write-128k-buffered"),
        'values = { size = "64m" }\nrun = { seconds = 1 }',
    ),
    **dict.fromkeys(
        ("fio-randread-4k", "fio-write-128k"), 'values = { size = "64m", depth = 32 }\nrun = { seconds = 1 }'
    ),
    **dict.fromkeys(
        ("fio-randwrite-4k", "fio-read-128k"), 'values = { size = "64m", depth = 1 }\nrun = { seconds = 1 }'
    ),
    "wakeups": "run = { seconds = 3 }",
    **dict.fromkeys(("sockperf", "netperf", "openssl", "syscalls", "mpi"), "run = { seconds = 1 }"),
}


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", type=Path)
    options.add_argument("workloads", nargs="*")
    options.add_argument("--in", dest="environment", default="docker")
    options.add_argument("--pairs", type=int, default=24)
    options.add_argument("--minutes", type=float, default=9.0)
    options.add_argument("--table", action="store_true")
    asked = options.parse_args()
    if asked.table:
        print(table(recorded(asked.file)))
        return 0
    until = time.monotonic() + 60 * asked.minutes
    unread = [name for name in asked.workloads or workloads() if not finished(name, asked, until)]
    print("enough pairs of all" if not unread else f"not finished: {' '.join(unread)}; give the same command again")
    return int(bool(unread))


def finished(workload: str, asked: argparse.Namespace, until: float) -> bool:
    """Whether there are enough pairs of a workload now. A run that failed ends this time, and is shown."""
    try:
        return measured(workload, asked, until)
    except SystemExit as failure:
        print(f"{workload}: a run failed: {failure}", file=sys.stderr)
        return False


def measured(workload: str, asked: argparse.Namespace, until: float) -> bool:
    """Adds pairs of every entry of a workload, on a new cluster; False where the time was up before all were there."""
    with tempfile.TemporaryDirectory() as top:
        file = Path(top) / "study.toml"
        file.write_text(study_text(workload, asked.environment))
        study = load(file)
        plan = preparation.prepare(study, paths()).plan
        there = Counter((one["environment"], one["entry"]) for one in recorded(asked.file))
        lacking = {work.label: asked.pairs - there[asked.environment, work.label] for work in plan.work}
        if max(lacking.values()) <= 0:
            return True
        if time.monotonic() > until:
            return False
        clusters.up(asked.environment, file, paths(), ignore)
        try:
            cluster = clusters.connect(asked.environment, paths()).cluster
            for work in plan.work:
                for number, (hand, vtax) in enumerate(compared(cluster, study, work, lacking[work.label], Path(top))):
                    kept = {"environment": asked.environment, "entry": work.label, "load": os.getloadavg()[0]}
                    with asked.file.open("a") as results:
                        print(json.dumps({**kept, "hand": hand, "vtax": vtax}), file=results)
                    if time.monotonic() > until and number + 1 < lacking[work.label]:
                        return False
        finally:
            clusters.down(asked.environment, paths())
    return True


def recorded(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def study_text(workload: str, provider: str) -> str:
    """The study that `vtax init` writes, with one environment and short runs."""
    head, _, rest = study_of(workload).partition("[environments.host]")
    tail = rest[rest.index("[nodes]") :].replace("iterations = 4", "iterations = 1")
    head = head.replace('baseline = "host"', f'baseline = "{provider}"')
    shorter = next((keys for name, keys in SHORTER.items() if workload.startswith(name)), "")
    return f'{head}[environments.{provider}]\nprovider = "{provider}"\n\n{tail}\n{shorter}\n'


def compared(cluster: Cluster, study: Study, work: Work, pairs: int, place: Path) -> Iterator[tuple[Numbers, Numbers]]:
    """By hand and by vtax, in turns; the order changes from pair to pair."""
    if pairs <= 0:
        return

    def done(step: Step, argv: Sequence[str], node: str) -> str:
        transport = transport_of(cluster, step, node, work.target)
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
        for node in step.nodes:
            done(step, step.argv, node)
    for pair in range(pairs):
        both: dict[bool, Numbers] = {}
        with servers(cluster, work, place):  # new ones for every pair: a cache that has filled up evicts
            for by_hand in (pair % 2 == 0, pair % 2 == 1):
                for step in steps[Phase.PREPARE]:
                    done(step, step.argv, step.nodes[0])
                prepare(cluster, run, work.target, study.files.__getitem__)  # removes the report of the run before
                both[by_hand] = numbers(work, done(run, command(run) if by_hand else run.argv, run.nodes[0]))
        yield both[True], both[False]


def command(step: Step) -> tuple[str, ...]:
    """The command alone, as the user and with the variables that the entry sets."""
    at = step.argv.index(ENTERING)
    own = step.argv[:at]
    if "--directory" in own:
        raise SystemExit("its commands run elsewhere, which this does not do by hand")
    user, variables = ([own[place + 1] for place, word in enumerate(own) if word == key] for key in ("--user", "--set"))
    becoming = ("runuser", "-u", *user, "--") if user else ()
    return (*becoming, *(("env", *variables) if variables else ()), *step.argv[at + 1 :])


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
        raise SystemExit(f"{work.label}: {found.refusals[0]}, in:\n{printed[-2000:]}")
    return {" ".join((one.metric.name, *one.labels.values())): one.value for one in found.values if one.metric.primary}


def table(pairs: Sequence[Mapping[str, Any]]) -> str:
    """A row for every metric of every entry."""
    rows = [
        "| Entry | Metric | Pairs | By hand, median | By vtax, median | Ratio | 95 % interval | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for one in pairs:
        for name, hand in one["hand"].items():
            found.setdefault((one["environment"], one["entry"], name), []).append((hand, one["vtax"][name]))
    rows += [row(entry, name, several, len(found)) for (_, entry, name), several in found.items()]
    return "\n".join(rows)


def row(entry: str, name: str, pairs: Sequence[tuple[float, float]], compared: int) -> str:
    logs = [math.log(vtax / hand) for hand, vtax in pairs]
    mean = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    half, corrected = (float(stats.t.ppf(1 - 0.025 / many, len(logs) - 1)) * error for many in (1, compared))
    outside = "" if abs(mean) <= half else "leaves out 1" + ("" if abs(mean) > corrected else ", as one of many may")
    hand, vtax = (statistics.median(side) for side in zip(*pairs, strict=True))
    cells = (
        entry,
        name,
        len(pairs),
        f"{hand:.4g}",
        f"{vtax:.4g}",
        f"{math.exp(mean):.3f}",
        f"{math.exp(mean - half):.3f} to {math.exp(mean + half):.3f}",
        outside,
    )
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    sys.exit(main())
