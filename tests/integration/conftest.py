"""What integration tests share: the real root file system (built once), a state directory of their own, small studies.

They use the real thing and fail where it is missing; nothing here skips.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Container, Iterator, Sequence
from pathlib import Path

import pytest

from vtax.events import ignore
from vtax.model.cluster import Image
from vtax.model.study import ImageSpec
from vtax.paths import Paths
from vtax.planning import preparation
from vtax.providers.base import Leftover
from vtax.running import leftovers
from vtax.running.sites import label_of
from vtax.store import Campaign

# A shell starts what it puts into the background with SIGINT ignored, and all below would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

TINY = """
name = "tiny"
seed = {seed}
rounds = {rounds}
baseline = "{first}"

{environments}

[nodes]
workers = 2
cpus = 1
memory = "512 MiB"

{benchmarks}
"""
PING = '[[benchmarks]]\nname = "ping"\ncount = 20\ninterval_s = 0.01\nnodes = ["worker1", "worker2"]\n'
CPU = '[[benchmarks]]\nname = "sysbench-cpu"\nnodes = ["worker1"]\ntime_s = {seconds}\n'


@pytest.fixture(scope="session")
def cache() -> Path:
    """The user's own cache: a root file system takes minutes to build and is never changed."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@pytest.fixture(scope="session")
def image(cache: Path) -> Image:
    return preparation.base_image(ImageSpec(), Paths(cache / "vtax", cache / "vtax"), ignore)


@pytest.fixture
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path: control sockets live under it."""
    return tmp_path_factory.mktemp("s")


@pytest.fixture
def places(cache: Path, state: Path, tmp_path: Path, image: Image) -> Iterator[Paths]:
    """Where this test's clusters keep their files; nothing of them may be left anywhere afterwards.

    Only what carries a label of this test counts: of its campaigns, and of all that was made with its state directory.
    Another session may be testing on the same machine.
    """
    paths = Paths(cache / "vtax", state / "vtax")
    yield paths
    labels = {label for about in tmp_path.rglob("campaign.json") for label in labels_of(about.parent).values()}
    left = [item for item in leftovers.leftovers(paths, everything=True) if _is_mine(item, labels, paths)]
    left += [item for item in leftovers.labelled(paths) if item.elsewhere and item.campaign in labels]
    leftovers.clean(left, paths, everything=True)
    assert left == []


def labels_of(campaign: Path) -> dict[str, str]:
    """Environment -> the label of its clusters."""
    opened = Campaign.open(campaign)
    return {spec.name: label_of(str(opened.about()["id"]), spec.name) for spec in opened.plan().environments}


def _is_mine(item: Leftover, labels: Container[str], paths: Paths) -> bool:
    """Virtual machines that have lost their files are found by all: they may be of a session that ends just now. So are
    images that nothing names."""
    if not item.campaign:
        return False
    told = item.campaign in labels or (paths.runtime / item.campaign).exists()
    return told or item.provider not in ("qemu", "virtualbox")


def study(environments: Sequence[str], benchmarks: str, rounds: int = 1, seed: int = 1) -> str:
    """A study of a minute at most; environments are names of providers."""
    tables = "\n".join(f'[environments.{name}]\nprovider = "{name}"\n' for name in environments)
    return TINY.format(seed=seed, rounds=rounds, first=environments[0], environments=tables, benchmarks=benchmarks)


Vtax = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def vtax(cache: Path, state: Path, tmp_path: Path) -> Vtax:
    """Start `vtax` as a user does, with this test's state directory. Returns the process."""

    def start(*words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "vtax", *words],
            cwd=tmp_path,
            env={**os.environ, "XDG_STATE_HOME": str(state), "XDG_CACHE_HOME": str(cache), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def own(label: str) -> str:
    """A label of this session alone, in the form that vtax gives: nothing with another one is ever removed."""
    return f"{zlib.crc32(f'{label} {os.getpid()}'.encode()):08x}"


def finish(process: subprocess.Popen[str], timeout_s: float = 180) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a process that must end."""
    out, err = process.communicate(timeout=timeout_s)
    return process.returncode, out, err
