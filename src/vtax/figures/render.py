"""Figures as parts of the page and as files for a paper, drawn by Vega-Lite without a browser.

The same data give the same SVG and PNG, byte for byte: no dates, no random identifiers. A PDF has the same content; the
order of its objects (fonts, transparencies) is left to the library, which does not fix it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import vl_convert

from vtax.figures import theme, vega
from vtax.figures.compact import compact
from vtax.figures.drawings import svg_of
from vtax.figures.figure import FILE, Figure, Medium, Row, Scale, demand

FORMATS = ("svg", "pdf", "png")
PT_PER_IN, PNG_PER_IN = 72, 600
SIZE = re.compile(r'(<svg[^<>]{0,2000}) width="([\d.]{1,20})" height="([\d.]{1,20})"')
FONT_SIZE, SHRINK = re.compile(r'font-size="([\d.]+)px"'), 11 / 12
OVERHEAD = 95.0  # pt of a paper figure that are not rows: title, keys, axis
CELL_OVERHEAD = 24.0  # pt of one of several drawings that are not its plot
BUNDLE = "window.vegaEmbed = vegaEmbed;"
TOLERANCE = 2.0  # pt, of a figure that is then scaled to the width of a column
WORKERS = 2  # one draws while the other describes


def start() -> None:
    """Start the renderer, which takes 0.4 s, while something else is worked out."""
    Thread(target=vl_convert.vegalite_to_svg, args=({"data": {"values": []}, "mark": "point"},)).start()


# --- the page ---------------------------------------------------------------------------------------------------------


class Stills(Mapping[str, str]):
    """The drawing of each figure for the page, which is there without scripts and in print, by name. They are drawn in
    the order of `figures` while the page is put together, which waits only for what it has reached. Those that
    `directory` keeps are not drawn again."""

    def __init__(self, figures: Sequence[Figure], directory: Path | None = None) -> None:
        pool = ThreadPoolExecutor(WORKERS)
        self._drawn = {figure.name: pool.submit(still, figure, directory) for figure in figures}
        pool.shutdown(wait=False)

    def __getitem__(self, name: str) -> str:
        return self._drawn[name].result()

    def __iter__(self) -> Iterator[str]:
        return iter(self._drawn)

    def __len__(self) -> int:
        return len(self._drawn)


def still(figure: Figure, directory: Path | None = None) -> str:
    """One drawing for the page, as an element of it; its colours are variables of the page's style sheet."""
    demand(figure, Medium.PAGE)
    return compact(_svg(first_rows(figure), theme.PAGE, directory=directory), figure.name)


def live(figures: Sequence[Figure]) -> dict[str, Any]:
    """What the page's script draws from: descriptions with their data as columns, and every raw file once."""
    files: dict[str, int] = {}
    return {
        "config": theme.config(theme.PAGE),
        "figures": {figure.name: _live(first_rows(figure), files) for figure in figures},
        "files": list(files),
    }


def _live(figure: Figure, files: dict[str, int]) -> dict[str, Any]:
    drawings = figure.present() if figure.columns else ()
    found: dict[str, Any] = {
        "spec": vega.specification(figure, theme.PAGE, drawings),
        "columns": _columns(figure.data, files),
        "count": len(figure.data),
    }
    if figure.columns:
        found["panels"] = figure.columns
    if figure.choices:
        found["choices"] = [
            {"field": one.field, "label": one.label, "options": one.options, "first": one.first}
            for one in figure.choices
        ]
    if figure.unit is not None:
        unit = figure.unit
        found["unit"] = {"fields": unit.fields, "text": unit.text, "binary": unit.binary, "factor": unit.factor}
    return found


def _columns(data: Sequence[Row], files: dict[str, int]) -> dict[str, Any]:
    """Rows as columns: texts once each and their places, numbers as they are; null where a row lacks the field."""
    fields = dict.fromkeys(field for row in data for field in row)
    found: dict[str, Any] = {}
    for field in fields:
        values = [row.get(field) for row in data]
        if field == FILE:
            found[field] = [None if name is None else files.setdefault(str(name), len(files)) for name in values]
        elif any(isinstance(value, str) for value in values):
            places: dict[Any, int] = {}
            numbers = [None if value is None else places.setdefault(value, len(places)) for value in values]
            found[field] = {"texts": list(places), "places": numbers}
        else:
            found[field] = values
    return found


def library(directory: Path | None = None) -> str:
    """The script that draws in the page. Putting it together takes a second, so it is kept in `directory`."""
    kept = None if directory is None else directory / f"vega-{version('vl-convert-python')}.js"
    if kept is not None and kept.is_file():
        return kept.read_text(encoding="utf-8")
    text = _bundle()
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(".partial")
        partial.write_text(text, encoding="utf-8")
        partial.replace(kept)
    return text


@cache
def _bundle() -> str:
    text = str(vl_convert.javascript_bundle(BUNDLE)).replace("\r\n", "\n")
    if "</script" in text or "<!--" in text:
        raise ValueError("the script of Vega cannot be part of a page")
    return text


def first_rows(figure: Figure) -> Figure:
    """What the page draws of a figure of very many rows, with a word about it."""
    axis = figure.y
    if figure.most_rows is None or len(axis.values) <= figure.most_rows:
        return figure
    kept = _with_categories(figure, axis.values[: figure.most_rows])
    return replace(kept, caption=f"{figure.caption} The first {figure.most_rows} of {len(axis.values)} rows.".strip())


# --- paper ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PaperFigure:
    """A figure that fits a column and a page: its file's name, without an ending, and what its caption says."""

    name: str
    caption: str
    figure: Figure
    most: int  # options of its first choice that are drawn


def paper(figure: Figure) -> tuple[PaperFigure, ...]:
    """A figure for a paper, in as many parts as keep each on a page."""
    demand(figure, Medium.PAPER)
    most = _options_that_fit(figure)
    words = (figure.title, *_chosen(figure, most), figure.caption.removesuffix("."), figure.marks)
    caption = ". ".join(filter(None, words)) + "."
    parts = list(_parts(figure))
    if len(parts) == 1:
        return (PaperFigure(figure.name, caption, figure, most),)
    return tuple(
        PaperFigure(f"{figure.name}-part{number}", f"{caption} Part {number} of {len(parts)}.", part, most)
        for number, part in enumerate(parts, 1)
    )


def draw(one: PaperFigure, format: str) -> bytes:
    """The file of a figure in one of `FORMATS`, exactly as wide as a column."""
    svg = _svg(one.figure, theme.PAPER, one.most)
    width, height = _size(svg)
    height *= theme.PAPER.narrow / width
    if format == "svg":  # programs differ in what a number without a unit is
        return _text(_sized(svg, f"{theme.PAPER.narrow / PT_PER_IN:.4g}in", f"{height / PT_PER_IN:.4g}in")).encode()
    svg = _sized(svg, f"{theme.PAPER.narrow}", f"{height:.2f}")
    return bytes(vl_convert.svg_to_pdf(svg) if format == "pdf" else vl_convert.svg_to_png(svg, ppi=PNG_PER_IN))


def drawing(figure: Figure, look: theme.Look) -> str:
    """A figure as SVG in another size than those of the page and of a column."""
    svg = _svg(figure, look, None if not figure.choices else figure.choices[0].still)
    width, height = _size(svg)
    return _text(_sized(svg, f"{width:g}", f"{height:g}"))


def _text(svg: str) -> str:
    """Text is drawn with the reader's fonts, of which some are wider than the one that was measured."""
    return FONT_SIZE.sub(lambda found: f'font-size="{SHRINK * float(found[1]):.4g}px"', svg)


def _sized(svg: str, width: str, height: str) -> str:
    return SIZE.sub(lambda found: f'{found[1]} width="{width}" height="{height}"', svg, count=1)


def _chosen(figure: Figure, most: int) -> Iterator[str]:
    """What of the choices of the page is drawn."""
    for number, choice in enumerate(figure.choices):
        drawn = choice.drawn(most) if number == 0 else (choice.first,)
        if len(drawn) == 1 < len(choice.options):
            yield f"{choice.label}: {drawn[0]}"
        elif len(drawn) < len(choice.options):
            yield f"{choice.label}, {len(drawn)} of {len(choice.options)}: {theme.cut(', '.join(drawn), 200)}"


def _parts(figure: Figure) -> Iterator[Figure]:
    """The figure in parts of as many rows as a page holds."""
    axis = figure.y
    if axis.scale is not Scale.CATEGORY or len(figure.panels) > 1 or figure.columns or figure.choices:
        yield figure
        return
    room = (theme.PAPER_HEIGHT - OVERHEAD) / vega.row_height(axis, len(figure.present()), theme.PAPER)
    count = -(-len(axis.values) // max(1, int(room)))
    each = -(-len(axis.values) // max(1, count))
    for start in range(0, max(1, len(axis.values)), max(1, each)):
        yield _with_categories(figure, axis.values[start : start + each])


def _options_that_fit(figure: Figure) -> int:
    """How many options of the first choice a page holds."""
    if not figure.choices:
        return 1
    axis, environments, height = figure.y, len(figure.present()), theme.PAPER.height
    if axis.scale is Scale.CATEGORY:
        height = vega.row_height(axis, environments, theme.PAPER) * len(axis.values)
    per_row = vega.across(figure, theme.PAPER, 99)
    rows = max(1, int((theme.PAPER_HEIGHT - OVERHEAD) // (height + CELL_OVERHEAD)))
    each = -(-environments // per_row) if figure.columns else 1 / per_row
    return max(1, min(figure.choices[0].still, int(rows / each)))


def _with_categories(figure: Figure, values: Sequence[str | float]) -> Figure:
    """The figure with these rows of its vertical axis only."""
    axis = figure.y
    labels = tuple(axis.labels[axis.values.index(value)] for value in values) if axis.labels else ()
    panel = replace(figure.panels[0], y=replace(axis, values=tuple(values), labels=labels))
    return replace(figure.only(axis.field, [str(value) for value in values]), panels=(panel,))


# --- both -------------------------------------------------------------------------------------------------------------


def _svg(figure: Figure, look: theme.Look, most: int | None = None, directory: Path | None = None) -> str:
    """The drawing as SVG; on paper exactly as wide as a column."""
    rows, drawings = vega.still_rows(figure, most)
    config = theme.config(look) | {"aria": False}  # the page and captions say what a figure shows
    spec = vega.specification(figure, look, drawings) | {"config": config, "datasets": {"rows": rows}}
    if look.medium is Medium.PAPER and figure.title:
        spec["title"] = _heading(figure, look)
    spec = _readable(spec)
    svg = svg_of(spec, directory)
    if look.medium is Medium.PAPER and abs(missing := look.narrow - _size(svg)[0]) > TOLERANCE:
        _widen(spec, missing)
        svg = svg_of(spec, directory)
    return svg


def _readable(part: Any) -> Any:
    """The same with texts that XML can hold."""
    if isinstance(part, str):
        return theme.CONTROL.sub("\ufffd", part)
    if isinstance(part, dict):
        return {key: _readable(value) for key, value in part.items()}
    return [_readable(value) for value in part] if isinstance(part, list) else part


def _heading(figure: Figure, look: theme.Look) -> dict[str, Any]:
    lines = theme.wrapped(figure.title, 66)
    return {"text": lines, "anchor": "start", "frame": "bounds", "fontSize": look.font_px, "color": look.ink}


def _size(svg: str) -> tuple[float, float]:
    found = SIZE.match(svg)
    assert found is not None, svg[:200]
    return float(found[2]), float(found[3])


def _widen(spec: dict[str, Any], missing: float) -> None:
    """Give what is missing of the whole width to the plots, whose axes need what they need."""
    plots = [spec["spec"]] if "spec" in spec else spec.get("vconcat", [spec])
    count = spec.get("columns", 1)
    if "facet" in spec:
        spec["facet"]["header"]["labelLimit"] += missing / count
    for plot in plots:
        plot["width"] = max(20.0, plot["width"] + missing / count)
