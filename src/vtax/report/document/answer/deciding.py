"""What would decide what is undecided: the command and the time that it takes. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.analysis.records import VERDICT_FROM, Analysis, Comparison, contradicted
from vtax.analysis.sequential.forecast import NEW_CAMPAIGN_MAX, duration
from vtax.model.plan import Origin
from vtax.planning.presets import PRESETS
from vtax.report.document.answer.lines import CONTRADICT, OPEN
from vtax.report.document.answer.model import Line, Standing
from vtax.report.document.numbers import listed, plural
from vtax.report.records import ReportInput


def deciding(report: ReportInput, lines: Sequence[Line]) -> tuple[str, ...]:
    """Sentences; none where every comparison has its verdict, or where only what rules it out can be fixed.

    A line that is slower or faster may cover other comparisons that are undecided: these count too.
    """
    early = [line for line in lines if line.standing is Standing.EARLY]
    if early and report.plan.origin is Origin.IMPORTED:
        return ("`vtax run` measures in a way that supports a verdict; imported runs do not.",)
    if early and _goes_on(report.analysis) and report.analysis.rounds_planned >= VERDICT_FROM:
        return (_more(report, early),)
    if early:
        return (_new(report, VERDICT_FROM, f"A verdict needs at least {VERDICT_FROM} rounds"),)
    unlike = [line for line in lines if any(map(contradicted, line.comparisons))]
    apart = f"No number of rounds decides {_names(unlike)}: {CONTRADICT}, and each has its own answer in the report."
    return (*_by_rounds(report, lines), *([apart] if unlike else []))


def _by_rounds(report: ReportInput, lines: Sequence[Line]) -> tuple[str, ...]:
    """What more rounds, here or in a new campaign, would decide."""
    open_ = [line for line in lines if _open(line)]
    if not open_:
        return ()
    if _goes_on(report.analysis):
        return (_more(report, open_),)
    near = [line for line in open_ if all(item.new_campaign for item in _open(line))]
    far = [line for line in open_ if line not in near]
    sentences = []
    if near:
        rounds = max(_rounds(item) for line in near for item in _open(line))
        sentences.append(_new(report, rounds, f"To decide {_names(near)}"))
    if far:
        known = (_fix(item) for line in far for item in _open(line) if not item.new_campaign)
        why = list(dict.fromkeys(one for one in known if one))
        fix = f": {listed(why)}" if why else ""
        sentences.append(f"{NEW_CAMPAIGN_MAX} rounds with this noise would not decide {_names(far)}{fix}.")
    return tuple(sentences)


def _open(line: Line) -> tuple[Comparison, ...]:
    """The comparisons of a line that are undecided for want of rounds."""
    return tuple(item for item in line.comparisons if item.verdict in OPEN and not contradicted(item))


def _goes_on(analysis: Analysis) -> bool:
    return not analysis.ended and analysis.rounds_complete < analysis.rounds_planned


def _more(report: ReportInput, open_: Sequence[Line]) -> str:
    """The campaign itself may still decide."""
    analysis = report.analysis
    left = analysis.rounds_planned - analysis.rounds_complete
    return (
        f"{left} planned {plural(left, 'round')} may still decide {_names(open_)}"
        f"{_minutes(analysis, left)}: `vtax run --resume {report.directory}` continues this campaign."
    )


def _new(report: ReportInput, rounds: int, why: str) -> str:
    study = report.plan.study.name
    name = study if study in PRESETS else "study.toml"
    command = f"`vtax run {name} --rounds {rounds}`{_minutes(report.analysis, rounds)}"
    return f"{why}: {command}. It is a new campaign, because the plan of this one is frozen."


def _minutes(analysis: Analysis, rounds: int) -> str:
    return "" if analysis.round_s is None else f", about {duration(rounds * analysis.round_s)}"


def _rounds(item: Comparison) -> int:
    """Rounds that decide even with the worst noise that this campaign cannot rule out, where that is in reach."""
    few, many = item.new_campaign or (0, None)
    return few if many is None else many


def _fix(item: Comparison) -> str:
    """What the analysis says about noise that no number of rounds overcomes."""
    return next((part for part in item.remark.split("; ") if part.startswith("fix ")), "")


def _names(lines: Sequence[Line]) -> str:
    """`CPU and network (1 of 2 results) in container, and storage in vm`."""
    several: dict[str, dict[str, None]] = {}
    for line in lines:
        rest = (
            ""
            if line.standing in (Standing.UNDECIDED, Standing.EARLY)
            else f" ({len(_open(line))} of {line.planned} results)"
        )
        several.setdefault(line.environment, {}).setdefault(f"{line.group.inside}{rest}")
    each = [f"{listed(list(groups))} in {name}" for name, groups in several.items()]
    return ", and ".join(each) if any(len(groups) > 1 for groups in several.values()) else listed(each)
