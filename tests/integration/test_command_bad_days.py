"""Own commands on bad days: floods of output, services that die or fill the disk. Each is a recorded failure that says
why, nothing grows without a limit, and the entry after it runs as if nothing had happened."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.store import Campaign

from .conftest import Vtax, finish, study

pytestmark = pytest.mark.integration
ENVIRONMENTS = ("host", "docker")
ENTRY = '[[benchmarks]]\nname = "command"\nlabel = "{label}"\nnodes = ["worker1"]\n{keys}\n'
ENTRIES = {
    "flood": 'command = ["head", "-c", "1000000000", "/dev/zero"]',
    "flood-in-setup": 'setup = [["sh", "-c", "yes >&2"]]\ncommand = ["true"]',
    "flooding-service": 'command = ["sleep", "60"]\nservices = [{ command = ["yes"] }]',
    "dying-service": 'command = ["sleep", "60"]\n'
    'services = [{ command = ["sh", "-c", "sleep 1; echo bye >&2; exit 3"] }]',
    "fine": 'command = ["true"]',
}
WHY = {
    "flood": "head -c 1000000000 /dev/zero on worker1 was ended: it printed more than 64 MiB",
    "flood-in-setup": "setup: sh -c 'yes >&2' on worker1 was ended: it printed more than 64 MiB",
    "flooding-service": "yes on worker1 was ended: it printed more than 64 MiB",
    "dying-service": "ended while it was needed, with exit code 3\nbye",
}


def write(directory: Path, environments: tuple[str, ...], entries: dict[str, str]) -> str:
    text = "".join(ENTRY.format(label=label, keys=keys) for label, keys in entries.items())
    path = directory / "own.toml"
    path.write_text(study(environments, text).replace("workers = 2", "workers = 1"))
    return str(path)


def test_floods_and_services_that_die(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    code, _, err = finish(vtax("run", write(tmp_path, ENVIRONMENTS, ENTRIES), "-o", "campaign"))
    assert code == 4, err
    trials = {(one.environment, one.label): one for one in Campaign.open(tmp_path / "campaign").trials(texts=False)}
    for environment in ENVIRONMENTS:
        assert trials[environment, "fine"].status is Status.OK
        for label, why in WHY.items():
            assert trials[environment, label].status is Status.FAILED
            assert why in trials[environment, label].failure
        for label in ("flooding-service", "dying-service"):  # the command is not waited for
            (ran,) = [step for step in trials[environment, label].steps if not step.background]
            assert ran.stopped
            assert ran.elapsed_s < 55
    assert sum(path.stat().st_size for path in (tmp_path / "campaign" / "trials").rglob("*")) < 30 * 2**20


@pytest.fixture
def small_disk(state: Path) -> Iterator[None]:
    """The nodes' files are on a disk of 96 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "none", str(state)], check=True)
    yield
    subprocess.run(["umount", "--lazy", str(state)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_service_that_fills_the_disk(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    entries = {
        "before": 'command = ["true"]',
        "fills": 'command = ["sleep", "60"]\ncleanup = [["rm", "{dir}/full"]]\n'
        'services = [{ command = ["sh", "-c", "cat /dev/zero >full"] }]',
        "after": 'command = ["true"]',
    }
    code, _, err = finish(vtax("run", write(tmp_path, ("host",), entries), "-o", "campaign"))
    assert code == 4, err
    trials = {one.label: one for one in Campaign.open(tmp_path / "campaign").trials(texts=False)}
    assert "No space left on device" in trials["fills"].failure
    assert {trials[label].status for label in ("before", "after")} == {Status.OK}
