"""OpenMetrics and Prometheus's older text format: samples whose unit and kind a study declares.

Several samples of one name are told apart by their labels. OpenMetrics ends with `# EOF`, and everything in front of it
is complete. Prometheus's format has no end, so there a name must have one sample only: others could have been cut off.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from vtax.tools.command.readers.reader import Reader, Wants
from vtax.tools.documents import Unfit
from vtax.tools.reading import Line, Reading, Section, number
from vtax.units import base_unit

END = "# EOF"
NAME = re.compile(r"^[a-zA-Z_:][a-zA-Z0-9_:]{0,300}")
LABEL = re.compile(r'^ ?([a-zA-Z_][a-zA-Z0-9_]{0,200})="((?:[^"\\\n]|\\.){0,2000})" ?(,|(?=\}))')
REST = re.compile(r"^[ \t]{1,20}(\S{1,60})(?:[ \t]{1,20}(-?\d{1,20}(?:\.\d{1,20})?))?(?: # \{.{0,500})?[ \t]{0,20}$")
UNIT = re.compile(r"^# UNIT ([a-zA-Z_:][a-zA-Z0-9_:]{0,300}) (\S{1,60})$")
UNITS = {"seconds": "s", "bytes": "byte", "ratios": "1", "joules": "J"}  # those that the specification names
ESCAPED = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
MOST_LABELS = 50


def read(section: Section, wants: Wants) -> Reading:
    """The samples with the names that are wanted; the others are passed over, but every line must be of the format."""
    reading = Reading("openmetrics")
    lines = [line for line in section.lines if line.text.strip()]
    complete = bool(lines) and lines[-1].text == END
    try:
        for line in lines[:-1] if complete else lines:
            _line(reading, line, wants)
        _judge(reading, wants, complete=complete)
    except Unfit as error:
        reading.values.clear()
        reading.refuse(error.line, "what openmetrics reads", error.what, 0)
    reading.ended = not reading.refusals
    return reading


def _line(reading: Reading, line: Line, wants: Wants) -> None:
    text = line.text
    if text == END:
        raise Unfit(line.number, f"{END} in front of other lines: several outputs in one")
    if text.startswith("#"):
        _unit(line, wants)
        return
    name = NAME.match(text)
    if name is None:
        raise Unfit(line.number, f"not a sample: {text[:60]!r}")
    labels, at = _labels(line, name.end())
    rest = REST.match(text[at:])
    if rest is None:
        raise Unfit(line.number, f"no number behind {name[0]!r}")
    if (wanted := wants.get(name[0])) is None:
        return
    value = number(rest[1].removeprefix("+"))
    if value is None:
        raise Unfit(line.number, f"{name[0]} is {rest[1]!r}, not a finite number of zero or more")
    reading.values.append(wanted.value(value, line.number, labels))


def _labels(line: Line, at: int) -> tuple[dict[str, str], int]:
    """The labels of a sample, and where its number begins."""
    text, labels = line.text, dict[str, str]()
    if text[at : at + 1] != "{":
        return labels, at
    at += 1
    while text[at : at + 1] != "}":
        found = LABEL.match(text[at : at + 3000])
        if found is None or found[1] in labels or len(labels) == MOST_LABELS:
            raise Unfit(line.number, f"cannot read its labels from {text[at : at + 40]!r} on")
        labels[found[1]] = re.sub(r"\\.", lambda one: ESCAPED.get(one[0], one[0]), found[2])[:200]
        at += found.end()
    return labels, at + 1


def _unit(line: Line, wants: Wants) -> None:
    """Raises Unfit where the output says another unit than the study."""
    found = UNIT.match(line.text)
    for name, wanted in wants.items() if found else ():
        family = name.removesuffix("_total").removesuffix("_sum")
        if found and found[1] == family and found[2] in UNITS:
            unit = UNITS[found[2]]
            if base_unit(unit)[0] != wanted.metric.unit or wanted.factor != 1:
                raise Unfit(line.number, f'{name} is in {found[2]}: give unit = "{unit}"')


def _judge(reading: Reading, wants: Wants, *, complete: bool) -> None:
    """Raises Unfit unless every name that is wanted has a sample, and no two of one name have the same labels."""
    for name, wanted in wants.items():
        own = [value for value in reading.values if value.metric is wanted.metric]
        if not own:
            raise Unfit(0, f"there is no sample {name}")
        if len(own) > 1 and not complete:
            raise Unfit(own[1].line, f"{len(own)} samples of {name}, and no {END!r} shows that these are all")
        seen: list[Mapping[str, str]] = []
        for value in own:
            if value.labels in seen:
                raise Unfit(value.line, f"{name} is there twice with the same labels")
            seen.append(value.labels)


OPENMETRICS = Reader("openmetrics", read, free=True, ends=("\n", END))
