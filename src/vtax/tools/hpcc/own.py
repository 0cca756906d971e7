"""`hpccoutf.txt` of vtax's own trials: read as any log is, and held against the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pydantic import JsonValue

from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import own_section
from vtax.tools.hpcc.linpack import OUTPUT
from vtax.tools.hpcc.systems import copy_failures, systems
from vtax.tools.reading import Output, Reading, Section, lines_of


def read_own(record: TrialRecord, read: Callable[[Section], Reading]) -> tuple[Output, ...]:
    """What a trial says. Systems that the plan does not have are refused: without its input file hpcc solves one of
    its own choice, successfully."""
    file, section = own_section(record, output=OUTPUT)
    reading = read(section)
    done = record.step_on(-1)
    printed = (lines_of(record.texts.get(name, "")) for name in (done.stdout, done.stderr))
    copy_failures(reading, [line for lines in printed for line in lines])
    planned, solved = _planned(record), systems(section.lines)
    for one in solved:
        if planned and one.size not in planned:
            reading.refuse(one.line, f"(n, nb, p, q) = {one.size}", f"the plan has {sorted(planned, key=str)}")
    if missing := planned - {one.size for one in solved}:
        reading.refuse(section.end, f"(n, nb, p, q) = {sorted(missing, key=str)}", "the plan has it, the output not")
    return (Output(file, reading),)


def _planned(record: TrialRecord) -> set[tuple[JsonValue, ...]]:
    """Every (n, nb, p, q) of the trial's parameters; nothing for a run that vtax did not plan."""
    if not {"n", "nb", "p", "q"} <= record.params.keys():
        return set()
    n, nb, p, q = (record.params[name] for name in ("n", "nb", "p", "q"))
    ns, nbs = (value if isinstance(value, Sequence) else [value] for value in (n, nb))
    return {(size, block, p, q) for size in ns for block in nbs}
