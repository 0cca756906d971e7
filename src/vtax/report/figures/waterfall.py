"""The ladder: what each step from one environment to the next costs, as words and as a waterfall."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vtax.analysis.records import Analysis, Ladder, LadderStep
from vtax.figures.figure import Axis, Choice, Figure, Layer, Mark, Panel, Row, Scale, Value, rows
from vtax.report.document.numbers import labels_text, ratio_text

KIND = "waterfall"


@dataclass(frozen=True)
class Step:
    """A step of which the interval does not hold 1, in words."""

    label: str
    sentence: str


def steps_of(analysis: Analysis, environment: str) -> list[Step]:
    """For each primary metric the largest step that leads up to `environment`, where its interval supports it."""
    found = []
    for one in analysis.ladder:
        names = [rung.environment for rung in one.rungs]
        if not one.primary or environment not in names:
            continue
        rungs = [rung for rung in one.rungs[: names.index(environment) + 1] if supported(rung)]
        if rungs:
            largest = max(rungs, key=lambda rung: abs(rung.effect))
            found.append(
                Step(
                    one.label,
                    f"On the ladder of {one.label} {one.metric} the largest step is from {largest.previous} to "
                    f"{largest.environment}: {ratio_text(largest.ratio)}"
                    f"{_ends(largest)}.",
                )
            )
    return found


def supported(rung: LadderStep) -> bool:
    """Whether the interval of a step lies on one side of 1, and nothing says that the two do not compare."""
    if rung.low is None or rung.high is None or rung.blocker:
        return False
    return rung.low > 1 or rung.high < 1


def waterfall(analysis: Analysis) -> Figure | None:
    """What is left of the first environment's performance after every step, in percent; None without a ladder."""
    several = [one for one in analysis.ladder if one.rungs and one.kind.has_ratio]
    several.sort(key=lambda one: not one.primary)
    if not several:
        return None
    first = several[0]
    data = [row for one in several for row in _steps(one)]
    names = tuple(dict.fromkeys(str(row["to"]) for row in data))
    options = tuple(dict.fromkeys(map(_name, several)))
    highest = max(float(row["top"] or 0.0) for row in data)
    hover = (("name", "environment"), ("text_text", "step"))
    return Figure(
        name="waterfall",
        kind=KIND,
        title="What each step of the ladder costs",
        alt=f"Waterfall of {_name(first)}: " + "; ".join(f"{r.environment} {_in_words(r)}" for r in first.rungs),
        caption="Each bar is the step from the environment before it; brackets are its interval.",
        data=tuple(data),
        panels=(
            Panel(
                (
                    Layer(Mark.BAR, "step", y="before", y2="after", by="step", hover=hover),
                    Layer(Mark.TEXT_ABOVE, "step", y="top", text="label"),
                ),
                Axis("after", f"% of {first.rungs[0].previous}", domain=(0.0, 1.3 * highest)),
            ),
        ),
        x=Axis("to", scale=Scale.CATEGORY, values=names),
        environments=analysis.environments,
        choices=(Choice("metric", "Metric", options, options[0], still=4),),
        wide=True,
    )


def _steps(one: Ladder) -> Iterator[Row]:
    levels = [100 * level for level in _levels(one)]
    names = [one.rungs[0].previous, *(rung.environment for rung in one.rungs)]
    for place, name in enumerate(names):
        before, after = levels[place - 1] if place else 0.0, levels[place]
        words = _in_words(one.rungs[place - 1]) if place else "100 %"
        row: dict[str, Value] = {"metric": _name(one), "to": name, "before": before, "after": after}
        row |= {"step": "total" if not place else "loss" if after < before else "gain", "top": max(before, after)}
        yield from rows("step", [row | {"label": words.replace(" [", "\n["), "text_text": words, "name": name}])


def _levels(one: Ladder) -> list[float]:
    """Performance relative to the first environment: 1, and after each step."""
    levels = [1.0]
    for rung in one.rungs:
        levels.append(levels[-1] * rung.ratio)
    return levels


def _in_words(rung: LadderStep) -> str:
    if rung.blocker:
        return f"× {ratio_text(rung.ratio)}, not comparable"
    return f"× {ratio_text(rung.ratio)}{_ends(rung)}"


def _ends(rung: LadderStep) -> str:
    """The interval of a step, where it has one."""
    if rung.low is None or rung.high is None:
        return ""
    return f" [{ratio_text(rung.low)}, {ratio_text(rung.high)}]"


def _name(one: Ladder) -> str:
    return ", ".join(word for word in (f"{one.label} {one.metric}", labels_text(one.labels)) if word)
