"""What vtax itself costs: `make bench`. Ratios and times of one run, medians, next to the goals.

    python bench/bench.py [--json] [--repeat N]

Provisioning is compared with Docker Compose, which brings up the same three containers (same image, limits, volume
and network) and is timed until each of them shows its SSH banner. The two take turns. What virtual machines are
compared with is in `machines.py`; `--only machines` measures them alone.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import machines

from vtax.cluster.access import wait_for_banner
from vtax.events import ignore
from vtax.facts.host import capacity, host_facts
from vtax.image.build import find_machine_mirror
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, Scope, Target
from vtax.model.plan import Cell, PlannedTrial, Step, Work
from vtax.model.study import EnvironmentSpec, ImageSpec
from vtax.paths import Paths
from vtax.planning import preparation
from vtax.planning.shape import cluster_shape
from vtax.planning.study import parse
from vtax.providers import provider
from vtax.providers.base import Site
from vtax.providers.container import engine
from vtax.running.provision import destroy, provision
from vtax.running.trial import run_trial
from vtax.store import Campaign

STUDY = """
name = "bench"
baseline = "docker"
[environments.docker]
provider = "docker"
[nodes]
workers = 2
cpus = 1
memory = "512 MiB"
[[benchmarks]]
name = "ping"
"""


@dataclass(frozen=True)
class Result:
    name: str
    measured: float
    goal: float
    unit: str
    at_least: bool = False  # the goal, which is else the most that it may be

    @property
    def met(self) -> bool:
        return self.measured >= self.goal if self.at_least else self.measured <= self.goal


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments.add_argument("--repeat", type=int, default=5, help="how often each thing is timed")
    arguments.add_argument("--only", choices=("command", "containers", "machines"), help="one part of it")
    options = arguments.parse_args()
    home = Path.home()
    paths = Paths(home / ".cache" / "vtax", Path(tempfile.mkdtemp(prefix="vb-")))
    try:
        image = preparation.base_image(ImageSpec(), paths, ignore)
        shape, _ = cluster_shape(parse(STUDY, "(bench)"), capacity(host_facts()))
        parts: dict[str, Callable[[], list[Result]]] = {
            "command": lambda: start_up(options.repeat),
            "containers": lambda: [
                provisioning(paths, image, shape, options.repeat),
                *orchestration(paths, image, shape, options.repeat),
            ],
            "machines": lambda: virtual_machines(paths, image, shape, min(3, options.repeat)),
        }
        results = [row for name, part in parts.items() if options.only in (None, name) for row in part()]
    finally:
        shutil.rmtree(paths.state, ignore_errors=True)
    if options.json:
        print(json.dumps([{**asdict(result), "met": result.met} for result in results], indent=2))
    else:
        for result in results:
            verdict = "met" if result.met else "MISSED"
            print(f"{result.name:<66} {result.measured:8.3f} {result.unit:<6} goal {result.goal:g}: {verdict}")
    return 0 if all(result.met for result in results) else 5


def median_s(what: Callable[[], object], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        clock = time.monotonic()
        what()
        times.append(time.monotonic() - clock)
    return statistics.median(times)


def start_up(repeat: int) -> list[Result]:
    """The command line, as a user starts it."""
    program = str(Path(sys.executable).with_name("vtax"))

    def call(word: str) -> Callable[[], object]:
        return lambda: subprocess.run([program, word], check=True, capture_output=True)

    return [
        Result("vtax --help", median_s(call("--help"), 2 * repeat), 0.3, "s"),
        Result("vtax --version", median_s(call("--version"), 2 * repeat), 0.15, "s"),
    ]


def virtual_machines(paths: Paths, image: Image, shape: ClusterShape, repeat: int) -> list[Result]:
    """Three machines to *verified*; the ratio to the ordinary way is theirs over ours, so more is better."""
    times = machines.measured(paths, image, shape, repeat)
    return [
        Result("three machines verified / one bare machine to its banner", times.ours_s / times.bare_s, 1.6, "x"),
        Result(
            "three ordinary machines to banners / three of vtax's verified",
            times.ordinary_s / times.ours_s,
            4,
            "x",
            True,
        ),
        Result("disk traffic of a node of a second cell", times.io_bytes / 1e6, 30, "MB"),
    ]


def provisioning(paths: Paths, image: Image, shape: ClusterShape, repeat: int) -> Result:
    """Ours to *verified*, Compose to banners, in turns; the median of the ratios."""
    supplier = provider("docker", paths.runtime)
    spec = EnvironmentSpec(name="docker", provider="docker", options=supplier.options().model_dump(mode="json"))
    work = paths.state / "compose"
    work.mkdir()
    environment = compose_environment(paths)
    lines = engine.compose("bench", shape.nodes, engine.ContainerOptions(), "image", "10.214.1", "/shared")
    text = lines.replace("image: image", f"image: {engine.image_tag(image)}").replace(', "./keys:/root/.ssh"', "")
    (work / "compose.yaml").write_text(text)
    ratios = []
    for number in range(repeat + 1):
        site = Site(f"bench{number}", paths.runtime / f"b{number}" / "c", image, paths.runtime / f"b{number}" / "keys")
        clock = time.monotonic()
        ready = provision(supplier, spec, shape, "/shared", site, [Scope.WORKERS])
        ours_s = time.monotonic() - clock
        destroy(supplier, site, ready.cluster)
        theirs_s = compose_up_s(work, environment, [node.name for node in shape.nodes])
        if number:  # the first of each warms the caches
            ratios.append(ours_s / theirs_s)
            print(f"  three containers: verified {ours_s:.2f} s, compose {theirs_s:.2f} s", file=sys.stderr)
    return Result("three containers verified / docker compose up + banners", statistics.median(ratios), 2.0, "x")


def compose_up_s(work: Path, environment: dict[str, str], names: Sequence[str]) -> float:
    """Seconds from `docker compose up` until every service shows its SSH banner; brings it down again."""
    compose = ("docker", "compose", "--project-directory", str(work), "-f", str(work / "compose.yaml"))
    try:
        clock = time.monotonic()
        subprocess.run([*compose, "up", "-d"], check=True, capture_output=True, env=environment)
        for name in names:
            found = subprocess.run(
                [*compose, "port", name, "22"], check=True, capture_output=True, text=True, env=environment
            )
            wait_for_banner(name, int(found.stdout.rpartition(":")[2]), time.monotonic() + 60)
        return time.monotonic() - clock
    finally:
        subprocess.run([*compose, "down", "-v", "-t", "0"], check=True, capture_output=True, env=environment)


def compose_environment(paths: Paths) -> dict[str, str]:
    """An environment in which `docker compose` works: the plug-in of this machine, or Debian's, unpacked aside."""
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0:
        return dict(os.environ)
    place = paths.cache / "docker-cli"
    plugin = place / "cli-plugins" / "docker-compose"
    if not plugin.exists():
        with tempfile.TemporaryDirectory() as name:
            _unpack_compose(Path(name), plugin)
    return {**os.environ, "DOCKER_CONFIG": str(place)}


def _unpack_compose(work: Path, plugin: Path) -> None:
    """Debian trixie's docker-compose by apt itself, without touching the machine's own package lists."""
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (work / "lists" / "partial").mkdir(parents=True)
    (work / "source.list").write_text(f"deb [signed-by={keys}] {find_machine_mirror()} trixie main\n")
    own = {
        "Dir::Etc::sourcelist": work / "source.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::lists": work / "lists",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(word for key, value in own.items() for word in ("-o", f"{key}={value}"))]
    subprocess.run([*apt, "update"], check=True, capture_output=True)
    subprocess.run([*apt, "download", "docker-compose"], check=True, capture_output=True, cwd=work)
    subprocess.run(["dpkg", "-x", str(next(work.glob("*.deb"))), str(work / "x")], check=True)
    plugin.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(work / "x/usr/libexec/docker/cli-plugins/docker-compose", plugin)


def orchestration(paths: Paths, image: Image, shape: ClusterShape, repeat: int) -> list[Result]:
    """A trial whose tool does nothing: all of its time is ours, the record on disk included."""
    results = []
    for name, goal in (("host", 0.1), ("docker", 0.25)):
        supplier = provider(name, paths.runtime)
        spec = EnvironmentSpec(name=name, provider=name, options=supplier.options().model_dump(mode="json"))
        site = Site(f"trial-{name}", paths.runtime / name / "c", image, paths.runtime / name / "keys")
        ready = provision(supplier, spec, shape, "/shared", site, [Scope.WORKERS])
        target = Target(scope=Scope.NODE, nodes=(shape.node("worker1"),), directory="/scratch/nothing")
        work = Work(
            id="nothing",
            environment=name,
            benchmark="nothing",
            label="nothing",
            target=target,
            params={},
            steps=(Step(nodes=("worker1",), argv=("true",), timeout_s=10),),
            estimate_s=0,
        )
        store = Campaign(paths.state / f"campaign-{name}")
        cell = Cell(id="r001", round=1, environment=name, trials=())
        count = iter(range(1000))

        def once(
            store: Campaign = store,
            cell: Cell = cell,
            work: Work = work,
            cluster: object = ready.cluster,
            count: object = count,
        ) -> None:
            trial = PlannedTrial(id=f"r001/nothing.{next(count)}", work="nothing", iteration=1, warmup=False)  # type: ignore[call-overload]
            with store.new_trial(trial.id) as place:
                run_trial(cluster, cell, trial, work, place)  # type: ignore[arg-type]

        once()
        results.append(Result(f"orchestration of one trial on {name}", median_s(once, 4 * repeat), goal, "s"))
        destroy(supplier, site, ready.cluster)
    return results


if __name__ == "__main__":
    sys.exit(main())
