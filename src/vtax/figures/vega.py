"""From a description to a Vega-Lite specification, as plain dictionaries."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from vtax.figures import theme
from vtax.figures.figure import ENVIRONMENT, FILE, Axis, Colours, Figure, Layer, Mark, Medium, Panel, Row, Scale
from vtax.figures.theme import Look

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
PANEL = "panel"  # the field that separates drawings next to each other
WHOLE_AXIS = frozenset({Mark.BAND, Mark.LIMIT, Mark.REFERENCE})  # marks that have a place on one axis only
STEPS = ("total", "gain", "loss")  # what `by` a step colours
INKS = ("light", "dark")
INSIDE = 0.18  # of a row with several environments that is left between it and the next

Spec = dict[str, Any]


def specification(figure: Figure, look: Look, drawings: Sequence[str] = ()) -> Spec:
    """The whole figure but for its data, which is the source named "rows". `drawings` are the values of the field
    "panel", which lie next to each other."""
    inner = _panels(figure, look, len(drawings))
    spec: Spec = {"$schema": SCHEMA, "data": {"name": "rows"}}
    if not drawings:
        return spec | inner | _fit(figure)
    per_row = across(figure, look, len(drawings))
    head: Spec = {"field": PANEL, "type": "nominal", "title": None, "sort": list(drawings)}
    head["header"] = {"labelLimit": inner["width"]}
    if max(map(len, drawings)) * 0.6 * look.font_px > inner["width"]:
        head["header"]["labelExpr"] = "split(datum.label, ' · ')"  # a line for each part
    return spec | {
        "facet": head,
        "columns": per_row,
        "spec": inner,
        "spacing": {"row": 8 * look.size, "column": 20 * look.size},
    }


def _fit(figure: Figure) -> Spec:
    """One drawing takes the whole width, whatever its axis needs; several have the width that they were given."""
    return {} if len(figure.panels) > 1 else {"autosize": {"type": "fit-x", "contains": "padding"}}


def across(figure: Figure, look: Look, count: int) -> int:
    """How many drawings lie next to each other: those of one choice stay together."""
    most = figure.across if look.medium is Medium.PAGE else 3 if figure.columns else 2
    together = len(figure.present()) if figure.columns else 1
    return min(count, max(1, most // together) * together if together <= most else most)


def _panels(figure: Figure, look: Look, drawings: int) -> Spec:
    made = [_panel(figure, panel, look, drawings, last=panel is figure.panels[-1]) for panel in figure.panels]
    if len(made) == 1:
        return made[0]
    return {"vconcat": made, "spacing": 14 * look.size, "resolve": {"scale": {"x": "shared"}}}


def _panel(figure: Figure, panel: Panel, look: Look, drawings: int, *, last: bool) -> Spec:
    layers = [_layer(figure, panel, layer, look, drawings, last=last) for layer in panel.layers]
    return {"width": _width(figure, look, drawings), "height": _height(figure, panel, look), "layer": layers}


def _width(figure: Figure, look: Look, drawings: int) -> float:
    """The width of one plot. A single one takes the whole width, its axis included; others share what axes leave."""
    whole = look.wide if figure.wide else look.narrow
    if not drawings and len(figure.panels) == 1:
        return whole
    texts = [str(text) for panel in figure.panels for text in panel.y.labels or panel.y.values]
    letters = max(5, *(len(text[: look.letters]) for text in texts or [""]))
    beside = look.font_px * (0.55 * letters + 3)
    count = across(figure, look, drawings) if drawings else 1
    return round((whole - beside) / count - 20 * look.size, 1)


def _height(figure: Figure, panel: Panel, look: Look) -> Any:
    axis = panel.y
    if axis.scale is not Scale.CATEGORY:
        return round(look.height * (panel.height or 1.0), 1)
    height = row_height(axis, len(figure.present()), look) * (panel.height or 1.0)
    if not axis.offset:
        return {"step": height}
    return {"step": round(height * (1 - INSIDE) / max(1, len(figure.present())), 2), "for": "offset"}


def row_height(axis: Axis, environments: int, look: Look) -> float:
    """Room of a category: for the lines of its name, and for all its environments."""
    lines = max(len(theme.wrapped(str(text), look.letters)) for text in axis.labels or axis.values)
    text = 1.2 * look.font_px * lines
    return max(text, look.lane * environments / (1 - INSIDE) if axis.offset else look.row)


# --- layers -----------------------------------------------------------------------------------------------------------


def _layer(figure: Figure, panel: Panel, layer: Layer, look: Look, drawings: int, *, last: bool) -> Spec:
    coloured = bool(layer.by)
    mark = theme.mark(layer.mark, look, coloured=coloured)
    if layer.mark in {Mark.TEXT, Mark.TEXT_END, Mark.TEXT_ABOVE, Mark.TEXT_RIGHT, Mark.FAILURE}:
        mark["fontSize"] = look.font_px if layer.mark is Mark.FAILURE else look.font_px * 0.95
    encoding = _places(figure, panel, layer, look, drawings, last=last)
    if layer.by:
        encoding |= _colour(figure, panel, layer, look)
    if layer.text:
        encoding["text"] = {"field": layer.text, "type": "nominal"}
    if layer.group:
        encoding["detail"] = {"field": layer.group, "type": "nominal"}
    if layer.hover and look.medium is Medium.PAGE:
        encoding["tooltip"] = [_hover(field, title) for field, title in layer.hover]
    return {"transform": [{"filter": {"field": "of", "equal": layer.rows}}], "mark": mark, "encoding": encoding}


def _hover(field: str, title: str) -> Spec:
    """Text as it is; a number to four digits."""
    if field.endswith("_text") or field in {ENVIRONMENT, FILE, "name", "round"}:
        return {"field": field, "title": title}
    return {"field": field, "title": title, "type": "quantitative", "format": ",.4~g"}


def _places(figure: Figure, panel: Panel, layer: Layer, look: Look, drawings: int, *, last: bool) -> Spec:
    """Where a mark is on both axes."""
    found: Spec = {}
    for name, axis in (("x", figure.x), ("y", panel.y)):
        field, end = getattr(layer, name), getattr(layer, f"{name}2")
        if layer.mark in WHOLE_AXIS and not field:
            continue
        if name == "x" and layer.mark is Mark.TEXT_END:
            found["x"] = {"value": "width"}
            continue
        room = 62 if name == "x" or not panel.height else int(look.height * panel.height / (0.5 * look.font_px))
        found[name] = _position(axis, field or axis.field, look, name, drawings, room, labelled=name == "y" or last)
        if end:
            found[f"{name}2"] = {"field": end}
        elif layer.mark in {Mark.BAR, Mark.PALE_BAR} and axis.scale is Scale.LOG and axis.domain:
            found[f"{name}2"] = {"datum": axis.domain[0]}
        if layer.mark is Mark.LIMIT and axis.scale is Scale.CATEGORY:
            found[name]["bandPosition"] = 0  # between two categories
        if axis.offset and layer.mark not in WHOLE_AXIS:
            scale = {"domain": list(figure.present())}
            found[f"{name}Offset"] = {"field": axis.offset, "type": "nominal", "scale": scale}
    return found


def _position(axis: Axis, field: str, look: Look, name: str, drawings: int, room: int, *, labelled: bool) -> Spec:
    """A place on one axis; an axis that another panel shows below is not labelled."""
    hidden = {} if labelled else {"labels": False, "ticks": False, "title": None}
    if axis.scale is Scale.CATEGORY:
        scale: Spec = {"domain": list(axis.values)} if axis.values else {}
        scale |= {"paddingInner": INSIDE, "paddingOuter": 0.08} if axis.offset else {}
        return {"field": field, "type": "ordinal", "scale": scale, "axis": _category_axis(axis, look, name) | hidden}
    scale = {"type": str(axis.scale), "nice": False}
    scale |= {"domain": list(axis.domain)} if axis.domain else {"zero": axis.zero}
    about: Spec = {
        "title": _title(axis, room),
        "tickCount": 4 if drawings > 2 or name == "y" else 6,
        "grid": not axis.labels,
    }
    about |= {"format": ".0%"} if axis.percent else {"labelExpr": _labels(axis)}
    about |= {"values": list(axis.values), "labelOverlap": "greedy"} if axis.values else {}
    return {"field": field, "type": "quantitative", "stack": None, "scale": scale, "axis": about | hidden}


def _title(axis: Axis, letters: int = 62) -> list[str] | None:
    return theme.wrapped(axis.title, letters) if axis.title else None


def _category_axis(axis: Axis, look: Look, name: str) -> Spec:
    lines = look.letters if name == "y" else 14
    texts = axis.labels or tuple(map(str, axis.values))
    split = {str(value): theme.wrapped(text, lines) for value, text in zip(axis.values, texts, strict=True)}
    found: Spec = {"title": _title(axis), "ticks": False, "domain": False, "labelLimit": look.narrow * 0.6}
    if name == "x":
        found |= {"labelAngle": 0, "labelOverlap": "greedy"}
    changed = {key: lines for key, lines in split.items() if lines != [key]}
    if changed:
        found["labelExpr"] = f"{_lookup(changed)} || datum.label"
    return found


def _lookup(texts: Mapping[str, Any]) -> str:
    """An expression that says the text of a category. Everything in it is a literal, so no text becomes a program."""
    return f"{json.dumps(list(texts.values()))}[indexof({json.dumps(list(texts))}, datum.value + '')]"


def _labels(axis: Axis) -> str:
    """An expression for the text of a tick: what the axis says, else that of `theme.tick_text`."""
    if axis.values:
        texts = axis.labels or tuple(theme.tick_text(float(value)) for value in axis.values)
        return f"{json.dumps(list(texts))}[indexof({json.dumps(list(axis.values))}, datum.value)]"
    small = "datum.value != 0 && (abs(datum.value) < 0.0001 || abs(datum.value) >= 1e7)"
    return f"{small} ? replace(format(datum.value, '.3~e'), 'e+', 'e') : format(datum.value, ',.6~g')"


# --- colours ----------------------------------------------------------------------------------------------------------


def _colour(figure: Figure, panel: Panel, layer: Layer, look: Look) -> Spec:
    """Colour, and with it shape or stroke, by what `by` names."""
    if layer.by == ENVIRONMENT:
        return _environments(figure, panel, layer, look)
    if layer.by == "step":
        scale = {"domain": list(STEPS), "range": [look.soft, look.good, look.bad]}
        return {"color": {"field": "step", "type": "nominal", "scale": scale, "legend": None}}
    if layer.by == "ink":
        scale = {"domain": list(INKS), "range": ["#ffffff", "#111111"]}
        return {"fill": {"field": "ink", "type": "nominal", "scale": scale, "legend": None}}
    assert figure.colours is not None
    return {"color": _numbers(figure.colours, layer.by, look)}


def _environments(figure: Figure, panel: Panel, layer: Layer, look: Look) -> Spec:
    present = figure.present()
    places = [figure.environments.index(name) for name in present]
    named = panel.y.field == ENVIRONMENT or figure.x.field == ENVIRONMENT or figure.columns == ENVIRONMENT
    most = int(0.8 * look.narrow / look.font_px)
    texts = {name: theme.cut(name, most) for name in present if theme.cut(name, most) != name}
    key: Any = {"title": None, "columns": 0 if look.medium is Medium.PAGE else 3}
    marks = {layer.mark for panel in figure.panels for layer in panel.layers}
    key |= {"symbolStrokeWidth": 0} if marks & {Mark.MEAN, Mark.RUN} else {}  # or its outline would be dashed
    key |= {"labelExpr": f"{_lookup(texts)} || datum.label"} if texts else {}
    about = {"field": ENVIRONMENT, "type": "nominal", "legend": None if named or len(figure.environments) == 1 else key}

    def scale(values: Sequence[Any]) -> Spec:
        return about | {"scale": {"domain": list(present), "range": list(values)}}

    colours = scale([look.environment(place) for place in places])
    found = {"color": colours}
    if layer.mark is Mark.VERDICT:
        found["shape"] = _verdicts(figure)
    if layer.mark in {Mark.MEAN, Mark.RUN}:
        found["shape"] = scale([theme.SHAPES[place % theme.PLACES] for place in places])
    if layer.mark in {Mark.LINE, Mark.STEP}:
        dashes = scale([list(theme.DASHES[place % theme.PLACES]) for place in places])
        found["strokeDash"] = dashes | {"legend": None}
    return found


def _verdicts(figure: Figure) -> Spec:
    """The shapes of the verdicts that appear."""
    seen = [word for word in dict.fromkeys([*theme.VERDICTS, *_words(figure)]) if word in _words(figure)]
    scale = {"domain": seen, "range": [theme.OUTLINES[theme.mark_of(word).glyph] for word in seen]}
    key = {"title": None, "orient": "bottom", "columns": 4}
    return {"field": "verdict", "type": "nominal", "scale": scale, "legend": key}


def _words(figure: Figure) -> dict[str, None]:
    return dict.fromkeys(str(row["verdict"]) for row in figure.data if "verdict" in row)


def _numbers(colours: Colours, field: str, look: Look) -> Spec:
    ticks = (theme.log_ticks if colours.logarithmic else theme.linear_ticks)(colours.low, colours.high, 5)
    ends = [colours.low, colours.high]
    kind = "log" if colours.logarithmic else "linear"
    scale: Spec = {"type": kind, "domain": ends, "range": list(theme.SEQUENTIAL), "interpolate": "rgb"}
    scale |= {} if colours.logarithmic else {"zero": False}
    axis = Axis(field, values=tuple(ticks))
    key: Spec = {"title": theme.cut(colours.title, 40), "values": ticks, "labelExpr": _labels(axis)}
    key |= {"gradientLength": look.narrow * 0.55, "gradientThickness": 8 * look.size, "tickCount": len(ticks)}
    return {"field": field, "type": "quantitative", "scale": scale, "legend": key}


# --- rows -------------------------------------------------------------------------------------------------------------


def still_rows(figure: Figure, most: int | None = None) -> tuple[list[Row], tuple[str, ...]]:
    """The rows that are drawn where nothing can be chosen, and the titles of the drawings next to each other: one for
    each option of the first choice and each value of `columns`. `most` limits these options."""
    fields, several = [], []
    shown = figure
    for number, choice in enumerate(figure.choices):
        drawn = choice.drawn(most) if number == 0 else (choice.first,)
        shown = shown.only(choice.field, drawn)
        if number == 0 and len(drawn) > 1:
            fields.append(choice.field)
            several.append(drawn)
    if figure.columns:
        fields.append(figure.columns)
        several.append(shown.present())
    if not fields:
        return list(shown.data), ()
    return _next_to_each_other(shown, fields, several)


def _next_to_each_other(
    figure: Figure, fields: Sequence[str], several: Sequence[Sequence[str]]
) -> tuple[list[Row], tuple[str, ...]]:
    """A row that belongs to no drawing belongs to all of them."""
    combinations = list(product(*several))
    titles = {names: theme.cut(" · ".join(names), 44) for names in combinations}
    found: list[Row] = []
    drawn: set[str] = set()
    for row in figure.data:
        own = [
            names for names in combinations if all(row.get(f) in (None, n) for f, n in zip(fields, names, strict=True))
        ]
        found += [{**row, PANEL: titles[names]} for names in own]
        drawn |= {titles[names] for names in own if len(own) == 1}
    return [row for row in found if row[PANEL] in drawn], tuple(t for t in dict.fromkeys(titles.values()) if t in drawn)
