"""The page in a real browser: whole, quiet, usable by eye, keyboard and ear, and deaf to hostile text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe

from builders.pages import HOSTILE
from vtax.wording import printable

from .conftest import Opened, Visit

pytestmark = [pytest.mark.integration, pytest.mark.slow]

EMPTY = """() => [...document.querySelectorAll('figure.chart')].filter(figure => {
  const live = figure.querySelector('.live');
  const drawing = live || figure.querySelector('svg.static');
  const paths = drawing.querySelectorAll('path, rect, circle, image, use, line').length;
  const canvas = [...drawing.querySelectorAll('canvas')].some(c => c.width > 0 && c.height > 0);
  const box = drawing.getBoundingClientRect();
  return !(paths > 3 || canvas) || box.width < 50 || box.height < 40;
}).map(figure => figure.id)"""
WIDE = """() => document.documentElement.scrollWidth > document.documentElement.clientWidth
  ? [...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1 &&
      !e.closest('.scroll, nav, pre, .hidden, .skip')).slice(0, 5).map(e => e.outerHTML.slice(0, 120)) : []"""


MARKS = "document.querySelectorAll(`${figure} .live path[aria-roledescription=${mark}]`)"
DATA = (
    f"([figure, mark, name]) => [...{MARKS}].map(e => e.__data__.datum).filter(d => d.name === name).map(d => d.value)"
)
WIDTH = f"([figure, mark, name]) => {MARKS}[0].getBoundingClientRect().width"


def assert_quiet(found: Visit, page: Path) -> None:
    assert found.errors == []
    assert found.requests == [page.as_uri()]


def test_every_figure_is_drawn_with_the_numbers_of_the_analysis_and_nothing_is_fetched(
    visit: Opened, files: dict[str, Path]
) -> None:
    found = visit("whole")
    found.draw_all()
    marks = set(
        found.js("[...document.querySelectorAll('.live svg [role=graphics-symbol]')].map(e => e.ariaRoleDescription)")
    )
    assert {"bar", "point", "line mark", "rect mark", "rule mark", "text mark", "tick", "legend", "axis"} <= marks
    assert found.js(EMPTY) == []
    drawn = found.js("[...document.querySelectorAll('figure.chart')].map(f => f.dataset.drawn)")
    assert drawn.count("live") > 20
    bars = found.js(DATA, ["#fig-compute1-bars1", "bar", "StarDGEMM"])
    table = found.page.locator("#compute1 tbody tr").filter(has_text="StarDGEMM").locator("td .value").all_inner_texts()
    assert f"{bars[0]:.2f}" == f"{float(table[0].split(' ± ')[0]):.2f}"
    assert_quiet(found, files["whole"])


def test_without_scripts_every_figure_and_table_is_there(visit: Opened) -> None:
    page = visit("whole", script=False).page
    for summary in page.locator("details.part > summary").all():
        summary.click()
    figures = page.locator("figure.chart")
    assert figures.count() > 20
    for number in range(figures.count()):
        box = figures.nth(number).locator("svg.static").bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) > 60
    assert page.locator("#forest tbody tr:not(.heading)").count() > 10
    assert page.locator("select, input").count() == 0


def test_filters_of_the_forest_plot_work(visit: Opened, files: dict[str, Path]) -> None:
    found = visit("whole")
    found.open_all()
    page = found.page
    rows = "[...document.querySelectorAll('#forest tbody tr:not(.heading)')].filter(r => !r.hidden)"
    all_rows = found.js(f"{rows}.length")
    page.get_by_label("Metric holds").fill("hpl")
    names = found.js(f"{rows}.map(r => r.cells[0].textContent.toLowerCase())")
    assert 0 < len(names) < all_rows
    assert all("hpl" in name for name in names)
    page.get_by_label("Metric holds").fill("")
    page.locator("#forest-tools select").first.select_option("vm")
    assert set(found.js(f"{rows}.map(r => r.dataset.environment)")) == {"vm"}
    assert "of" in page.get_by_role("status").inner_text()
    page.locator("#forest-tools select").nth(1).select_option("slower")
    assert all("slower" in words for words in found.js(f"{rows}.map(r => r.dataset.verdicts)"))
    assert found.js("[...document.querySelectorAll('#forest tr.heading')].filter(r => !r.hidden).length") >= 1
    assert_quiet(found, files["whole"])


def test_a_finding_is_reached_by_its_id_and_opens(visit: Opened) -> None:
    page = visit("whole").page
    message = page.locator("#finding-T03")
    assert not message.is_visible()
    page.locator("nav a[href='#compute']").click()
    page.locator("#compute1 .found a").filter(has_text="T03").press("Enter")
    message.wait_for(state="visible")
    assert page.url.endswith("#finding-T03")
    assert "What to do: pass the host's CPU through" in message.inner_text()
    assert page.locator("#memory1 .found, #network1 .found").count() == 0


def test_links_open_what_is_folded_without_scripts_too(visit: Opened) -> None:
    for script in (True, False):
        page = visit("whole", script=script, at="#memory1").page
        page.locator("#memory1 table").first.wait_for(state="visible")
        assert not page.locator("#storage table").first.is_visible()


SCREEN = 800  # px
CLOSED = "[...document.querySelectorAll('main details')].filter(d => d.open).length"


def test_a_quick_study_takes_few_screens_and_answers_on_the_first(visit: Opened) -> None:
    found = visit("quick")
    assert found.js(CLOSED) == 0
    assert found.js("document.documentElement.scrollHeight") <= 12 * SCREEN
    lines = found.page.locator("#answer .outcome > summary")
    assert lines.count() >= 4
    for line in lines.all():
        box = line.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= SCREEN
    assert found.page.locator("h1").inner_text().startswith("Container: no measurable cost in CPU")


def test_a_line_opens_to_what_it_covers(visit: Opened) -> None:
    page = visit("quick", script=False).page
    line = page.locator("#answer .outcome").filter(has_text="Network")
    assert line.locator("table").count() == 1
    assert not line.locator("table").is_visible()
    line.locator("summary").click()
    assert line.locator("tbody tr").count() == 4
    assert line.locator("tbody tr").first.is_visible()


def test_everything_is_printed_also_what_is_folded(visit: Opened) -> None:
    found = visit("quick", width=794)
    found.page.emulate_media(media="print")
    assert found.js(CLOSED) == 0
    for place in (
        "#forest",
        "#plan table",
        "#emulated table",
        "#compute1 table",
        "#answer .outcome table",
        "#limits .limit ul",
    ):
        assert found.page.locator(place).first.is_visible(), place
    hidden = "e => e.checkVisibility() ? '' : e.outerHTML.slice(0, 80)"
    tables = "[...document.querySelectorAll('main table')].filter(e => !e.closest('.sources'))"
    assert [text for text in found.js(f"{tables}.map({hidden})") if text] == []


def test_tables_sort_and_return_to_their_order(visit: Opened) -> None:
    found = visit("whole")
    found.open_all()
    values = (
        "[...document.querySelectorAll('#forest tbody tr:not(.heading)')].map(r => Number(r.cells[3].dataset.sort))"
    )
    before = found.js(values)
    head = found.page.locator("#forest thead button").filter(has_text="Ratio")
    head.press("Enter")
    assert found.js(values) == sorted(before)
    assert found.page.locator("#forest th[aria-sort=ascending]").count() == 1
    head.press("Enter")
    assert found.js(values) == sorted(before, reverse=True)
    head.press("Enter")
    assert found.js(values) == before


def test_units_switch_in_tables_and_figures(visit: Opened) -> None:
    found = visit("whole")
    found.draw_all()
    cell = found.page.locator("#memory1 tbody tr").filter(has_text="StarSTREAM_Copy").first
    decimal = float(cell.locator(".u").first.inner_text().split(" ± ")[0])
    figure = ["#fig-memory1-bars1", "bar", "StarSTREAM_Copy"]
    (drawn, *_) = found.js(DATA, figure)
    width = found.js(WIDTH, figure)
    found.page.get_by_label("GiB/s").check()
    found.page.wait_for_function(f"() => ({DATA})({json.dumps(figure)})[0] !== {drawn}")
    binary = float(cell.locator(".u").first.inner_text().split(" ± ")[0])
    assert binary == pytest.approx(decimal * 1e9 / 2**30, rel=2e-3)
    assert "GiB/s" in cell.locator("th").inner_text()
    assert found.js(DATA, figure)[0] == pytest.approx(drawn * 1e9 / 2**30)
    assert found.js(WIDTH, figure) == pytest.approx(width, rel=0.02)  # the axis changes with its values
    assert "GiB/s" in (found.page.locator("#fig-memory1-bars1 .live").text_content() or "")
    found.page.get_by_label("GB/s (").check()
    found.page.wait_for_function(f"() => ({DATA})({json.dumps(figure)})[0] === {drawn}")


def test_a_file_size_can_be_chosen(visit: Opened) -> None:
    found = visit("whole")
    found.draw_all()
    anchor = found.js(
        "[...document.querySelectorAll('figure.chart')].map(f => f.id).find(i => i.endsWith('local-worker1'))"
    )
    points = f"document.querySelectorAll('#{anchor} .live path[aria-roledescription=point]')"
    shown = f"() => [...{points}].map(e => e.__data__.datum.value)"
    before = found.js(shown)
    found.page.locator(f"#{anchor} select").nth(1).select_option(index=0)
    found.page.wait_for_function(f"before => JSON.stringify(({shown})()) !== JSON.stringify(before)", arg=before)
    sizes = found.js(shown)
    assert len(set(before)) > 6
    assert len(sizes) < len(before)  # a record is never larger than its file


def test_a_number_leads_to_its_raw_files(visit: Opened) -> None:
    found = visit("whole")
    found.open_all()
    found.page.locator("#compute1 td a.note").first.click()
    row = found.page.locator("tr:target")
    row.wait_for(state="visible")
    assert row.locator("a").first.get_attribute("href") == "../trials/r01-host-hpcc-1/step0-master.stdout"


@pytest.mark.parametrize(
    ("name", "width", "dark", "rules"),
    [
        ("whole", 1280, False, None),
        ("whole", 400, False, None),
        ("whole", 1280, True, ["color-contrast"]),
        ("quick", 1280, False, None),
        ("quick", 400, True, ["color-contrast"]),
    ],
)
def test_axe_finds_nothing_and_nothing_sticks_out(
    visit: Opened, name: str, width: int, dark: bool, rules: list[str] | None
) -> None:
    """In the dark only colours differ."""
    found = visit(name, width=width, dark=dark)
    found.draw_all()
    assert found.js(WIDE) == []
    result = Axe().run(found.page, options={"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})})
    assert result.response["passes"] != []
    told = [(item["id"], [node["html"][:160] for node in item["nodes"][:4]]) for item in result.response["violations"]]
    assert told == [], json.dumps(told, indent=1)


@pytest.mark.parametrize(
    ("name", "width"), [("whole", 800), ("quick", 800), ("quick", 400), ("hostile", 1280), ("hostile", 400)]
)
def test_nothing_sticks_out(visit: Opened, name: str, width: int) -> None:
    found = visit(name, width=width)
    found.draw_all()
    assert found.js(WIDE) == []


@pytest.mark.parametrize("width", [1280, 1040, 800, 400])
def test_tables_of_three_environments_show_their_last_column(visit: Opened, width: int) -> None:
    """Only matrices of sizes may be wider than the page; they have a shadow where they go on."""
    found = visit("whole", width=width)
    found.js("document.querySelectorAll('details').forEach(d => { d.open = true })")
    wider = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
    assert found.js(f"{wider}.filter(e => !e.querySelector('.matrix')).map(e => e.ariaLabel)") == []
    assert found.js(f"{wider}.every(e => getComputedStyle(e).backgroundAttachment.includes('scroll'))")


def test_it_prints_as_drawn(visit: Opened) -> None:
    found = visit("whole", width=794)  # A4 at 96 dpi
    found.draw_all()
    found.page.emulate_media(media="print")
    assert found.js(WIDE) == []
    shown = "selector => [...document.querySelectorAll(selector)].map(e => getComputedStyle(e).display)"
    assert set(found.js(shown, ".live")) == {"none"}
    assert set(found.js(shown, "svg.static")) == {"block"}
    assert set(found.js(shown, "nav, .tools, .choices")) == {"none"}


def test_hostile_text_runs_nothing_and_stays_text(visit: Opened, files: dict[str, Path]) -> None:
    found = visit("hostile")
    found.draw_all()
    assert found.js("typeof window.hurt") == "undefined"
    assert found.js("document.scripts.length") == 3
    assert found.js("document.querySelectorAll('img, iframe, object, embed, form, base, link').length") == 0
    assert found.js("[...document.querySelectorAll('a')].filter(a => /^javascript:/i.test(a.href)).length") == 0
    assert printable(HOSTILE) in found.page.locator("#limits").inner_text()
    assert found.js(EMPTY) == []
    assert_quiet(found, files["hostile"])


def test_scripts_that_are_not_its_own_do_not_run(visit: Opened) -> None:
    found = visit("whole")
    found.js("const s = document.createElement('script'); s.textContent = 'window.hurt = 3'; document.body.append(s)")
    found.js("document.body.insertAdjacentHTML('beforeend', '<a id=bad onclick=\"window.hurt = 4\">x</a>')")
    found.page.locator("#bad").click()
    assert found.js("typeof window.hurt") == "undefined"
