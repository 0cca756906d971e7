"""A surface over two sizes, seen from the side, for paper: polygons from the back to the front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vtax.report.figures.palette import SEQUENTIAL, shade_class
from vtax.report.figures.svg import Scale, label, num

Corner = tuple[int, int]  # place on both axes
WIDTH, HEIGHT = 216.0, 150.0
SKEW, DEPTH, RISE = 0.62, 52.0, 78.0  # how far the second axis leans, its depth, and the height of the values, in px


def drawing(
    values: Mapping[Corner, float],
    scale: Scale,
    axes: tuple[Sequence[str], Sequence[str]],
    origin: tuple[float, float],
    title: str,
) -> list[str]:
    """One surface at `origin`; `values` are by place on the axes, `scale` is that of the colour and of the height."""
    columns, rows = len(axes[1]), len(axes[0])
    width = WIDTH - DEPTH * SKEW - 34

    def spot(corner: Corner, share: float) -> tuple[float, float]:
        outer, inner = corner
        back = outer / max(1, rows - 1)
        x = origin[0] + 12 + inner / max(1, columns - 1) * width + back * DEPTH * SKEW
        return x, origin[1] + HEIGHT - 26 - back * DEPTH - share * RISE

    parts = [label(origin[0], origin[1] + 9, title, "head")]
    floor = [spot(corner, 0.0) for corner in ((0, 0), (0, columns - 1), (rows - 1, columns - 1), (rows - 1, 0))]
    parts.append(f'<path class="floor" d="M{"L".join(f"{num(x)} {num(y)}" for x, y in floor)}z"/>')
    for outer in range(rows - 2, -1, -1):
        for inner in range(columns - 1):
            corners = [(outer, inner), (outer, inner + 1), (outer + 1, inner + 1), (outer + 1, inner)]
            known = [corner for corner in corners if corner in values]
            if len(known) < 3:  # a record is never larger than its file
                continue
            shares = [scale.share(values[corner]) for corner in known]
            places = (spot(corner, share) for corner, share in zip(known, shares, strict=True))
            path = "L".join(f"{round(x)} {round(y)}" for x, y in places)
            colour = SEQUENTIAL[shade_class(sum(shares) / len(shares))]
            parts.append(f'<path class="facet" fill="{colour}" d="M{path}z"/>')
    x, y = spot((0, 0), 0.0)
    parts.append(label(x, y + 14, f"record {axes[1][0]} to {axes[1][-1]} →", "tick"))
    parts.append(label(origin[0] + WIDTH + 6, y + 14, f"file to {axes[0][-1]} ↗", "tick", "end"))
    return parts
