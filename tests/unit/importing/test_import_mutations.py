"""Damaged logs never give a number that is not in them: by readers that were written apart from vtax's own.

`make test-long` damages the log of every tool ten thousand times.
"""

from __future__ import annotations

import random

import pytest

from builders.logs import LOGS, readings, text_of
from builders.other_readers import READERS, finds
from builders.recorded import DATA
from unit.importing.test_import_more_tools import GUPS, IMB, LINPACK, OSU, OSU_ALLREDUCE
from vtax.tools.reading import Reading

FEW, MANY = 200, 10_000
READ = DATA / "readers"
TEXTS = {
    "fio": text_of(READ / "fio/3.39--trixie/output"),
    "google-benchmark": text_of(READ / "google-benchmark/1.9.1--trixie/output"),
    "hpcc": text_of(LOGS["hpcc"]),
    "hyperfine": text_of(READ / "hyperfine/1.19.0--trixie/output"),
    "imb": IMB,
    "osu": OSU,
    "pyperf": text_of(READ / "pyperf/2.10.0--timeit/output"),
    "gups": GUPS * 2,
    "hpl": text_of(LOGS["hpl"]),
    "intel-linpack": LINPACK,
    "stream": text_of(LOGS["stream"]),
    "stress-ng": text_of(LOGS["stress-ng 0.19"]),
    "iperf3": text_of(LOGS["iperf3 udp server"]),
    "nuttcp": text_of(DATA / "import/nuttcp-6.1.2--bookworm/udp.txt"),
    "ping": text_of(LOGS["ping"]),
    "iozone": text_of(LOGS["iozone kB"]),
    "sysbench": text_of(LOGS["sysbench fileio"]),
}
MORE = {
    "fio": [text_of(READ / "fio/3.33--bookworm-two-jobs/output")],
    "google-benchmark": [text_of(READ / "google-benchmark/1.7.1--bookworm-repetitions/output")],
    "hyperfine": [text_of(READ / "hyperfine/1.15.0--bookworm-two/output")],
    "osu": [OSU_ALLREDUCE],
    "pyperf": [text_of(READ / "pyperf/2.6.3--two/output")],
    "sysbench": [text_of(LOGS["sysbench cpu"]), text_of(LOGS["sysbench memory"])],
}


RECORDED = {  # every output of a workload's tool
    **{
        tool: [text_of(path) for path in sorted((READ / tool).glob("*/output"))]
        for tool in READERS
        if tool not in TEXTS
    },
    "fio text": [text_of(path) for path in sorted((READ / "fio").glob("*text/output"))],
    "sysbench-oltp": [text_of(path) for path in sorted((READ / "sysbench").glob("*oltp*/output"))],
}


def texts_of(tool: str) -> list[str]:
    return [TEXTS[tool], *MORE.get(tool, [])] if tool in TEXTS else RECORDED[tool]


def damaged(text: str, chance: random.Random) -> str:
    """A text with one or two mistakes: lines gone, doubled or exchanged, characters changed, gone or new, or cut."""
    for _ in range(chance.randint(1, 2)):
        lines = text.split("\n")
        place, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        at = chance.randrange(max(1, len(text)))
        kind = chance.randrange(7)
        if kind == 0:
            del lines[place : place + chance.randint(1, 6)]
        elif kind == 1:
            lines[other:other] = lines[place : place + chance.randint(1, 12)]
        elif kind == 2:
            lines[place], lines[other] = lines[other], lines[place]
        text = "\n".join(lines)
        if kind == 3:
            digits = [n for n, character in enumerate(text) if character.isdigit()]
            at = chance.choice(digits) if digits else 0
            text = text[:at] + chance.choice("0123456789") + text[at + 1 :]
        elif kind == 4:
            text = text[:at] + text[at + 1 :]
        elif kind == 5:
            text = text[:at] + chance.choice("0123456789.e-, x") + text[at:]
        elif kind == 6:
            text = text[:at]
    return text


def of(tool: str, reading: Reading) -> bool:
    """Whether it is what the other reader reads."""
    if tool in ("sysbench", "fio text"):
        return reading.benchmark.startswith(tool.partition(" ")[0]) and reading.benchmark != "sysbench-oltp"
    return reading.benchmark.startswith(tool)


def wrong(tool: str, text: str) -> list[tuple[str, float]]:
    """Values that vtax takes and the other reader does not find."""
    found = [
        (value.metric.name, value.value) for reading in readings(text) if of(tool, reading) for value in reading.values
    ]
    numbers = READERS[tool](text) if found else {}
    return [(metric, value) for metric, value in found if not finds(numbers, metric, value)]


def check(tool: str, count: int) -> None:
    chance = random.Random(f"vtax {tool}")  # the same damage every time
    texts = texts_of(tool)
    for number in range(count):
        text = damaged(texts[number % len(texts)], chance)
        assert wrong(tool, text) == [], f"mistake {number}:\n{text}"


@pytest.mark.parametrize("tool", sorted(READERS))
def test_the_other_reader_finds_every_value(tool: str) -> None:
    for text in texts_of(tool):
        assert any(reading.values for reading in readings(text) if of(tool, reading))
        assert wrong(tool, text) == []


@pytest.mark.parametrize("tool", sorted(READERS))
def test_damage_gives_no_wrong_value(tool: str) -> None:
    check(tool, FEW)


@pytest.mark.long
@pytest.mark.parametrize("tool", sorted(READERS))
def test_much_damage_gives_no_wrong_value(tool: str) -> None:
    check(tool, MANY)
