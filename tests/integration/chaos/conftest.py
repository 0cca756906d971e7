"""What the chaos tests share, and the table of what they did, for docs/reliability.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vtax.paths import Paths

from .harness import SEED, Chaos

COMMANDS = ("run", "run --resume", "import", "report", "image build", "up", "down", "clean")
Begin = Callable[..., Chaos]
CHAOS = pytest.StashKey[list[Chaos]]()


@pytest.fixture
def chaos(state: Path, cache: Path, tmp_path: Path, places: Paths, pytestconfig: pytest.Config) -> Iterator[Begin]:
    """Begin a scenario by its name; its row of the table is written when it has ended well."""
    begun: list[Chaos] = []

    def begin(name: str, *, limit_s: float = 180, cache: Path = cache) -> Chaos:
        begun.append(Chaos(name, state, cache, tmp_path / "c", limit_s))
        return begun[-1]

    yield begin
    pytestconfig.stash.setdefault(CHAOS, []).extend(begun)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(CHAOS, [])
    if not rows:
        return
    terminalreporter.section(f"chaos, seed {SEED}")
    heads = ("Scenario", *COMMANDS, "Refused", "At once", "Compared")
    for line in (heads, ["---"] * len(heads), *map(row, rows)):
        terminalreporter.write_line(f"| {' | '.join(line)} |")
    total = sum(one.kills() for one in rows)
    terminalreporter.write_line(f"{total} kills; where a test failed, its row says how far it came")


def row(one: Chaos) -> list[str]:
    others = [
        sum(n for (kind, _), n in one.events.items() if kind == wanted) for wanted in ("refused", "pair", "check")
    ]
    return [one.name, *(str(count or "") for count in (*map(one.kills, COMMANDS), *others))]
