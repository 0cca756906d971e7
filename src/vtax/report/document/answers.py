"""The answer in sentences, by rule from verdicts: one for each part of the machine and environment. Pure; no markup.

No numbers are merged into a score. What a blocker rules out is given with its reason and with what was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from vtax.analysis.records import VERDICT_FROM, Analysis, Comparison, Verdict
from vtax.report.document.audit_phrases import cause
from vtax.report.document.groups import Group, group_of
from vtax.report.document.model import Answer, Clause
from vtax.report.document.numbers import interval_text, listed, plural, ratio_text

NBSP = "\u00a0"
CLAIMS = (Verdict.SLOWER, Verdict.FASTER)
WITHIN = (Verdict.EQUIVALENT, Verdict.TRIVIAL)
WORDING = {  # verdicts that need a few words more
    Verdict.TRIVIAL: "difference too small to matter (trivial)",
    Verdict.UNADJUSTED: "not confirmed (unadjusted)",
    Verdict.INCONCLUSIVE: "undecided (inconclusive)",
}


def answers(analysis: Analysis, *, planned: bool = True) -> tuple[Answer, ...]:
    """For each part of the machine that a primary metric is about, what each environment costs there.

    Runs that were not `planned` are not rounds, and get no verdict.
    """
    found = []
    for group in Group:
        own = [item for item in analysis.comparisons if item.primary and group_of(item) is group]
        clauses = tuple(
            clause(analysis, place, name, several, planned=planned)
            for place, name in enumerate(analysis.environments)
            if (several := [item for item in own if item.environment == name and not is_control(item)])
        )
        if clauses:
            found.append(Answer(group, clauses))
    return tuple(found)


def compared(analysis: Analysis) -> tuple[Comparison, ...]:
    """The comparisons of primary metrics that there are: the baseline has them too, and is not repeated."""
    return tuple(item for item in analysis.comparisons if item.primary and item.n and not is_control(item))


def is_control(item: Comparison) -> bool:
    """Whether it compares the baseline with itself."""
    return item.control


def clause(analysis: Analysis, place: int, name: str, several: Sequence[Comparison], *, planned: bool = True) -> Clause:
    """Of the primary metrics of an environment: how many have which verdict, and between which ratios they lie.

    What a blocker rules out comes last, with its reason and with what was measured all the same.
    """
    base = bases(several) or analysis.baseline
    met = [item for item in several if item.n]
    lost = [item for item in several if not item.n and item.planned]
    if not met and lost:
        text = f"nothing to compare: no round has results for both {name} and {base}"
        return Clause(place, name, (Verdict.DATA_ONLY,), text)
    if not met:
        return Clause(place, name, (Verdict.DATA_ONLY,), f"no counterpart in {base} to compare with")
    ruled = [item for item in met if item.verdict is Verdict.NOT_COMPARABLE]
    valid = [item for item in met if item.verdict is not Verdict.NOT_COMPARABLE]
    words: tuple[str, ...] = ()
    parts = []
    if valid:
        words, text = _valid(valid, len(met), planned=planned)
        parts.append(text)
    if ruled:
        words = (*words, str(Verdict.NOT_COMPARABLE))
        parts.append(_ruled(base, ruled, len(met)))
    if lost:
        words = (*words, str(Verdict.DATA_ONLY))
        parts.append(f"{len(lost)} of {len(several)} primary metrics have no round with results for both")
    if lone := len(several) - len(met) - len(lost):
        parts.append(f"{lone} without a counterpart in {base}")
    return Clause(place, name, words, "; ".join(parts))


def bases(several: Sequence[Comparison]) -> str:
    """What they are compared with; the baseline cannot have every metric."""
    return listed(list(dict.fromkeys(item.baseline for item in several)))


def _ruled(base: str, ruled: Sequence[Comparison], of: int) -> str:
    """`not comparable (CPU time stolen, C05); measured 0.668 to 0.982 of host`."""
    why = "; ".join(cause(id) for id, _ in Counter(item.ruled_out_by for item in ruled).most_common())
    known = [item for item in ruled if item.ratio is not None]
    measured = f"; measured {ratios(known)} of {base}" if known else ""
    if len(ruled) == of:
        return f"{Verdict.NOT_COMPARABLE} ({why}){measured}"
    return f"{Verdict.NOT_COMPARABLE} in {len(ruled)} of {of} ({why}{measured})"


def _valid(valid: Sequence[Comparison], of: int, *, planned: bool) -> tuple[tuple[str, ...], str]:
    """What is said of the comparisons that nothing rules out, `of` so many, and the verdicts that it comes to."""
    compared = [item for item in valid if item.ratio is not None]
    base = bases(compared)
    if not compared:
        return (str(Verdict.DIFFERENCE_ONLY),), "differences of shares, which have no ratio"
    counts = Counter(item.verdict for item in compared)
    if not set(counts) - {Verdict.PILOT, Verdict.DATA_ONLY}:
        part = f" in {len(compared)} of {of}" if len(compared) < of else ""
        return (str(compared[0].verdict),), f"{ratios(compared)} of {base}{part}{_without_verdict(compared, planned)}"
    if len(compared) == of == 1:
        return (str(compared[0].verdict),), _one(compared[0])
    parts = []
    for word in dict.fromkeys(word for word in (*CLAIMS, *WITHIN, *Verdict) if counts[word]):
        own = [item for item in compared if item.verdict is word]
        many = f"all {of}" if len(own) == of else f"{len(own)} of {of}"
        sized = word not in WITHIN or len(own) == len(compared)
        parts.append(f"{WORDING.get(word, word)} in {many}{f' ({ratios(own)} of {base})' if sized else ''}")
    claims = tuple(word for word in CLAIMS if counts[word])
    text = f"{parts[0]} primary metrics" if len(parts) == 1 and len(compared) == of else listed(parts)
    return tuple(map(str, claims or (_worst(counts),))), text


def _without_verdict(compared: Sequence[Comparison], planned: bool) -> str:
    rounds = max(item.n for item in compared)
    if planned:
        return f" over {rounds} {plural(rounds, 'round')}; no verdict before {VERDICT_FROM}"
    return f", up to {rounds} {plural(rounds, 'run')} on each side; imported, so no verdict"


def _one(item: Comparison) -> str:
    assert item.ratio is not None
    size = f"{ratio_text(item.ratio)}{interval_text(item)} of {item.baseline} in {item.metric}"
    return f"{WORDING.get(item.verdict, item.verdict)}: {size}"


def _worst(counts: Counter[Verdict]) -> Verdict:
    """The verdict that a reader must not miss where none is a claim: what is not known."""
    order: tuple[Verdict, ...] = (Verdict.UNADJUSTED, Verdict.INCONCLUSIVE, *Verdict)
    return next(word for word in order if counts[word])


def ratios(several: Sequence[Comparison]) -> str:
    """`0.93` or `0.03 to 0.93`."""
    known = [item.ratio for item in several if item.ratio is not None]
    low, high = ratio_text(min(known)), ratio_text(max(known))
    return low if low == high else f"{low} to {high}"


def resolution(analysis: Analysis) -> str:
    """The smallest differences that this experiment can show, from its control arm or from its own intervals."""
    if analysis.resolution is not None:
        return (
            f"Resolution: ±{percent(analysis.resolution)}{NBSP}%, the widest interval of {analysis.baseline} against "
            f"itself ({analysis.control}). Smaller differences cannot be distinguished."
        )
    known = compared(analysis)
    valid = [item for item in known if item.verdict is not Verdict.NOT_COMPARABLE]
    widths = [_half_width(item) for item in valid if item.low and item.high]
    if not widths:
        few = "an interval needs at least three rounds"
        why = few if valid else "no comparison is valid" if known else "there is nothing to compare"
        return f"Resolution: unknown, because {why}."
    typical, widest = percent(median(widths)), percent(max(widths))
    return (
        f"Resolution: half of the {len(widths)} intervals are no wider than ±{typical}{NBSP}%, the widest is "
        f"±{widest}{NBSP}%. Without a control arm this is what the noise allows, not what identical systems showed."
    )


def _half_width(item: Comparison) -> float:
    """Half of an interval as a share: the factor from its middle to its ends, less one."""
    assert item.low is not None and item.high is not None
    return float((item.high / item.low) ** 0.5 - 1)


def percent(share: float) -> str:
    return f"{100 * share:.2g}" if share < 0.995 else f"{100 * share:.0f}"
