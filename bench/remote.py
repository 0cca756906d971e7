"""What machines cost: how long a campaign on 2, 4 and 8 of them takes, and a trial over SSH.

First, machines in memory, each of which waits in every round, one of them longer than the others: the campaign should
take as long as that one. Then a trial on a machine behind SSH against one on this machine: the same study both ways, on
loopback. That machine is the one of the integration tests: it shares the CPUs of this one. A trial runs `true`; its
cost is the time from its beginning to that of the next one.

    .venv/bin/python bench/remote.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from integration.machines_lab import Lab, lab
from unit.running.test_fleet import Lab as MachinesInMemory
from vtax.events import ignore
from vtax.model.study import ImageSpec
from vtax.paths import Paths
from vtax.planning.preparation import base_image
from vtax.store import Campaign

TRIALS = 40
SLOWEST_S = 10.0  # in a round
STUDY = f"""\
name = "cost"
rounds = 1
baseline = "host"
interleave = "cell"
[environments.host]
provider = "host"
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
[[benchmarks]]
name = "command"
label = "nothing"
nodes = ["worker1"]
iterations = {TRIALS}
run = {{ command = ["true"] }}
"""


def cost_s(made: Lab, place: Path, images: Path, name: str, machines: str) -> list[float]:
    """The time from each trial to the next one."""
    study, campaign = place / f"{name}.toml", place / name
    study.write_text(STUDY + machines)
    command = made.enter((sys.executable, "-m", "vtax", "run", str(study), "-o", str(campaign)))
    environment = {**made.environment, "XDG_STATE_HOME": str(place / "s"), "XDG_CACHE_HOME": str(images.parents[1])}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL, cwd=place)
    began = sorted(one.started for one in Campaign.open(campaign).trials(texts=False))
    return [after - before for before, after in pairwise(began)]


def together(count: int, place: Path) -> None:
    """A campaign on machines that wait."""
    made = MachinesInMemory(place, "abcdefgh"[:count])
    for name, agent in made.agents.items():
        agent.meanwhile = partial(time.sleep, SLOWEST_S if name == "a" else SLOWEST_S / 2)
    alone_s = SLOWEST_S * made.campaign.plan().study.rounds
    began = time.monotonic()
    made.run()
    took_s = time.monotonic() - began
    print(
        f"{count} machines: {took_s:.2f} s; the slowest waits {alone_s:g} s, {100 * (took_s / alone_s - 1):.1f} % more"
    )


def main() -> None:
    for count in (2, 4, 8):
        with tempfile.TemporaryDirectory() as top:
            together(count, Path(top))
    cache = Path.home() / ".cache"
    image = base_image(ImageSpec(), Paths(cache / "vtax", cache / "vtax"), ignore)
    tree = Path(image.directory)
    images = tree.parent.parent
    with (
        tempfile.TemporaryDirectory(prefix="vm") as place,
        lab(("a",), tree, images, Path(place)) as made,
    ):
        for again in range(3):
            local = cost_s(made, Path(place), images, f"local{again}", "")
            remote = cost_s(made, Path(place), images, f"remote{again}", made.tables(images))
            here, there = statistics.median(local), statistics.median(remote)
            more = f"{1e3 * (there - here):.1f} ms more"
            print(f"a trial here: {1e3 * here:.1f} ms; over SSH: {1e3 * there:.1f} ms, {more}")


if __name__ == "__main__":
    main()
