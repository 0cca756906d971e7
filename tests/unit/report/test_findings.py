"""Findings in the report: each row of the audit once, alike ones together, each where its metrics are."""

from __future__ import annotations

import re

from builders.pages import html, markdown, report_input
from builders.synthetic import campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.estimate.summary import Series
from vtax.model.finding import Finding, Severity
from vtax.report.document.cells import ratio_cell
from vtax.report.document.compose import document_of
from vtax.report.document.findings import boxes, tally
from vtax.report.document.model import Box, Message
from vtax.report.document.results import results_of
from vtax.report.figures.forest import forest, without_ratio
from vtax.report.formats.html import linked
from vtax.report.records import ReportInput


def finding(
    id: str,
    message: str,
    environment: str = "",
    benchmark: str = "",
    severity: Severity = Severity.BLOCKER,
    metrics: tuple[str, ...] = (),
) -> Finding:
    return Finding(
        id=id,
        severity=severity,
        message=message,
        remedy=f"mend {id}",
        environment=environment,
        benchmark=benchmark,
        metrics=metrics,
    )


def with_findings(*findings: Finding) -> ReportInput:
    made = campaign(("host", "container", "vm"), 6, failing=False)
    found = analyse(made.measurements, plan=made.plan, findings=findings, trials=made.trials)
    return report_input(made, found)


def test_messages_that_differ_only_in_their_environment_are_one() -> None:
    (box,) = boxes(
        [
            finding("H06", "STREAM of hpcc in host: 300 KiB", "host", "hpcc"),
            finding("H06", "STREAM of hpcc in vm: 300 KiB", "vm", "hpcc"),
            finding("H06", "STREAM of hpcc in container: 200 KiB", "container", "hpcc"),
            finding("H06", "STREAM of hpcc in vm: 300 KiB", "vm", "other"),
            finding("H06", "vms differ in vm-2", "vm"),
        ]
    )
    assert box.count == 5
    assert box.messages == (
        Message(("host", "vm"), "hpcc", "STREAM of hpcc in host and vm: 300 KiB"),
        Message(("container",), "hpcc", "STREAM of hpcc in container: 200 KiB"),
        Message(("vm",), "other", "STREAM of hpcc in vm: 300 KiB"),
        Message(("vm",), "", "vms differ in vm-2"),
    )
    assert box.remedies == ("mend H06",)


def test_each_row_of_the_audit_has_one_place_in_the_page() -> None:
    mild = finding("C05", "b", severity=Severity.WARNING)
    limits = document_of(with_findings(finding("C05", "a"), mild)).answer.limits
    assert [limit.anchor for limit in limits if limit.row] == ["finding-C05", ""]


def test_a_row_leads_to_what_it_found_and_text_stays_text() -> None:
    anchors = {"C05": "finding-C05"}
    assert linked("stolen (C05), not C06 or XC05", anchors) == (
        'stolen (<a href="#finding-C05">C05</a>), not C06 or XC05'
    )
    assert linked("<b>C05</b> `C05`", anchors).startswith("&lt;b&gt;<a ")


def test_findings_are_counted_and_blockers_named() -> None:
    several = boxes(
        [
            finding("C05", "a"),
            finding("C05", "b"),
            finding("H06", "c"),
            finding("O05", "d", severity=Severity.WARNING),
            finding("T07", "e", severity=Severity.INFO),
        ]
    )
    assert (
        tally(several)
        == "2 blockers: CPU time stolen (C05), STREAM inside the cache (H06); 1 warning: O05; 1 note: T07"
    )
    assert tally(()) == ""


def found_at(report: ReportInput) -> dict[str, dict[str, tuple[Box, ...]]]:
    return {
        section.anchor: {entry.label: entry.findings for entry in section.entries}
        for section in document_of(report).sections
    }


def test_a_finding_stands_where_its_metrics_are_and_else_once() -> None:
    report = with_findings(
        finding("C05", "stolen", "vm", "hpcc"),
        finding("H06", "STREAM", "vm", "hpcc", metrics=("StarSTREAM_Triad",)),
        finding("H02", "HPL", "vm", "hpcc", metrics=("HPL",)),
        finding("N06", "sent again", "vm", "iperf3-tcp"),
    )
    found = found_at(report)
    ids = {part: [box.id for box in entries["hpcc"]] for part, entries in found.items() if "hpcc" in entries}
    assert ids == {"compute": ["C05", "H02"], "memory": ["H06"], "network": []}
    assert [box.id for box in found["network"]["iperf3-tcp"]] == ["N06"]
    text = html(report)
    assert '2 blockers: CPU time stolen (<a href="#finding-C05">C05</a>), implausible HPL' in text
    assert "Findings: 1 blocker: STREAM inside the cache (H06)." in re.sub(r"\\", "", markdown(report))


def test_the_overview_gives_a_reason_by_its_id_and_explains_it_once() -> None:
    report = with_findings(finding("T04", "a message of software emulation", "vm"))
    plot = forest(results_of(report), 0.02)
    assert plot is not None
    assert plot.reasons == ("T04",)
    assert {line.reasons for line in plot.lines if line.name == "vm"} == {("T04",)}
    assert {line.reasons for line in plot.lines if line.name == "container"} == {()}
    assert not any(line.note for line in plot.lines if line.name == "vm" and len(line.whiskers) == 1)
    text = html(report)
    table = text[text.index('id="forest"') : text.index('id="compute"')]
    assert "a message of software emulation" not in table
    assert 'software emulation (<a href="#finding-T04">T04</a>)' in text
    assert table.count('href="#finding-T04"') == sum(line.name == "vm" for line in plot.lines)


def test_a_number_that_is_ruled_out_has_the_reason_beside_it_once() -> None:
    report = with_findings(
        finding("T04", "a message of software emulation", "vm"), finding("C05", "stolen", "container")
    )
    items = {item.environment: item for item in report.analysis.comparisons if item.metric == "HPL"}
    vm, container = (ratio_cell(items[name], "host") for name in ("vm", "container"))
    assert vm.note.endswith("; T04")
    assert "software emulation" not in vm.note
    assert container.note.endswith("; C05")
    assert ratio_cell(items["vm"], "host", explain=True).note == "T04"
    lone = items["vm"].model_copy(update={"n": 0, "ratio": None})
    assert ratio_cell(lone, "host", explain=True).note == "no counterpart in host"


def test_the_overview_says_what_it_cannot_show() -> None:
    results = results_of(with_findings())
    assert without_ratio(results) == ()
    lost = {s: {n: c for n, c in by.items() if s.label != "ping"} for s, by in results.comparisons.items()}

    def left(without: str) -> tuple[str, ...]:
        levels = {
            s: {n: level for n, level in by.items() if s.label != "ping" or n != without}
            for s, by in results.levels.items()
        }
        kept = type(results)(results.environments, results.baseline, levels, lost)
        return without_ratio(kept)

    assert left("host") == ("Network: host has no result of ping rtt_avg.",)
    assert left("") == ("Network: no round has both results of ping rtt_avg.",)
    assert isinstance(next(iter(results.levels)), Series)


def test_markdown_answers_first_and_has_every_part_of_the_page() -> None:
    report = with_findings(
        *(finding("C05", f"{share} % stolen", "vm", "hpcc") for share in range(4, 9)),
        finding("C04", "shared", severity=Severity.WARNING),
    )
    text = markdown(report)
    order = [
        "# Container: ",
        "**What does virtualization cost",
        "| CPU | Container |",
        "## What limits this answer",
        "- **blocker C05** CPU time stolen in vm: rules out ",
        "  - (vm, hpcc) 8 % stolen",
        "- **warning C04** Shared",
        "## Overview",
        "## CPU",
        "## Conclusion",
        "## What happened",
        "[r01-host.1.json](../cells/r01-host.1.json)",
        "## Failures",
        "## What was matched",
        "## How each environment was built",
        "## The machine",
        "## Versions",
        "## All other packages",
        "## The plan",
    ]
    places = [text.index(words) for words in order]
    assert places == sorted(places)
    assert text.index("| CPU | Container |") < 700
