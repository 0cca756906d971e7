"""The ratios of all primary metrics, as figures for paper and for what has no tables of strips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vtax.analysis.records import Analysis, Comparison
from vtax.figures.figure import Figure
from vtax.figures.intervals import Ratio, intervals
from vtax.figures.theme import slug
from vtax.report.document.naming import Named, in_order, interval, names_of

FEW = 8  # series of an entry whose ratios are in one figure with those of others


def ratio_figures(analysis: Analysis) -> tuple[Figure, ...]:
    """One figure of all entries with few series, and one for each entry with many."""
    entries: dict[str, list[Comparison]] = {}
    for item in analysis.comparisons:
        if item.primary and item.ratio is not None:
            entries.setdefault(item.label, []).append(item)
    many = {label: items for label, items in entries.items() if len(set(map(_series, items))) > FEW}
    few = {label: items for label, items in entries.items() if label not in many}
    found = [_figure("ratios", few, analysis)] if few else []
    return (*found, *(_figure(f"ratios-{slug(label)}", {label: items}, analysis) for label, items in many.items()))


def _series(item: Named) -> tuple[str, tuple[tuple[str, str], ...]]:
    return item.metric, tuple(sorted(item.labels.items()))


def _figure(name: str, entries: dict[str, list[Comparison]], analysis: Analysis) -> Figure:
    shared: list[str] = []
    ratios: list[Ratio] = []
    alone = len(entries) == 1
    for label, items in entries.items():
        names, common = rows_of("" if alone else label, items)
        shared += [f"{label}: {common}"] if common else []
        ratios += list(_ratios(names, items, analysis.baseline))
    counts = [item.n for items in entries.values() for item in items]
    about = f"{'; '.join(shared)}." if shared else ""
    caption = (
        f"Relative performance over {_rounds(counts)}. Whiskers are {interval(analysis)}; shaded: the margin of "
        f"equivalence, {100 * analysis.margin:g} %. {about}"
    )
    made = intervals(name, ratios, analysis.environments, analysis.baseline, analysis.margin, caption=caption.strip())
    if not alone:
        return made
    ((label, items),) = entries.items()
    metrics = {item.metric for item in items}
    about = " ".join(dict.fromkeys([label, *(metrics if len(metrics) == 1 else ())]))
    return replace(made, title=f"{about}: {made.title[0].lower()}{made.title[1:]}")


def rows_of(label: str, items: Sequence[Comparison]) -> tuple[dict[tuple[str, tuple[tuple[str, str], ...]], str], str]:
    """The name of the row of each series, as short as it can be, after `label`; and what all of them share."""
    series = {_series(item): item for item in in_order(items)}
    names = names_of(list(series.values()))
    metrics = {item.metric for item in items}
    head = " ".join(dict.fromkeys([label, *(metrics if label and len(metrics) == 1 else ())]))
    own = [head or names.own[0]] if len(series) == 1 else [f"{head} {text}".strip() for text in names.own]
    return dict(zip(series, own, strict=True)), ", ".join(word for word in names.shared if word not in metrics)


def _ratios(
    names: dict[tuple[str, tuple[tuple[str, str], ...]], str], items: Sequence[Comparison], baseline: str
) -> Iterator[Ratio]:
    order = list(names)
    for item in sorted(items, key=lambda item: order.index(_series(item))):
        assert item.ratio is not None
        name = names[_series(item)] + (f" (vs {item.baseline})" if item.baseline != baseline else "")
        yield Ratio(name, item.environment, item.ratio, item.low, item.high, str(item.verdict))


def _rounds(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} round{'s' * (low != 1)}" if low == high else f"{low} to {high} rounds"
