"""vtax analyse: recompute from what is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vtax.cli.gating import FailOn, Junit

if TYPE_CHECKING:
    from vtax.analysis.records import Analysis, Comparison, LadderStep, MachineEffect

MANY = 8  # comparisons of one metric in one environment that have a line each


def analyse(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    baseline: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Compare with this environment instead of the planned baseline: exploratory, not kept."
        ),
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also write the analysis to this file.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the whole analysis as JSON.")] = False,
    fail_on: FailOn = None,
    junit: Junit = None,
) -> None:
    """Recompute levels, comparisons and findings from stored data, and write analysis.json. Runs nothing again.

    With --baseline the campaign's analysis.json stays as it is, and gates are about comparisons with that environment.
    Exit code 5 when a gate failed.

    \b
    Example:  vtax analyse campaigns/quick-20260101-120000
    Example:  vtax analyse campaigns/quick-20260101-120000 --baseline container
    Example:  vtax analyse campaigns/ci --fail-on "hpcc.HPL slower than 5%" --fail-on blocker
    """
    from vtax import pipeline
    from vtax.analysis.gates import subjects_of
    from vtax.cli.answer import answer_text
    from vtax.cli.console import paths, print_json, say
    from vtax.cli.gating import check_gates, report_gates
    from vtax.store import write_atomic

    check_gates(fail_on or (), junit, pipeline.study_of(directory, baseline))
    made = pipeline.analyse(directory, cache=paths().cache, baseline=baseline)
    if output is not None:
        write_atomic(output, (made.model_dump_json(indent=1) + "\n").encode())
    if json:
        print_json(made.model_dump(mode="json"))
    else:
        first = [made.exploratory] if made.exploratory else []
        say(*first, *answer_text(pipeline.answer(directory, made)), "", *lines_of(made))
    report_gates(made.campaign, fail_on or (), subjects_of(made), made.findings, junit)


def lines_of(made: Analysis) -> Iterator[str]:
    """The details behind the answer: when the campaign was analysed, and every primary comparison."""
    from vtax.units import format_looks

    if made.looks:
        reached = f"the last one so far was after {made.look}" if made.look else "none has been reached yet"
        yield f"interim analyses are planned after {format_looks(made.looks)}; {reached}"
    if made.anytime_wider is not None:
        cost = f"{100 * made.anytime_wider:.0f} % wider than with six planned analyses"
        yield f"intervals are valid after any of these rounds, and therefore {cost}"
    if made.ended:
        yield f"the campaign ended {made.ended}"
    yield ""
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for comparison in made.comparisons:
        if comparison.primary:
            key = (comparison.label, comparison.metric, comparison.environment)
            groups.setdefault(key, []).append(comparison)
    for (label, metric, environment), several in groups.items():
        if len(several) > MANY:
            yield f"{label} {metric}: {environment} against {several[0].baseline}: {together(several)}"
            continue
        for comparison in several:
            said = blocked(comparison, made) or comparison.sentence
            more = f"; {comparison.remark}" if comparison.remark else ""
            yield f"{name_of(comparison)} against {comparison.baseline}: {said}{more}"
            if comparison.machines:
                several_text = "; ".join(machine_of(each, comparison.unit) for each in comparison.machines)
                yield f"  on each machine: {several_text}"
    for score in made.scores:
        yield f"score {score.name}: {score.environment} against {score.baseline}: {score.sentence}"
    for one in made.ladder:
        if one.primary:
            steps = ", ".join(map(step_of, (*one.rungs, one.total)))
            yield f"ladder of {one.label} {one.metric} ({one.n} rounds): {steps}"
    yield from notes_of(made)
    for text in made.advice:
        yield f"for the next campaign: {text}"


def machine_of(effect: MachineEffect, unit: str) -> str:
    """`a -3.0 % [-3.6, -2.4]`."""
    from vtax.analysis.verdict import percent
    from vtax.units import signed_quantity

    if not effect.covered:
        return f"{effect.machine} has too few rounds ({effect.n})"
    if effect.ratio is None:
        if effect.difference is None:
            return effect.machine
        return f"{effect.machine} {signed_quantity(effect.difference, unit)}"
    ends = "" if effect.low is None or effect.high is None else f" [{percent(effect.low)}, {percent(effect.high)}]"
    return f"{effect.machine} {percent(effect.ratio)} %{ends}"


def step_of(rung: LadderStep) -> str:
    """`host to container +3.1 % [-1.2, +7.6]`, or that the two are not comparable."""
    from vtax.analysis.verdict import percent

    between = f"{rung.previous} to {rung.environment}"
    if rung.blocker:
        return f"{between} not comparable"
    ends = "" if rung.bounds is None else f" [{', '.join(map(percent, rung.bounds))}]"
    return f"{between} {percent(rung.ratio)} %{ends}"


def notes_of(made: Analysis) -> Iterator[str]:
    """Each kind of note on a primary comparison once: the first in full, and how many more there are like it."""
    found: dict[str, list[str]] = {}
    for comparison in made.comparisons:
        for note in comparison.notes if comparison.primary else ():
            found.setdefault(note.id, []).append(f"{name_of(comparison)}: {note.message}")
    for name, several in found.items():
        more = f" (and {len(several) - 1} more like it: --json, or the report)" if len(several) > 1 else ""
        yield f"note {name}: {several[0]}{more}"


def name_of(comparison: Comparison) -> str:
    where = " ".join(f"{key}={value}" for key, value in sorted(comparison.labels.items()))
    return f"{comparison.label} {comparison.metric} ({where}): {comparison.environment}"


def blocked(comparison: Comparison, made: Analysis) -> str:
    """The id of the finding, printed above, that rules a comparison out; "" without one."""
    if comparison.verdict.value != "not comparable":
        return ""
    known = (finding.id for finding in made.findings if finding.message in comparison.sentence)
    name = next(known, "")
    return f"not comparable: {name} above" if name else ""


def together(several: Sequence[Comparison]) -> str:
    """Many comparisons of one metric, such as every file and record size of iozone: their verdicts and their ratios."""
    from collections import Counter
    from statistics import median

    counts = Counter(str(comparison.verdict) for comparison in several)
    counted = ", ".join(f"{count} {word}" for word, count in counts.most_common())
    ratios = [comparison.ratio for comparison in several if comparison.ratio is not None]
    size = f"; ratios {min(ratios):.3g} to {max(ratios):.3g}, median {median(ratios):.3g}" if ratios else ""
    return f"{len(several)} comparisons: {counted}{size} (`vtax report` and --json list each)"
