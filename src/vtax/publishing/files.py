"""From an analysis to files: the report in every format, tables and figures for papers.

`report` makes texts and drawings without knowing any files; stored data is read here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vtax.analysis.claims import Claims, Compared, compare_claims
from vtax.analysis.records import Analysis
from vtax.evaluation.evaluate import Evaluation
from vtax.model.measurement import Measurement
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord
from vtax.publishing.formats import chosen
from vtax.reference import MUST_AGREE
from vtax.reference import report as report_of
from vtax.report.document.answer.model import Answer
from vtax.report.document.compose import document_of
from vtax.report.document.model import Document
from vtax.report.formats import Made
from vtax.report.records import Reference, ReportInput
from vtax.store import CLAIMS, Campaign
from vtax.tools import declared_metrics

THREE = 3  # environments from which another baseline shows something new


def start(formats: Sequence[str], figures: Sequence[str]) -> None:
    """Start what takes a while and needs no data."""
    from vtax.figures import render

    if figures or set(formats) - {"md", "xlsx"}:
        render.start()


def render(
    campaign: Campaign,
    found: Evaluation,
    formats: Sequence[str],
    figures: Sequence[str],
    *,
    published: Sequence[str] = (),
    cache: Path | None = None,
) -> list[Path]:
    """Write the report in `formats` and `figures`. Returns the written files, the page first. `published` names reports
    of others whose figures are shown; `cache` keeps the script of the page's figures.

    Raises UsageError for a report that is not known, EnvironmentMissing where no program here can make a PDF.
    """
    document = document_of(content_of(campaign, found, published))
    wanted = chosen(formats)
    images = list(dict.fromkeys([*figures, *(name for one in wanted for name in one.figures)]))
    captions = {}
    drawn: dict[str, bytes] = {}
    for place, content, caption in _figures(document, images) if images else ():
        drawn[place], captions[place] = content, caption
    made: dict[str, bytes] = {}
    for one in wanted:
        made |= one.files(document, Made(made, captions, cache))
    return [campaign.save(f"report/{place}", content) for place, content in (made | drawn).items()]


def _figures(document: Document, formats: Sequence[str]) -> Iterator[tuple[str, bytes, str]]:
    """Every figure for a paper in these formats: its path below `report/`, its bytes, its caption."""
    from vtax.figures.render import draw
    from vtax.report.figures.selection import paper_figures

    for one in paper_figures(document):
        for format in formats:
            yield f"figures/{one.name}.{format}", draw(one, format), one.caption


def content_of(campaign: Campaign, found: Evaluation, asked: Sequence[str]) -> ReportInput:
    """What the report is made from: the analysis and the campaign's records."""
    about, plan = campaign.about(), campaign.plan()
    declared = declared_metrics(plan.study.benchmarks)
    return ReportInput(
        analysis=found.analysis,
        against=tuple(found.against(name).analysis for name in other_baselines(found)),
        plan=plan,
        cells=campaign.cells(),
        trials=found.trials,
        readings=found.readings,
        versions=about["image"]["versions"],
        image_sha256=about["image"]["digest"],
        image_recipe=about["image"]["recipe"],
        workload=campaign.workload(),
        host_facts=about["host"],
        meanings={label: {m.name: m.meaning for m in known} for label, known in declared.items()},
        references=references(asked),
        asked=tuple(asked),
        imports=_imports(campaign),
        claims=compared_claims(campaign, found.measurements, found.trials),
        plan_frozen=found.seal.frozen,
        directory=shlex.quote(campaign.directory.resolve().name),  # where it lies is nobody else's business
    )


def answer(campaign: Campaign, analysis: Analysis) -> Answer:
    """What the report says first, for the terminal."""
    from vtax.report.document.answer.compose import answer_of

    trials = campaign.trials(texts=False)
    place = shlex.quote(str(campaign.directory))
    return answer_of(
        ReportInput(analysis=analysis, plan=campaign.plan(), cells=(), trials=tuple(trials), directory=place)
    )


def other_baselines(found: Evaluation) -> tuple[str, ...]:
    """The environments that others may be compared with instead of the study's baseline, where that says more than the
    comparison with the baseline read backwards."""
    plan, aside = found.plan, {*found.analysis.emulated, found.analysis.control}
    names = tuple(name for name in found.analysis.environments if name not in aside)
    if plan.origin is Origin.IMPORTED or len(names) < THREE:
        return ()
    return tuple(name for name in names if name != plan.study.baseline)


def compared_claims(
    campaign: Campaign, measurements: Sequence[Measurement], trials: Sequence[TrialRecord]
) -> tuple[Compared, ...]:
    """The published numbers that were given with imported logs, against the logs; none for other campaigns."""
    if not (campaign.directory / CLAIMS).exists():
        return ()
    return compare_claims(campaign.read(CLAIMS, Claims).claims, measurements, trials)


def _imports(campaign: Campaign) -> tuple[Mapping[str, Any], ...]:
    """The tables of imports into a campaign; none for a campaign that vtax ran, or where that record is lost."""
    try:
        tables = campaign.read_json("imports.json")
    except (OSError, ValueError, RecursionError):
        return ()
    return tuple(table for table in tables if isinstance(table, dict)) if isinstance(tables, list) else ()


def references(asked: Sequence[str]) -> tuple[Reference, ...]:
    """The published figures of some reports, as the page takes them; those under load left out. Raises UsageError."""
    from vtax.tools import alike

    found = []
    for known in map(report_of, asked):
        for figure in known.figures:
            benchmarks = sorted(alike(figure.benchmark, figure.metric))
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
                    n=figure.n,
                    ratio=known.ratio(figure),
                    corrected=figure.corrected,
                    caution=figure.caution,
                )
                for benchmark in benchmarks
                if "load" not in figure.labels
            ]
    return tuple(found)
