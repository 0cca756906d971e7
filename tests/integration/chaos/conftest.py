"""What the chaos tests share, and the table of what they did."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from vtax.paths import Paths

from .harness import SEED, Chaos
from .table import table

Begin = Callable[..., Chaos]
CHAOS = pytest.StashKey[list[Chaos]]()
PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture
def chaos(state: Path, cache: Path, tmp_path: Path, places: Paths, request: pytest.FixtureRequest) -> Iterator[Begin]:
    """Begin a scenario by its name; the table says whether it ended well."""
    begun: list[Chaos] = []

    def begin(name: str, *, limit_s: float = 180, cache: Path = cache) -> Chaos:
        begun.append(Chaos(name, state, cache, tmp_path / "c", limit_s))
        return begun[-1]

    yield begin
    for one in begun:
        one.note("end", "passed" if request.node.stash.get(PASSED, False) else "failed")
    request.config.stash.setdefault(CHAOS, []).extend(begun)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(CHAOS, [])
    if not rows:
        return
    terminalreporter.section(f"chaos, seed {SEED}")
    for line in table(event for one in rows for event in one.events):
        terminalreporter.write_line(line)
