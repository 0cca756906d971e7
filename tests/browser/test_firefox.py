"""The page in Firefox: opens whole and quiet, draws, answers, and fits a narrow screen."""

from __future__ import annotations

import shutil
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from .firefox import Firefox
from .test_page import EMPTY, WIDE

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ONE_OF_EACH = """const seen = new Map();
for (const [id, figure] of Object.entries(JSON.parse(document.getElementById('data').textContent).figures)) {
  const marks = JSON.stringify(figure.spec).matchAll(/"mark":{"type":"(\\w+)"/g);
  for (const mark of marks) if (!seen.has(mark[1])) seen.set(mark[1], id);
}
return [...new Set(seen.values())];"""
ROWS = "return [...document.querySelectorAll('#forest tbody tr:not(.heading)')].filter(r => !r.hidden).length"
FILTER = """const input = document.querySelector('#forest-tools input');
input.value = arguments[0]; input.dispatchEvent(new Event('input'));"""
MIDDLE = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
return [box.x + box.width / 2, box.y + box.height / 2];"""


@pytest.fixture(scope="module")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    assert program, "no Firefox; scripts/bootstrap test installs one"
    with Firefox(program, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def draw(firefox: Firefox, anchor: str) -> str:
    firefox.js("document.getElementById(arguments[0]).scrollIntoView({behavior: 'instant', block: 'center'})", anchor)
    firefox.wait("return document.getElementById(arguments[0]).dataset.drawn", anchor)
    return str(firefox.js("return document.getElementById(arguments[0]).dataset.drawn", anchor))


def test_it_opens_draws_and_answers(firefox: Firefox, files: dict[str, Path]) -> None:
    firefox.open(files["whole"].as_uri())
    assert distinct_bytes(firefox.picture()) > 20
    firefox.js("document.querySelectorAll('details').forEach(d => { d.open = true })")
    rows = firefox.js(ROWS)
    firefox.js(FILTER, "hpl")
    assert 0 < firefox.js(ROWS) < rows
    firefox.js(FILTER, "")

    found = {anchor: draw(firefox, anchor) for anchor in firefox.js(ONE_OF_EACH)}
    assert len(found) > 3
    assert set(found.values()) == {"live"}
    assert firefox.js(f"return ({EMPTY})()") == []
    draw(firefox, "fig-compute1-bars1")
    firefox.point(*firefox.js(MIDDLE, "#fig-compute1-bars1 .live path[aria-roledescription=bar]"))
    firefox.wait("return document.querySelector('#vg-tooltip-element.visible')?.textContent.includes('n6')")

    assert firefox.errors() == []
    assert firefox.requests() == []
    assert firefox.js("return performance.getEntriesByType('resource').map(entry => entry.name)") == []


def test_nothing_sticks_out_of_a_narrow_screen(firefox: Firefox, files: dict[str, Path], tmp_path: Path) -> None:
    """Firefox makes no window as narrow as a telephone, but a frame."""
    outer = tmp_path / "frame.html"
    outer.write_text(f'<iframe src="{files["whole"].as_uri()}" width="400" height="800"></iframe>', encoding="utf-8")
    firefox.open(outer.as_uri())
    firefox.enter_frame()
    assert firefox.js("return innerWidth") == 400
    firefox.js("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert firefox.js(f"return ({WIDE})()") == []


def test_hostile_text_runs_nothing(firefox: Firefox, files: dict[str, Path]) -> None:
    firefox.open(files["hostile"].as_uri())
    assert firefox.js("return typeof window.hurt") == "undefined"
    assert firefox.js("return document.querySelectorAll('img, iframe, object, embed, form, base, link').length") == 0
    assert firefox.errors() == []
    assert firefox.requests() == []


def distinct_bytes(png: bytes) -> int:
    """How many different bytes are in a picture's data; an empty page has hardly any."""
    data, place = b"", 8
    while place < len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        if png[place + 4 : place + 8] == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += 12 + length
    return len(set(zlib.decompress(data)))
