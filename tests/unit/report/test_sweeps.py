"""Entries that a `matrix` made: a figure of each primary metric over each parameter."""

from __future__ import annotations

import pytest

from builders.pages import THREADS, Points, swept
from vtax.figures.figure import Figure
from vtax.report.document.compose import document_of
from vtax.report.figures.selection import page_figures
from vtax.report.figures.sweeps import sweeps
from vtax.report.formats import html


def figures(points: Points = THREADS) -> tuple[Figure, ...]:
    return tuple(sweeps(document_of(swept(points))))


def test_a_sweep_is_drawn_over_its_parameter() -> None:
    figure = next(one for one in figures() if "events_rate" in one.title)
    assert figure.title.startswith("cpu events_rate over threads")
    host = [row for row in figure.of("mean") if row["environment"] == "host"]
    assert [row["size"] for row in host] == [1.0, 2.0, 64.0]
    first, second, third = (float(row["value"] or 0) for row in host)
    assert [second / first, third / first] == pytest.approx([2, 3])
    assert figure.x.scale.value == "log"
    assert not figure.choices
    assert "from threads 1 to 64" in figure.alt


def test_the_other_parameter_can_be_chosen() -> None:
    both = {f"cpu-{n}-{size}": {"threads": n, "size": size} for n in (1, 2) for size in ("small", "large")}
    (figure,) = (one for one in figures(both) if "events_rate" in one.title)
    assert figure.choices[0].options == ("size small", "size large")
    assert {row["option"] for row in figure.of("mean")} == {"size small", "size large"}


def test_what_was_emulated_is_not_drawn_next_to_what_is_compared() -> None:
    report = swept(THREADS)
    emulated = report.analysis.environments[-1]
    analysis = report.analysis.model_copy(update={"emulated": (emulated,)})
    (figure,) = (
        one
        for one in sweeps(document_of(report.model_copy(update={"analysis": analysis})))
        if "events_rate" in one.title
    )
    assert emulated not in {row["environment"] for row in (*figure.of("mean"), *figure.of("run"))}
    assert {row["environment"] for row in figure.of("mean")} == set(report.analysis.environments) - {emulated}
    assert "emulated and was not drawn" in figure.caption
    assert "not drawn" not in figures()[0].caption


def test_a_parameter_of_words_has_no_axis() -> None:
    words = {f"cpu-{size}": {"size": size} for size in ("small", "large")}
    assert figures(words) == ()


def test_the_page_shows_every_figure_of_a_sweep() -> None:
    document = document_of(swept(THREADS))
    assert not document.ladder.rows
    page = html.render(document)
    names = [one.name for one in page_figures(document).every]
    assert any(name.startswith("fig-sweep-") for name in names)
    assert [
        name
        for name in names
        if page.count(f'<figure class="chart" id="{name}">') + page.count(f'<figure class="chart wide" id="{name}">')
        != 1
    ] == []
