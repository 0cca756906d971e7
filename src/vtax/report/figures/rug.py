"""Beside the answer: all ratios of an environment in one part of the machine, as ticks on the forest plot's axis."""

from __future__ import annotations

from collections.abc import Mapping

from vtax.report.figures.chart import slug
from vtax.report.figures.forest import Forest
from vtax.report.figures.svg import element, num, rect

WIDTH, HEIGHT = 1000.0, 18.0  # drawn over the whole width of its place
APART = 0.14  # share of the width between two numbers of the axis


def rugs(forest: Forest | None) -> Mapping[tuple[str, int], str]:
    """A drawing for each group and place of an environment that has a ratio."""
    found: dict[tuple[str, int], dict[str, list[float]]] = {}
    for line in forest.lines if forest is not None else ():
        by_verdict = found.setdefault((line.group, line.environment), {})
        for whisker in line.whiskers:
            by_verdict.setdefault(whisker.verdict, []).append(whisker.at)
    return {key: _svg(forest, verdicts) for key, verdicts in found.items() if forest is not None}


def ticks(forest: Forest) -> tuple[tuple[float, str], ...]:
    """Of the axis the 1 and what fits beside it."""
    kept = [(forest.one, "1")]
    for at, text in (forest.ticks[0], forest.ticks[-1]):
        if all(abs(at - other) > APART for other, _ in kept):
            kept.append((at, text))
    return tuple(sorted(kept))


def _svg(forest: Forest, verdicts: Mapping[str, list[float]]) -> str:
    low, high = (WIDTH * share for share in forest.margin)
    parts = [rect(low, 0, high - low, HEIGHT, "margin"), _lines([forest.one], 0, HEIGHT, "one")]
    for verdict, places in verdicts.items():
        parts.append(element("g", _lines(places, 3, HEIGHT - 6, "interval"), class_=f"v-{slug(verdict)}"))
    box = f"0 0 {num(WIDTH)} {num(HEIGHT)}"
    hidden = {"aria_hidden": "true", "focusable": "false", "preserveAspectRatio": "none"}
    return element("svg", "".join(parts), class_="strip rug", viewBox=box, **hidden)


def _lines(shares: list[float], top: float, length: float, kind: str) -> str:
    path = "".join(f"M{num(WIDTH * share)} {num(top)}v{num(length)}" for share in sorted(set(shares)))
    return element("path", d=path, class_=kind)
