"""What a trial costs on a machine behind SSH, more than on this one: the same study both ways, on loopback.

The machine is the one of the integration tests: it shares the CPUs of this one. A trial runs `true`; its cost is the
time from its beginning to that of the next one.

    .venv/bin/python bench/over_ssh.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from integration.machines_lab import Lab, lab
from vtax.events import ignore
from vtax.model.study import ImageSpec
from vtax.paths import Paths
from vtax.planning.preparation import base_image
from vtax.store import Campaign

TRIALS = 40
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


def main() -> None:
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
