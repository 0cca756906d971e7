"""From raw output on disk to measurements: the tool's own parser, and what to say when it refuses. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pydantic import ValidationError

from vtax.errors import PLUGIN_FAILURES, ParseError
from vtax.model.measurement import Measurement
from vtax.model.trial import Status, TrialRecord
from vtax.tools import benchmarks
from vtax.tools.benchmark import source_of
from vtax.tools.readers import measurements_of as imported_measurements

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf)(?![\w.])")
REMEDY = "read the raw output; a metric that can be zero is declared as a count or a proportion"


def measurements_of(record: TrialRecord) -> tuple[Measurement, ...]:
    """The measurements of one trial that ended well. Raises ParseError when its output is not the tool's."""
    if record.imported is not None:
        return imported_measurements(record)
    known = benchmarks().get(record.benchmark)
    if known is None:
        raise ParseError(
            f"trials/{record.id}: no benchmark {record.benchmark!r} is known here",
            remedy="install the plug-in that the campaign was run with",
        )
    try:
        found = known.parse(record)
    except ParseError as error:
        if error.message.startswith(source_of(record)):
            raise
        message = f"{source_of(record)}: {error.message}"
        raise ParseError(message, detail=error.detail, remedy=error.remedy) from error
    except ValidationError as error:  # a record refuses what is not finite
        value = error.errors()[0].get("input")
        raise refused(record, f"{value!r} is not a finite number", str(value)) from error
    for item in found:
        if item.value <= 0 and item.kind.has_ratio:
            what = f"{item.metric} is {item.value:g} {item.unit}, and a {item.kind} is above zero"
            raise refused(record, what, f"{item.value:g}", item.source)
    return found


def refused(record: TrialRecord, what: str, number: str, source: str = "") -> ParseError:
    """An error that names the file and, where the number stands on one line as it was read, the line."""
    places = {f"trials/{record.id}/{name}": text for name, text in sorted(record.texts.items())}
    chosen = {name: text for name, text in places.items() if source in ("", name)}
    lines = [
        (f"{name}:{count}", line.strip())
        for name, text in chosen.items()
        for count, line in enumerate(text.split("\n"), start=1)
        if any(_same(word, number) for word in NUMBER.findall(line))
    ]
    if len(lines) == 1:
        return ParseError(f"{lines[0][0]}: {what}", detail=lines[0][1], remedy=REMEDY)
    return ParseError(f"{source or source_of(record)}: {what}", remedy=REMEDY)


def _same(word: str, number: str) -> bool:
    return word.lower() == number.lower() or float(word) == float(number)


def parse_all(records: Iterable[TrialRecord]) -> tuple[tuple[Measurement, ...], tuple[TrialRecord, ...]]:
    """All measurements, and all records: those whose output was refused are failed from now on, with the reason."""
    measurements: list[Measurement] = []
    judged: list[TrialRecord] = []
    for record in records:
        if record.status is not Status.OK:
            judged.append(record)
            continue
        try:
            measurements += measurements_of(record)
            judged.append(record)
        except ParseError as error:
            judged.append(record.model_copy(update={"status": Status.FAILED, "failure": str(error)}))
        except PLUGIN_FAILURES as error:
            reason = f"the parser of {record.benchmark} failed: {type(error).__name__}: {error}"
            judged.append(record.model_copy(update={"status": Status.FAILED, "failure": reason}))
    return tuple(measurements), tuple(judged)
