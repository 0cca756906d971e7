"""The ladder: what each step from one environment to the next costs, as words and as a waterfall."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from vtax.analysis.records import Analysis, Ladder, LadderStep
from vtax.report.document.numbers import labels_text, ratio_text
from vtax.report.figures.chart import Chart, choice, plain, short
from vtax.report.figures.svg import around, cut, document, label, line, rect, tick_text

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 440.0, 58.0, 430.0, 30.0, 200.0


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


def waterfall(analysis: Analysis, anchor: str = "waterfall") -> Chart | None:
    """What is left of the first environment's performance after every step, in percent; None without a ladder."""
    several = [one for one in analysis.ladder if one.rungs and one.kind.has_ratio]
    several.sort(key=lambda one: not one.primary)
    if not several:
        return None
    traces, options = [], []
    for one in several:
        levels = _levels(one)
        names = [one.rungs[0].previous, *(rung.environment for rung in one.rungs)]
        traces.append(
            {
                "type": "waterfall",
                "name": plain(f"{one.label} {one.metric}"),
                "meta": {"role": "waterfall"},
                "x": [plain(name) for name in names],
                "measure": ["absolute", *["relative"] * len(one.rungs)],
                "y": [100, *(short(100 * (b - a)) for a, b in pairwise(levels))],
                "text": ["100 %", *(plain(_told(rung)) for rung in one.rungs)],
                "hovertemplate": "%{x}<br>%{text}<extra></extra>",
                "textposition": "outside",
            }
        )
        options.append((_name(one), [len(traces) - 1]))
    first = several[0]
    return Chart(
        anchor=anchor,
        title="What each step of the ladder costs",
        alt=f"Waterfall of {_name(first)}: " + "; ".join(f"{r.environment} {_told(r)}" for r in first.rungs),
        svg=_svg(first),
        traces=tuple(traces),
        layout={"yaxis": {"title": {"text": f"% of {plain(first.rungs[0].previous)}"}, "rangemode": "tozero"}},
        caption=f"{_name(first)}. Each bar is the step from the environment before it; brackets are its interval.",
        choices=(choice("Metric", options),) if len(options) > 1 else (),
        wide=True,
    )


def _levels(one: Ladder) -> list[float]:
    """Performance relative to the first environment: 1, and after each step."""
    levels = [1.0]
    for rung in one.rungs:
        levels.append(levels[-1] * rung.ratio)
    return levels


def _told(rung: LadderStep) -> str:
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


def _svg(one: Ladder) -> str:
    levels = _levels(one)
    y = around([0.0, *(100 * level for level in levels)], BOTTOM, TOP, zero=True)
    names = [one.rungs[0].previous, *(rung.environment for rung in one.rungs)]
    step = (RIGHT - LEFT) / len(names)
    parts = [label(0, 12, cut(_name(one), 66), "head")]
    for tick in y.ticks(5):
        parts += [
            line(LEFT, y(tick), RIGHT, y(tick), "grid"),
            label(LEFT - 6, y(tick) + 3.5, tick_text(tick), "tick", "end"),
        ]
    for i, name in enumerate(names):
        x = LEFT + i * step + step * 0.15
        before = 0.0 if i == 0 else levels[i - 1]
        top, bottom = max(before, levels[i]), min(before, levels[i])
        kind = "whole" if i == 0 else "fall" if levels[i] < before else "rise"
        height = y(100 * bottom) - y(100 * top)
        parts.append(rect(x, y(100 * top), step * 0.7, max(1.5, height), f"bar {kind}"))
        told = "100 %" if i == 0 else f"× {ratio_text(one.rungs[i - 1].ratio)}"
        parts.append(label(x + step * 0.35, y(100 * top) - 4, told, "value", "middle"))
        parts.append(label(x + step * 0.35, BOTTOM + 14, cut(name, max(4, int(step / 6))), "tick", "middle"))
        if i < len(names) - 1:
            parts.append(line(x + step * 0.7, y(100 * levels[i]), x + step, y(100 * levels[i]), "base"))
    return document(WIDTH, BOTTOM + 22, parts)
