"""From raw output on disk to measurements: the tool's own parser, and what to say when it refuses. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from vtax.benchmarks import benchmarks
from vtax.errors import PLUGIN_FAILURES, ParseError
from vtax.importers.readers import measurements_of as imported_measurements
from vtax.model import Measurement, Status, TrialRecord


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
    return known.parse(record)


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
