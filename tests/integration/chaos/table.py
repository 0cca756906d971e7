"""The table of what chaos tests did, for docs/reliability.md: of one run, or of all runs that wrote to one file, with
`python tests/integration/chaos/table.py chaos.jsonl`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

COMMANDS = ("run", "run --resume", "import", "report", "image build", "up", "down", "clean")
COUNTED = ("refused", "pair", "check")
HEADS = ("Scenario", "Runs", *COMMANDS, "Refused", "At once", "Compared", "Failed")
Event = Mapping[str, str]


def table(events: Iterable[Event]) -> list[str]:
    """A row for each scenario, in the order in which they began, and one with the sums."""
    counts: dict[str, Counter[str]] = {}
    for one in events:
        kind, what = one["event"], one["what"]
        key = what if kind == "kill" else f"end {what}" if kind == "end" else kind
        counts.setdefault(one["scenario"], Counter())[key] += 1
    total = sum(counts.values(), Counter[str]())
    lines = [HEADS, ["---"] * len(HEADS), *(row(*pair) for pair in counts.items()), row("all", total)]
    kills = sum(total[command] for command in COMMANDS)
    return [*(f"| {' | '.join(line)} |" for line in lines), "", f"{kills} kills"]


def row(name: str, count: Counter[str]) -> list[str]:
    runs = count["end passed"] + count["end failed"]
    cells = (runs, *(count[key] for key in (*COMMANDS, *COUNTED)))
    return [name, *(str(number or "") for number in cells), str(count["end failed"])]


def logged(path: Path) -> Iterator[Event]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in table(logged(Path(sys.argv[1]))))
