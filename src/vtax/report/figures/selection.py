"""Which figures a report has: those of the whole campaign, and those of each entry, as its tool lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from vtax.figures.bars import KIND as BARS
from vtax.figures.bars import bars
from vtax.figures.entry import EntryData, ToolFigures
from vtax.figures.figure import Figure, Medium, NotDrawn
from vtax.figures.intervals import KIND as RATIOS
from vtax.figures.render import PaperFigure, paper
from vtax.figures.sweep import KIND as SWEPT
from vtax.figures.theme import slug
from vtax.model.trial import Status
from vtax.report.document.model import Document, Entry
from vtax.report.figures import sweeps, timeline, waterfall
from vtax.report.figures.machines import machine_figure
from vtax.report.figures.ratios import ratio_figures
from vtax.report.figures.topics import topics, topics_of
from vtax.tools import tools

LONGEST = 80  # letters of a name, which is one of a file


@dataclass(frozen=True)
class PageFigures:
    """The figures of a page: those of machines, of the ladder and of sweeps above all entries, at the end, and by the
    id of an entry's place in the page. `not_drawn` says why a figure that a reader may look for is not there."""

    machines: tuple[Figure, ...]
    ladder: tuple[Figure, ...]
    swept: tuple[Figure, ...]
    happened: tuple[Figure, ...]
    entries: Mapping[str, tuple[Figure, ...]]
    not_drawn: Mapping[str, str]

    @property
    def every(self) -> tuple[Figure, ...]:
        entries = (one for several in self.entries.values() for one in several)
        return (*self.machines, *self.ladder, *self.swept, *entries, *self.happened)


def kinds() -> tuple[str, ...]:
    """Every kind of figure that there is."""
    own = [kind for tool in tools() for known in tool.figures() for kind in known.kinds]
    return (RATIOS, waterfall.KIND, SWEPT, timeline.KIND, BARS, *own)


def page_figures(page: Document) -> PageFigures:
    """What the page shows besides the table of the forest plot."""
    above = waterfall.waterfall(page.source.analysis)
    happened = timeline.timeline(page.source)
    made = {
        anchor: tuple(entry_figures(page, entry, f"fig-{anchor}"))
        for section in page.sections
        for anchor, entry in section.anchored()
    }
    return PageFigures(
        machines=tuple(filter(None, (machine_figure(page.source.analysis),))),
        ladder=(above,) if above else (),
        swept=tuple(sweeps.sweeps(page)),
        happened=(happened,) if happened else (),
        entries={anchor: tuple(one for one in own if isinstance(one, Figure)) for anchor, own in made.items()},
        not_drawn={
            anchor: " ".join(one.reason for one in own if isinstance(one, NotDrawn)) for anchor, own in made.items()
        },
    )


def entry_figures(
    document: Document, entry: Entry, name: str, *, every_value: bool = False
) -> Iterator[Figure | NotDrawn]:
    """All figures of one entry of the study, with names that begin with `name`. `every_value`: bars of all its primary
    values, for paper, which has no table next to the figures."""
    known, results = figures_of(entry.benchmark), document.results
    data = entry_data(document, entry, name)
    own = list(known.draw(data))
    if every_value or not (known.instead_of_bars and own):
        several = topics(results, entry.series, suite=known.suite, every_size=every_value)
        for number, topic in enumerate(several, 1):
            yield bars(results.levels, results.environments, topic, f"{name}-bars{number}")
    yield from own
    lost = [one for one in entry.series if any(level.maximum > 0 for level in results.levels[one].values())]
    for number, topic in enumerate(topics_of(results, lost, known.losses), 1):
        yield bars(results.levels, results.environments, topic, f"{name}-lost{number}")


def figures_of(benchmark: str) -> ToolFigures:
    """What the tool of a benchmark lists; of one that lists nothing, bars."""
    known = (one for tool in tools() for one in tool.figures())
    return next((one for one in known if one.benchmark == benchmark), ToolFigures(benchmark))


def entry_data(document: Document, entry: Entry, name: str) -> EntryData:
    """What the figures of an entry are made from."""
    report, results = document.source, document.results
    return EntryData(
        name=name,
        label=entry.label,
        environments=results.environments,
        levels={series: results.levels[series] for series in entry.series},
        trials=tuple(
            trial
            for trial in report.trials
            if (trial.benchmark, trial.label) == (entry.benchmark, entry.label)
            and not trial.warmup
            and trial.status is Status.OK
        ),
        readings=report.readings,
        plan=report.plan,
        cells=report.cells,
        peak=entry.peak,
    )


def paper_figures(page: Document) -> tuple[PaperFigure, ...]:
    """What a paper may take: the ratios of all primary metrics, then every figure of the page, in parts that fit."""
    above, happened = waterfall.waterfall(page.source.analysis), timeline.timeline(page.source)
    apart = machine_figure(page.source.analysis)
    several = [
        *ratio_figures(page.source.analysis),
        *([apart] if apart else []),
        *([replace(above, name=slug(above.title))] if above else []),
    ]
    several += [replace(one, name=slug(one.title)) for one in sweeps.sweeps(page)]
    for section in page.sections:
        for entry in section.entries:
            own = entry_figures(page, entry, entry.label, every_value=True)
            named = (replace(one, name=_file_name(entry.label, one)) for one in own if isinstance(one, Figure))
            several += named
    several += [happened] if happened else []
    found: dict[str, PaperFigure] = {}
    for one in (part for figure in several if Medium.PAPER in figure.media for part in paper(figure)):
        name = one.name[:LONGEST]
        while name in found:
            name = f"{one.name[:LONGEST]}-{len(found)}"
        found[name] = replace(one, name=name)
    return tuple(found.values())


def _file_name(label: str, figure: Figure) -> str:
    """The entry and the title, without what is said already, and without the unit."""
    return slug(f"{label} {figure.title.removeprefix(label).partition('(')[0]}")
