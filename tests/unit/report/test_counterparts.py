"""A ratio that is not to the baseline names what it is to, wherever it is shown."""

from __future__ import annotations

from functools import lru_cache

from builders.pages import html, latex_tables, markdown, report_input
from builders.synthetic import campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Comparison
from vtax.report.document.cells import range_cell, ratio_cell
from vtax.report.records import ReportInput

NETWORK = "iperf3-tcp"


@lru_cache(maxsize=1)
def report() -> ReportInput:
    """The network of `vm` is compared with that of `container`."""
    made = campaign(("host", "container", "vm"))
    whole = analyse(made.measurements, plan=made.plan, findings=(), trials=made.trials)
    compared = tuple(
        item.model_copy(update={"baseline": "container"}) if item.label == NETWORK else item
        for item in whole.comparisons
        if (item.label, item.environment) != (NETWORK, "container")
    )
    return report_input(made, whole.model_copy(update={"comparisons": compared}))


def of(environment: str, label: str) -> list[Comparison]:
    return [item for item in report().analysis.comparisons if (item.environment, item.label) == (environment, label)]


def test_cells_name_it() -> None:
    network, hpcc = of("vm", NETWORK), of("vm", "hpcc")
    assert "vs\u00a0container" in ratio_cell(network[0], "host").note
    assert "vs" not in ratio_cell(hpcc[0], "host").note
    assert "vs\u00a0container" in range_cell(network, "host").note
    assert "vs" not in range_cell(network, "container").note


def test_every_format_names_it() -> None:
    assert "vs\u00a0container" in html(report())
    assert "vs\u00a0container" in markdown(report())
    assert "vs container" in latex_tables(report())
