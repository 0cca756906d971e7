"""Two of everything at once: one of them wins, or both do, and what is there afterwards is one of them, whole."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ..test_bad_days import write
from .campaigns import complete, derived, reported, small
from .conftest import Begin
from .harness import Chaos, Started, digests, rounds
from .test_machine import logs, wait_for_trials

pytestmark = [pytest.mark.integration, pytest.mark.alone]
long = pytest.mark.long


def both(one: Chaos, *words: str, apart_s: float = 0.2) -> list[int]:
    """The exit codes of a command that is started twice, in order; none of them is a defect."""
    first = one.start(*words)
    time.sleep(one.random.uniform(0.0, apart_s))
    return ended(one, first, one.start(*words))


def ended(one: Chaos, *started: Started) -> list[int]:
    codes = sorted(each.code() for each in started)
    for each in started:
        assert "Traceback" not in each.text(), each.text()
    one.note("pair", started[-1].name)
    one.check()
    return codes


def test_runs(chaos: Begin, tmp_path: Path) -> None:
    """Two campaigns in one directory, and two resumptions of it: one runs, the other one is refused."""
    one = chaos("two at once: run")
    path = write(tmp_path, small(["host"], rounds=1))
    for _ in rounds(one, 0.2):
        one.again()
        assert both(one, "run", str(path), "-o", str(one.campaign)) == [0, 2]
        complete(one)
        one.again()
        one.kill("run", str(path), "-o", str(one.campaign), within_s=3.0)
        if (one.campaign / "plan.json").exists():
            assert both(one, "run", "--resume", str(one.campaign)) in ([0, 2], [0, 0])
            complete(one)
    one.clean()


@long
def test_imports_and_reports(chaos: Begin, tmp_path: Path) -> None:
    one = chaos("two at once: import, report")
    source = logs(tmp_path)
    for _ in rounds(one, 0.2):
        one.again()
        codes = both(one, "import", str(source), "--environment", "host", "--into", str(one.campaign))
        assert codes in ([0, 2], [0, 0])
        before = digests(one.campaign)
        assert both(one, "report", str(one.campaign), apart_s=1.0) == [0, 0]
        assert digests(one.campaign) == before
        reported(one, 0)


@pytest.mark.parametrize("name", ["host", pytest.param("docker", marks=long), pytest.param("podman", marks=long)])
def test_clusters(name: str, chaos: Begin, tmp_path: Path) -> None:
    """Two clusters of one name, `vtax clean` meanwhile, and twice taken down."""
    one = chaos(f"two at once: up, down, clean: {name}")
    up = ("up", name, "--study", str(write(tmp_path, small([name]))))
    for _ in rounds(one, 0.1):
        first = one.start(*up)
        second = one.start(*up)
        while first.process.poll() is None:
            assert ended(one, one.start("clean")) == [0]
        assert ended(one, first, second) == [0, 2]
        status = one.start("status")
        status.good()
        assert status.text().count("answers") == 2
        assert both(one, "down", name) in ([0, 0], [0, 2])
        one.clean()


@long
@pytest.mark.parametrize("name", ["host", "docker", "podman"])
def test_a_campaign_and_everything_else(name: str, chaos: Begin, tmp_path: Path) -> None:
    """`vtax clean` and `vtax report` while it runs; another campaign; and two `vtax clean` after all was killed."""
    one = chaos(f"two at once: run with clean and report: {name}")
    path = write(tmp_path, small([name]))
    first = one.start("run", str(path), "-o", str(one.campaign))
    other = one.start("run", str(path), "-o", str(one.campaign.with_name("other")))
    wait_for_trials(one, 1)
    while first.process.poll() is None:
        assert ended(one, one.start("clean"), one.start("report", str(one.campaign))) == [0, 0]
    assert ended(one, first, other) == [0, 0]
    complete(one)
    one.finish("report", str(one.campaign))
    content = derived(one.campaign)
    one.finish("report", str(one.campaign))
    assert derived(one.campaign) == content
    one.again()
    assert one.kill("run", str(path), "-o", str(one.campaign), within_s=0.5)
    assert both(one, "clean", apart_s=0.5) == [0, 0]
    one.clean()
