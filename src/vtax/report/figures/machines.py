"""The forest plot of machines: the ratio on each of them, and their mean, for what is compared on several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vtax.analysis.records import Analysis, Comparison
from vtax.figures.figure import Figure
from vtax.figures.intervals import Ratio, intervals
from vtax.report.document.machines import by_machine, differ, row_name

MOST = 4  # metrics in the figure; the table has all
MEAN = "mean"


def machine_figure(analysis: Analysis) -> Figure | None:
    """Metrics on which the machines differ before others; None where there is one machine."""
    known = [one for one in by_machine(analysis) if one.ratio is not None]
    names = list(dict.fromkeys(map(row_name, known)))
    shown = [one for one in known if row_name(one) in names[:MOST]]
    ratios = [ratio for name in names[:MOST] for ratio in _rows(name, [one for one in shown if row_name(one) == name])]
    if not ratios:
        return None
    left_out = f" {len(names) - MOST} more metrics are in the table." if len(names) > MOST else ""
    caption = (
        "Whiskers are individual intervals over the rounds of one machine; verdicts are about the mean; shaded: the "
        f"margin of equivalence, {100 * analysis.margin:g} %.{left_out}"
    )
    return intervals("machines", ratios, analysis.environments, analysis.baseline, analysis.margin, caption=caption)


def _rows(name: str, several: Sequence[Comparison]) -> Iterator[Ratio]:
    """Each machine, then the mean; the same row for all environments."""
    machines = dict.fromkeys(effect.machine for one in several for effect in one.machines if effect.covered)
    for machine in machines:
        for one in several:
            effect = next((effect for effect in one.machines if effect.machine == machine), None)
            if effect is not None and effect.ratio is not None:
                yield Ratio(f"{name}, {machine}", one.environment, effect.ratio, effect.low, effect.high, "data only")
    for one in several:
        assert one.ratio is not None
        more = " (differ)" if differ(one) else ""
        yield Ratio(f"{name}, {MEAN}{more}", one.environment, one.ratio, one.low, one.high, str(one.verdict))
