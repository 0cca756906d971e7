"""A drawing of Vega made small enough for a page that holds many: what is not seen goes, what repeats is said once.

The page itself says in words what a figure shows, so the words that Vega puts at every mark go too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from xml.etree import ElementTree

from vtax.figures.figure import DIGITS

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
UNSEEN = {"role", "class", "pointer-events", "cursor", "font-family", LINK}  # and all that begin with "aria-"
DEFAULTS = {("opacity", "1"), ("fill-opacity", "1"), ("stroke-width", "1"), ("transform", "translate(0,0)")}
LONG_NUMBER = re.compile(r"(?<!\d)\d++\.\d{2,}")
PLACE = re.compile(r"translate\(([^,()]+),([^,()]+)\)$")
NAMED = ("id", "href", "fill", "stroke", "clip-path")  # attributes that may name another element
SEVERAL = 3  # equal shapes that are worth a definition
Element = ElementTree.Element


def compact(svg: str, name: str) -> str:
    """The drawing as an element of a page, named after its figure; all identifiers in it begin with that name."""
    root = ElementTree.fromstring(svg)
    size = root.attrib["viewBox"]
    made = Element("svg", {"class": "static", "viewBox": _short(size), "aria-hidden": "true", "focusable": "false"})
    shapes: dict[str, str] = {}
    for child in _seen(root, name):
        made.append(child)
    _define(made, name, shapes)
    if shapes:
        definitions = Element("defs")
        definitions.extend(Element("path", {"id": place, "d": path}) for path, place in shapes.items())
        made.insert(0, definitions)
    return ElementTree.tostring(made, encoding="unicode")


def _seen(parent: Element, name: str) -> Iterator[Element]:
    """The children that draw something, without attributes that do not matter; groups that say nothing are opened."""
    for child in parent:
        tag = child.tag.removeprefix(SVG)
        attributes = dict(_attributes(child, name))
        inner = list(_seen(child, name))
        if tag in {"g", "a"}:
            if inner and not attributes:
                yield from inner
                continue
            if not inner:
                continue
        elif tag == "path" and (attributes.get("display") == "none" or set(attributes) <= {"d", "transform"}):
            continue  # in a group without a fill
        found = Element(tag, attributes)
        found.text = child.text
        found.extend(inner)
        yield found


def _attributes(element: Element, name: str) -> Iterator[tuple[str, str]]:
    for key, value in element.attrib.items():
        if key in UNSEEN or key.startswith("aria-") or (key, value) in DEFAULTS:
            continue
        text = _short(value) if key in {"d", "transform"} or len(value) > DIGITS else value
        if key == "id":
            text = f"{name}-{value}"
        elif key in NAMED:
            text = text.replace("url(#", f"url(#{name}-")
        yield key, text


def _short(text: str) -> str:
    """The same with a tenth of a pixel in every number."""
    return LONG_NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), text)


def _define(parent: Element, name: str, shapes: dict[str, str]) -> None:
    """Marks of one shape and colour in a row become uses of one definition, in a group with what they share."""
    for child in parent:
        _define(child, name, shapes)
    children = list(parent)
    for child in children:
        parent.remove(child)
    for shared, run in groupby(children, _shared):
        several = list(run)
        if not shared or len(several) < SEVERAL:
            parent.extend(several)
            continue
        attributes = dict(shared)
        place = shapes.setdefault(attributes.pop("d"), f"{name}-m{len(shapes)}")
        group = Element("g", attributes)
        for mark in several:
            x, y = PLACE.match(mark.attrib["transform"]).groups()  # type: ignore[union-attr]
            group.append(Element("use", {"href": f"#{place}", "x": x, "y": y}))
        parent.append(group)


def _shared(element: Element) -> tuple[tuple[str, str], ...]:
    """What a mark has in common with those like it; nothing for what is no mark."""
    if element.tag != "path" or not PLACE.match(element.attrib.get("transform", "")):
        return ()
    return tuple(sorted((key, value) for key, value in element.attrib.items() if key != "transform"))
