"""A small campaign on fake clusters: two environments, one benchmark, a plan as any other.

What its trials print was recorded from the real tool, so that all stages after the run have something to read.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from builders.recorded import DATA, load
from fakes.cluster import FakeProvider, Reply, Script
from vtax.analysis.order import planned_order
from vtax.model.cluster import CellRecord, Image, NodeFacts
from vtax.model.nodes import HostCapacity
from vtax.model.plan import Cell, Plan, PlannedTrial
from vtax.model.study import EnvironmentSpec, MachineSpec, Study
from vtax.model.trial import Status, TrialRecord
from vtax.planning.plan import make_plan
from vtax.planning.study import parse
from vtax.store import Campaign

GIB = 2**30
MACHINE = HostCapacity(cpu_ids=(0, 1, 2, 3, 4, 5), memory_bytes=32 * GIB)
FACTS = {"cpus_usable": list(MACHINE.cpu_ids), "memory_total_bytes": MACHINE.memory_bytes, "kernel": "6.1"}
IMAGE = Image(recipe="key", digest="d" * 64, directory="/rootfs", archive="/rootfs.tar", versions={"sysbench": "1.0"})
SYSBENCH = DATA / "sysbench-cpu" / "1.0.20--trixie-node"
SAYS = "0-worker1.stdout"  # the file in which it holds what sysbench printed
PRINTED = load(SYSBENCH).texts[SAYS]

TEXT = """\
name = "small"
seed = 3
rounds = {rounds}
interleave = "{interleave}"
baseline = "host"
[environments.host]
provider = "host"
[nodes]
cpus = 2
memory = "2 GiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = 1
threads = 1
iterations = {iterations}
"""


def study(
    names: Sequence[str] = ("host", "box"), *, rounds: int = 2, iterations: int = 2, interleave: str = "cell"
) -> Study:
    """One benchmark on one node in environments of fake providers; the first one is the baseline."""
    specs = tuple(EnvironmentSpec(name=name, provider=name) for name in names)
    whole = parse(TEXT.format(rounds=rounds, iterations=iterations, interleave=interleave), "small.toml")
    return whole.model_copy(update={"environments": specs, "baseline": names[0]})


def anew(script: Script) -> Script:
    """`script`, but no two runs of sysbench print the same: the rate differs in its last two digits."""
    numbers = itertools.count()

    def told(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        reply = script(node, argv, stdin)
        if reply is None or reply[1] != PRINTED:
            return reply
        return reply[0], PRINTED.replace("1092.04", f"1092.{next(numbers) % 100:02d}"), reply[2]

    return told


def new_campaign(
    directory: Path,
    providers: Mapping[str, FakeProvider],
    *,
    rounds: int = 2,
    iterations: int = 2,
    looks: Sequence[int] = (),
    interleave: str = "cell",
    machines: Mapping[str, str | MachineSpec] | None = None,
) -> Campaign:
    """A campaign of which nothing has run yet, on `machines` (name -> destination, or how it is reached). Its id is
    "c1c1c1c1"."""
    last = looks[-1] if looks else rounds
    wanted = study(tuple(providers), rounds=last, iterations=iterations, interleave=interleave)
    several = {name: MachineSpec(ssh=one) if isinstance(one, str) else one for name, one in (machines or {}).items()}
    wanted = wanted.model_copy(update={"looks": tuple(looks) or wanted.looks, "machines": several})
    plan = make_plan(wanted, MACHINE, providers, capacities=dict.fromkeys(several, MACHINE))
    about = {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS}
    return Campaign.create(directory, b"name = 'small'\n", plan, about)


def planned(plan: Plan) -> list[str]:
    """Every trial's id, in the order in which they run."""
    return [trial.id for trial in planned_order(plan, lambda _: plan.interleave == "trial")]


def store(campaign: Campaign, texts: Mapping[str, str]) -> None:
    """Write trials as if they had run: by their id, what sysbench printed."""
    plan = campaign.plan()
    found = {trial.id: (cell, trial) for cell in plan.cells for trial in cell.trials}
    for number, (name, text) in enumerate(texts.items()):
        record = _record(*found[name], started=1_760_000_000.0 + number)
        with campaign.new_trial(name) as place:
            for file in record.texts:
                (place / file).write_text(text if file == SAYS else "")
            (place / "record.json").write_text(record.model_dump_json(indent=1) + "\n")


def store_cells(campaign: Campaign) -> None:
    """Write the record of every cell of a plan with machines, as if its cluster had been made on its machine; Slurm
    gave those whose names begin with "c"."""
    for number, cell in enumerate(campaign.plan().cells):
        slurm = {"job": "7", "node": "node3", "partition": "main", "exclusive": True, "constrained": True}
        slurm |= {"node_cpus": 8, "job_cpus": 8, "node_memory_bytes": 32 * GIB, "time_limit_s": 600.0}
        given = {"hostname": cell.machine, "machine_id": cell.machine, "boot_id": cell.machine, "clock_offset_s": 0.0}
        own = {"slurm": slurm} if cell.machine.startswith("c") else {}
        campaign.save_cell(
            CellRecord(
                cell=cell.id,
                environment=cell.environment,
                round=cell.round,
                instance=1,
                status=Status.OK,
                started=1_760_000_000.0 + number,
                provision_s=1.0,
                facts=(NodeFacts(node="worker1", values={"kernel": "6.1", "cpus": 2}),),
                host_facts={**FACTS, **given, **own},
            )
        )


def _record(cell: Cell, trial: PlannedTrial, started: float) -> TrialRecord:
    own = {
        "id": trial.id,
        "environment": cell.environment,
        "round": cell.round,
        "cell": cell.id,
        "machine": cell.machine,
        "work": trial.work,
        "iteration": trial.iteration,
        "warmup": trial.warmup,
        "started": started,
    }
    return load(SYSBENCH).model_copy(update=own)


def as_fast(text: str, speed: float, more: int) -> str:
    """What sysbench prints with so much of the events, and some more, in the same time: no two runs are the same."""
    rate = re.findall(r"events per second:\s+([\d.]+)", text)[0]
    events = re.findall(r"total number of events:\s+(\d+)", text)[0]
    wanted = int(int(events) * speed) + more
    text = text.replace(rate, f"{float(rate) * wanted / int(events):.2f}").replace(events, str(wanted))
    latency = float(re.findall(r"sum:\s+([\d.]+)", text)[0]) / wanted
    return re.sub(r"(avg:\s+)[\d.]+", rf"\g<1>{latency:.2f}", text)
