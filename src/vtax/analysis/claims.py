"""Numbers that somebody published, against the runs that they are said to be of. Pure.

A claim is a name, a value as it was printed, a unit, and how many runs it is said to be of. It is compared with every
series of the logs that its name can mean: with the mean, the median, single runs, single ranks, and the same in other
units. A value agrees when it rounds to what was printed.

A name means the series that have all of its words; or else those of which it has the metric's words, in a unit that
fits; or else, where the value has enough digits, the one metric in that unit that has this value.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, median

from pydantic import Field

from vtax.model.measurement import Measurement
from vtax.model.metric import Direction
from vtax.model.record import FORMAT, Record
from vtax.model.trial import TrialRecord
from vtax.units import base_unit, format_quantity

FACTORS = (  # between what is printed and what it is, by mistake
    ("bits and bytes (8)", 8.0),
    ("prefixes of 1000", 1e3),
    ("prefixes of 1024", 1024.0),
    ("mega and nothing (10⁶)", 1e6),
    ("kilo and kibi (1.024)", 1.024),
    ("mega and mebi (1.049)", 1.024**2),
    ("giga and gibi (1.074)", 1.024**3),
)
RANK_LABELS = ("rank", "by_size")
DIGITS = 4  # significant ones: with fewer, a value and a unit alone are found by chance
MOST = 1e-6  # relative: the least that is called equal, for values that are printed with all digits
WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
NUMBERED = re.compile(r"(?<![A-Za-z])[A-Za-z]{1,40}\d{1,10}")  # iperf3
NOTHING = frozenset({"the", "of", "in", "per", "a", "s", "mean", "average", "rate", "test", "benchmark", "second"})
SYNONYMS = {  # of the field, in the words of metrics
    "bandwidth": "throughput",
    "speed": "throughput",
    "iops": "operations",
    "ops": "operations",
    "gflops": "gflop",
    "mflops": "gflop",
    "loss": "lost",
    "retries": "retransmits",
    "retransmissions": "retransmits",
}
SPELLINGS = {  # that the field uses, in vtax's
    "Mbps": "Mbit/s",
    "Mb/s": "Mbit/s",
    "Gbps": "Gbit/s",
    "Gb/s": "Gbit/s",
    "MBps": "MB/s",
    "GBps": "GB/s",
    "KB/s": "kB/s",
    "Mflops": "Mflop/s",
    "Gflops": "Gflop/s",
    "Tflops": "Tflop/s",
    "MFLOPS": "Mflop/s",
    "GFLOPS": "Gflop/s",
    "TFLOPS": "Tflop/s",
    "usec": "us",
    "msec": "ms",
    "ops/s": "op/s",
    "events/s": "1/s",
}
KNOWN = ("s", "byte", "byte/s", "bit/s", "flop/s", "1/s", "op/s")  # none of which becomes another one by a prefix
INTO = {("byte/s", "bit/s"): 8.0, ("bit/s", "byte/s"): 1 / 8, ("1/s", "op/s"): 1.0, ("op/s", "1/s"): 1.0}


class Agreement(StrEnum):
    SAME = "same"
    OTHER_UNIT = "other unit"
    BEST_RANK = "best rank instead of all"
    ONE_RANK = "one rank instead of all"
    BEST_RUN = "best run instead of all"
    ONE_RUN = "one run instead of all"
    DIFFERENT = "different"
    NOT_FOUND = "not found"


class Claim(Record):
    """One published number. `text` is the value as it was printed; `n` the runs that it is said to be of."""

    name: str
    text: str
    value: float
    unit: str
    n: int | None = Field(default=None, ge=1)
    environment: str = ""


class Claims(Record):
    """All numbers that were published of a campaign's runs: `claims.json` of an imported campaign."""

    format: int = FORMAT
    claims: tuple[Claim, ...]


class Compared(Record):
    """A claim, and what the logs say. `runs` is the number of runs that they have; `counting` is what is wrong with the
    claimed number, "" for nothing."""

    claim: Claim
    agreement: Agreement
    said: str
    runs: int = 0
    counting: str = ""


@dataclass(frozen=True)
class Series:
    """All runs of one thing: a value for each run, or for each rank of each run."""

    environment: str
    label: str
    metric: str
    labels: Mapping[str, str]
    unit: str
    direction: Direction
    values: tuple[float, ...]
    trials: tuple[str, ...]

    @property
    def of_rank(self) -> bool:
        return any(name in self.labels for name in RANK_LABELS)

    @property
    def name(self) -> str:
        where = " ".join(f"{key}={value}" for key, value in sorted(self.labels.items()) if key != "target")
        return f"{self.label} {self.metric}{f' ({where})' if where else ''} in {self.environment}"

    @property
    def best(self) -> float:
        return min(self.values) if self.direction is Direction.LOWER else max(self.values)


def compare_claims(
    claims: Sequence[Claim], measurements: Sequence[Measurement], trials: Sequence[TrialRecord]
) -> tuple[Compared, ...]:
    """Every claim against the logs, in order."""
    series = _series(measurements)
    by_id = {trial.id: trial for trial in trials}
    return tuple(_compare(claim, series, by_id) for claim in claims)


def _series(measurements: Sequence[Measurement]) -> list[Series]:
    groups: dict[tuple[str, str, str, tuple[tuple[str, str], ...]], list[Measurement]] = defaultdict(list)
    for one in measurements:
        if not one.warmup:
            groups[one.environment, one.label, one.metric, tuple(sorted(one.labels.items()))].append(one)
    return [
        Series(
            environment=environment,
            label=label,
            metric=metric,
            labels=dict(labels),
            unit=several[0].unit,
            direction=several[0].direction,
            values=tuple(one.value for one in several),
            trials=tuple(one.trial for one in several),
        )
        for (environment, label, metric, labels), several in groups.items()
    ]


def _compare(claim: Claim, series: Sequence[Series], trials: Mapping[str, TrialRecord]) -> Compared:
    here = [one for one in series if claim.environment in ("", one.environment)]
    meant = [one for one in here if _means(claim, one)]
    about = ""
    if not meant:
        meant = [one for one in here if _resembles(claim, one)]
        about = "; of its name, the logs have the metric alone"
    if not meant:
        meant = _by_value(claim, here)
        about = "; found by its value and unit: no series has its name"
    if not meant:
        return Compared(claim=claim, agreement=Agreement.NOT_FOUND, said="nothing in the logs has this name")
    asked = _words(claim.name)
    # A rate is no time; and throughput is not throughput_interval
    meant.sort(key=lambda one: (not _fits(claim, one), len(_words(one.metric) - asked)))
    for look in (_same, _of_ranks, _of_runs, _other_unit):
        for one in meant:
            if said := look(claim, one, meant):
                agreement, words = said
                return _compared(claim, agreement, words + about, one, trials)
    alike = [one for one in meant if _fits(claim, one)]
    whole = [one for one in alike or meant if not one.of_rank]
    nearest = min(whole, key=lambda one: _distance(claim, one), default=meant[0])
    if not alike:
        about += f"; nothing of this name is in {claim.unit}"
    words = f"{nearest.name}: {format_quantity(mean(nearest.values), nearest.unit)}, the mean of {_runs(nearest)}"
    return _compared(claim, Agreement.DIFFERENT, words + about, nearest, trials)


def _compared(
    claim: Claim, agreement: Agreement, said: str, one: Series, trials: Mapping[str, TrialRecord]
) -> Compared:
    counting = _counting(claim, one, trials)
    return Compared(claim=claim, agreement=agreement, said=said, runs=len(set(one.trials)), counting=counting)


def _means(claim: Claim, one: Series) -> bool:
    """Whether a name can mean a series: all of its words are words of the series, and one is a word of the metric."""
    metric = _words(one.metric)
    asked = _words(claim.name) - NOTHING
    return bool(asked) and asked <= metric | _about(one) and bool(asked & metric)


def _resembles(claim: Claim, one: Series) -> bool:
    """Whether a name has all words of the metric, or one of them and one of what was measured, and the unit fits."""
    asked, metric = _words(claim.name) - NOTHING, _words(one.metric) - NOTHING
    if not metric or not _fits(claim, one):
        return False
    return metric <= asked or (bool(asked & metric) and bool(asked & _about(one)))


def _by_value(claim: Claim, series: Sequence[Series]) -> list[Series]:
    """The series with this mean or median, in this unit, where they are all of one metric of one benchmark."""
    if len(claim.text.lower().partition("e")[0].replace(".", "").lstrip("-+0")) < DIGITS:
        return []
    found = [one for one in series if _fits(claim, one) and _same(claim, one, ())]
    return found if len({(one.label, one.metric) for one in found}) == 1 else []


def _fits(claim: Claim, one: Series) -> bool:
    return _in_base(claim, one.unit)[0] == one.unit


def _about(one: Series) -> set[str]:
    """The words of what was measured, and where."""
    return _words(one.label) | _words(one.environment) | _words(" ".join(one.labels.values()))


def _words(text: str) -> set[str]:
    found = {word.lower() for word in (*WORDS.findall(text), *NUMBERED.findall(text))}
    return {SYNONYMS.get(word, word) for word in found}


def _in_base(claim: Claim, wanted: str) -> tuple[str, float, float]:
    """The base unit, the value in it, and how far a value may be away that rounds to what was printed.

    In the unit that is `wanted`, where one can be converted into the other.
    """
    try:
        unit, fraction = base_unit(SPELLINGS.get(claim.unit, claim.unit))
        factor = float(fraction)
    except ValueError:  # a unit with two meanings is none: the number may still be found
        unit, factor = claim.unit, 1.0
    if (unit, wanted) in INTO:
        unit, factor = wanted, factor * INTO[unit, wanted]
    digits, _, exponent = claim.text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    half = 0.5 * 10.0 ** (int(exponent or 0) - decimals)
    value = claim.value * factor
    return unit, value, max(half * factor, MOST * abs(value))


def _same(claim: Claim, one: Series, _others: Sequence[Series]) -> tuple[Agreement, str] | None:
    unit, value, near = _in_base(claim, one.unit)
    if one.of_rank or unit != one.unit:
        return None
    for name, number in (("mean", mean(one.values)), ("median", median(one.values))):
        if abs(number - value) <= near:
            what = "the only run" if len(set(one.trials)) == 1 else f"the {name} of {_runs(one)}"
            return Agreement.SAME, f"{one.name}: {format_quantity(number, one.unit)}, {what}"
    return None


def _of_ranks(claim: Claim, one: Series, others: Sequence[Series]) -> tuple[Agreement, str] | None:
    """Whether the value is that of one of several ranks."""
    unit, value, near = _in_base(claim, one.unit)
    if not one.of_rank or unit != one.unit:
        return None
    if not any(abs(number - value) <= near for number in (mean(one.values), *one.values)):
        return None
    same_run = [
        other.best for other in others if other.of_rank and (other.metric, other.trials) == (one.metric, one.trials)
    ]
    best = min(same_run) if one.direction is Direction.LOWER else max(same_run)
    agreement = Agreement.BEST_RANK if one.best == best else Agreement.ONE_RANK
    ranks = one.labels.get("ranks", "several")
    return agreement, f"{one.name} is one of {ranks} ranks; the run is all of them together"


def _of_runs(claim: Claim, one: Series, _others: Sequence[Series]) -> tuple[Agreement, str] | None:
    """Whether the value is that of one of several runs."""
    unit, value, near = _in_base(claim, one.unit)
    if one.of_rank or unit != one.unit or len(one.values) < 2:
        return None
    typical = format_quantity(mean(one.values), one.unit)
    if abs(one.best - value) <= near:
        return Agreement.BEST_RUN, f"{one.name}: the best of {_runs(one)}, whose mean is {typical}"
    if any(abs(number - value) <= near for number in one.values):
        return Agreement.ONE_RUN, f"{one.name}: one of {_runs(one)}, whose mean is {typical}"
    return None


def _other_unit(claim: Claim, one: Series, _others: Sequence[Series]) -> tuple[Agreement, str] | None:
    unit, value, near = _in_base(claim, one.unit)
    if one.of_rank or value == 0 or (unit != one.unit and unit in KNOWN):
        return None
    number = mean(one.values)
    for what, factor in FACTORS:
        for scale in (factor, 1 / factor):
            if abs(number * scale - value) <= near:
                shown = format_quantity(number, one.unit)
                said = f"{one.name} is {shown}, not {claim.text} {claim.unit}: the factor is that of {what}"
                return Agreement.OTHER_UNIT, said
    return None


def _distance(claim: Claim, one: Series) -> float:
    _, value, _ = _in_base(claim, one.unit)
    return abs(mean(one.values) - value) / max(abs(value), 1e-300)


def _runs(one: Series) -> str:
    count = len(set(one.trials))
    return f"{count} {'run' if count == 1 else 'runs'}"


def _counting(claim: Claim, one: Series, trials: Mapping[str, TrialRecord]) -> str:
    """What is wrong with the number of runs that a claim names; "" for nothing."""
    runs = len(set(one.trials))
    if claim.n is None or claim.n == runs:
        return ""
    mine = [trials[name] for name in dict.fromkeys(one.trials) if name in trials]
    for what, count in _not_runs(mine):
        if count > 1 and claim.n in (count, count * runs):
            return f"n is {claim.n}: {what} counted as runs; the logs have {_runs(one)}"
    return f"n is {claim.n}; the logs have {_runs(one)}"


def _not_runs(trials: Sequence[TrialRecord]) -> Iterator[tuple[str, int]]:
    """What people count as runs: ranks, and seconds or intervals, of one run."""
    for trial in trials[:1]:
        facts = trial.imported.facts if trial.imported else {}
        for ranks in (facts.get("ranks"), trial.params.get("ranks")):
            if isinstance(ranks, int):
                yield "ranks", ranks
        if trial.elapsed_s:
            yield "seconds", round(trial.elapsed_s)
        for name, value in {**facts, **trial.params}.items():
            if isinstance(value, int | float) and re.search(r"time|duration|seconds|interval", name):
                yield "seconds", round(value)
