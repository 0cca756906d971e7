"""What people read of an imported campaign: runs and files, no rounds, no clusters, nothing that nobody knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.logs import LOGS, SYSBENCH, faster, imported, text_of
from vtax import pipeline
from vtax.audit import CATALOGUE
from vtax.cli.analyse import MANY, lines_of
from vtax.cli.audit import lines_of as audit_lines
from vtax.model.finding import Outcome
from vtax.model.plan import Origin

FILES: dict[str, str | bytes] = {
    "vm/cpu1.txt": faster(SYSBENCH, "1000.00"),
    "vm/cpu2.txt": faster(SYSBENCH, "1100.00"),
    "box/cpu.txt": faster(SYSBENCH, "500.00"),
    "box/notes.md": "we ran this on a Sunday\n",
}


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    imported(tmp_path, dict(FILES), environment="", layout="{environment}/**", baseline="vm")
    return tmp_path / "campaign"


def pages(directory: Path) -> tuple[str, str]:
    pipeline.report(directory)
    return (directory / "report/index.html").read_text(), (directory / "report/report.md").read_text()


def test_the_report_speaks_of_runs_and_of_nothing_that_was_not(campaign: Path) -> None:
    html, markdown = pages(campaign)
    page = html.partition("<script")[0]
    for text in (page, markdown):
        assert "Box against vm: 3 runs of 1 benchmark entry, imported from files. vtax did not run them." in text
        assert "Box: no verdict, because the runs were imported" in text
        for wrong in ("0 nodes", "rounds complete", "root file system", "was built", "round 1", "trixie", "seed"):
            assert wrong not in text, wrong
    assert "over n runs" in markdown
    assert "1 round" not in markdown


def test_the_report_has_every_file_and_what_became_of_it(campaign: Path) -> None:
    _, markdown = pages(campaign)
    table = markdown.partition("## The files")[2].partition("\n## ")[0]
    (notes,) = [line for line in table.splitlines() if "notes.md" in line]
    assert notes.endswith("| 0 | 0 | no output of a benchmark that vtax knows |")
    assert sum("sysbench-cpu" in line for line in table.splitlines()) == 3


def test_facts_that_no_log_tells_are_not_called_equal(campaign: Path) -> None:
    _, markdown = pages(campaign)
    matched = markdown.partition("## What was matched")[2].partition("\n## ")[0]
    assert "CPU quota" not in matched
    assert "planned" not in matched


def test_iozone_without_any_fact_of_memory_has_a_report(tmp_path: Path) -> None:
    imported(tmp_path, {"a.txt": text_of(LOGS["iozone kB"])})
    html, _ = pages(tmp_path / "campaign")
    assert "How much of the files the page cache held is not known." in html


def test_the_audit_shows_what_failed_what_passed_and_what_no_log_says(campaign: Path) -> None:
    report = pipeline.audit(campaign)
    outcomes = {row.id: row.outcome for row in report.rows}
    assert len(report.rows) == len(CATALOGUE)
    assert (outcomes["R01"], outcomes["S03"], outcomes["T08"]) == (Outcome.FAIL, Outcome.PASS, Outcome.UNKNOWN)
    assert (outcomes["N01"], outcomes["R09"]) == (Outcome.NOT_APPLICABLE, Outcome.NOT_APPLICABLE)
    found = {finding for row in report.rows for finding in (one.message for one in row.findings)}
    assert found == {finding.message for finding in pipeline.analyse(campaign).findings}
    lines = audit_lines(report, everything=False)
    assert sum("only a campaign that vtax runs itself" in line for line in lines) == 1


def test_rows_that_need_what_only_vtax_records_are_unknown_or_do_not_apply(campaign: Path) -> None:
    outcomes = {row.id: row.outcome for row in pipeline.audit(campaign).rows}
    own = [row.id for row in CATALOGUE if row.needs and all(one.origin is Origin.RUN for one in row.needs)]
    assert {"C05", "T03", "R03"} <= set(own)
    assert {outcomes[name] for name in own} <= {Outcome.UNKNOWN, Outcome.NOT_APPLICABLE}


def test_a_grid_of_iozone_is_one_line(tmp_path: Path) -> None:
    text = text_of(LOGS["iozone kB"])
    imported(tmp_path, {"vm/a.txt": text, "box/a.txt": text + "\n"}, environment="", layout="{environment}/*")
    made = pipeline.analyse(tmp_path / "campaign")
    primary = [one for one in made.comparisons if one.primary]
    lines = [line for line in lines_of(made) if "against" in line and "iozone" in line and "comparisons" in line]
    assert len(primary) > MANY
    (line,) = lines
    assert f"{len(primary)} comparisons: " in line
    assert "ratios 1 to 1, median 1" in line
