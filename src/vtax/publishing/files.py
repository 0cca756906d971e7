"""From an analysis to files: the report in every format, tables and figures for papers.

`report` makes texts and drawings without knowing any files; stored data is read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vtax.errors import UsageError
from vtax.evaluation.evaluate import Evaluation
from vtax.report.records import Reference, ReportInput
from vtax.store import Campaign
from vtax.tools import benchmarks

REPORTS = ("html", "md", "pdf", "latex", "xlsx")
FIGURES = ("svg", "pdf", "png")


def check(formats: Sequence[str], figures: Sequence[str]) -> None:
    """Raises UsageError for an unknown format."""
    for kind, wanted, known in (("format", formats, REPORTS), ("figure format", figures, FIGURES)):
        for name in wanted:
            if name not in known:
                raise UsageError(f"there is no {kind} {name!r}", remedy=f"choose from {','.join(known)}")


def render(
    campaign: Campaign, found: Evaluation, formats: Sequence[str], figures: Sequence[str], *, with_reference: bool
) -> list[Path]:
    """Write the report in `formats` and `figures`. Returns the written files, the page first.

    Raises EnvironmentMissing where no program here can make a PDF.
    """
    from vtax.report.formats.html import render as html
    from vtax.report.formats.markdown import render as markdown

    content = content_of(campaign, found, with_reference)
    written = []
    if {"html", "pdf"} & set(formats):
        written.append(campaign.save("report/index.html", html(content).encode()))
    if "md" in formats:
        written.append(campaign.save("report/report.md", markdown(content).encode()))
    if "xlsx" in formats:
        from vtax.report.formats.spreadsheet import spreadsheet

        written.append(campaign.save("report/report.xlsx", spreadsheet(found.analysis)))
    if "pdf" in formats:
        written.append(campaign.save("report/report.pdf", _pdf(content, campaign)))
    return written + _paper(campaign, content, "latex" in formats, figures)


def content_of(campaign: Campaign, found: Evaluation, with_reference: bool) -> ReportInput:
    """What the report is made from: the analysis and the campaign's records."""
    about = campaign.about()
    return ReportInput(
        analysis=found.analysis,
        plan=campaign.plan(),
        cells=campaign.cells(),
        trials=tuple(campaign.with_texts(trial) for trial in found.trials),
        readings=found.readings,
        versions=about["image"]["versions"],
        image_sha256=about["image"]["digest"],
        image_recipe=about["image"]["recipe"],
        host_facts=about["host"],
        meanings={name: {m.name: m.meaning for m in known.metrics} for name, known in benchmarks().items()},
        references=references() if with_reference else (),
        imports=_imports(campaign),
        plan_frozen=found.seal.frozen,
    )


def _imports(campaign: Campaign) -> tuple[Mapping[str, Any], ...]:
    """The tables of imports into a campaign; none for a campaign that vtax ran, or where that record is lost."""
    try:
        tables = json.loads((campaign.directory / "imports.json").read_bytes())
    except (OSError, ValueError):
        return ()
    return tuple(table for table in tables if isinstance(table, dict)) if isinstance(tables, list) else ()


def references() -> tuple[Reference, ...]:
    """Every published figure, as the report takes it; those under load left out."""
    from vtax.reference import MUST_AGREE, reports

    found = []
    for known in reports():
        for figure in known.figures:
            benchmarks = ("hpcc", "hpl") if figure.metric == "HPL" else (figure.benchmark,)
            found += [
                Reference(
                    benchmark=benchmark,
                    metric=figure.metric,
                    value=figure.value,
                    low=figure.low,
                    high=figure.high,
                    unit=figure.unit,
                    source=known.key,
                    labels={name: figure.labels[name] for name in MUST_AGREE if name in figure.labels},
                    environment=figure.environment,
                    corrected=figure.corrected,
                    caution=figure.caution,
                )
                for benchmark in benchmarks
                if "load" not in figure.labels
            ]
    return tuple(found)


def _pdf(content: ReportInput, campaign: Campaign) -> bytes:
    """From the page where a browser is available, otherwise from the analysis by typst."""
    from vtax.publishing import pdf
    from vtax.report.figures.paper import plates
    from vtax.report.formats import typst

    if program := pdf.browser():
        return pdf.from_page(campaign.directory / "report" / "index.html", program)
    drawn = [(plates.draw(plate, "svg"), plate.caption) for plate in plates.ratio_figures(content)]
    return pdf.from_text(typst.source(content, drawn, pdf.missing()))


def _paper(campaign: Campaign, content: ReportInput, latex: bool, figures: Sequence[str]) -> list[Path]:
    """What a paper takes: figures below `report/figures`, tables and a document around them in `report/latex`."""
    from vtax.report.figures.paper import plates
    from vtax.report.formats.latex import document, tables

    wanted = list(dict.fromkeys([*figures, *(["pdf"] if latex else [])]))
    written, drawn = [], []
    for plate in plates.plates(content) if wanted else ():
        for format in wanted:
            place = f"report/figures/{plate.name}.{format}"
            written.append(campaign.save(place, plates.draw(plate, format)))
        drawn.append((f"../figures/{plate.name}.pdf", plate.caption))
    if latex:
        title = content.plan.study.name
        written.append(campaign.save("report/latex/tables.tex", tables(content.analysis).encode()))
        written.append(campaign.save("report/latex/report.tex", document(title, drawn).encode()))
    return written
