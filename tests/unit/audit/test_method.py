"""R and M: rounds, order, missing runs, placement of ranks; and the audit as a whole."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from builders.audit_cases import evidence, only, passed
from fakes.cluster import node_shape
from vtax.analysis.order import planned_order
from vtax.audit import CATALOGUE, Evidence, audit, findings_of, method, mpi
from vtax.model.finding import Finding, Outcome, Severity
from vtax.model.trial import Status

DOCS = Path(__file__).parents[3] / "docs"


def test_a_campaign_without_a_fault_has_no_findings() -> None:
    found = findings_of(audit(evidence()).rows)
    assert {(one.id, one.severity) for one in found} == {
        ("N02", Severity.INFO),  # its nodes share one machine
        ("N04", Severity.INFO),  # and a CPU limits UDP between them, in both environments
    }


def test_every_check_bears_an_empty_campaign() -> None:
    empty = Evidence(plan=evidence().plan)
    rows = audit(empty).rows
    assert {row.id for row in rows if row.outcome is Outcome.FAIL} == {"R01", "R07"}
    assert not any(row.outcome is Outcome.PASS for row in rows)  # nothing was seen, so nothing passed


def test_the_worst_comes_first() -> None:
    spoilt = evidence({"container": {"kernel": "5.0", "shared_filesystem": "overlay", "libc": "musl"}}, rounds=2)
    found = findings_of(audit(spoilt).rows)
    assert [finding.severity for finding in found] == sorted(
        (finding.severity for finding in found), key=tuple(Severity).index
    )
    assert found[0].id == "R01"


def test_every_row_says_what_it_looks_for_and_why() -> None:
    assert len({row.id for row in CATALOGUE}) == len(CATALOGUE)
    for row in CATALOGUE:
        assert re.fullmatch("[BCDEFHKLMNOPRSTUWZ][0-9]{2}", row.id)
        assert row.title and row.why and row.remedy and row.source
        assert row.id in (row.check.__doc__ or "")


def test_the_catalogue_is_whole() -> None:
    """Rows are numbered without gaps in each group, so that one that is not found is missed; docs/audit.md has them."""
    for letter in {row.id[0] for row in CATALOGUE}:
        numbers = [int(row.id[1:]) for row in CATALOGUE if row.id[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter
    assert len(CATALOGUE) == (DOCS / "audit.md").read_text().count("\n### ")
    assert all(row.short for row in CATALOGUE)


def test_what_was_found_touches_what_it_is_about() -> None:
    found = Finding(
        id="D02",
        severity=Severity.BLOCKER,
        message="m",
        remedy="r",
        environment="container",
        benchmark="iozone",
        metrics=("throughput",),
        labels={"operation": ("read",)},
    )
    names = ("iozone", "disk")
    assert found.touches(("container", "host"), names, "throughput", {"operation": "read"})
    assert not found.touches(("container", "host"), names, "throughput", {"operation": "write"})
    assert not found.touches(("container", "host"), names, "throughput", {})
    assert not found.touches(("container", "host"), names, "operations_rate", {"operation": "read"})
    assert not found.touches(("vm", "host"), names, "throughput", {"operation": "read"})
    assert not found.touches(("container", "host"), ("hpcc", "hpcc"), "throughput", {"operation": "read"})


def test_six_rounds_are_enough() -> None:
    assert method.few_rounds(evidence(rounds=6)) == ()


def test_five_rounds_are_a_pilot() -> None:
    finding = only(method.few_rounds(evidence(rounds=5)))
    assert finding.severity is Severity.BLOCKER
    assert "5 of 5 planned rounds" in finding.message


def test_a_failed_trial_makes_its_round_incomplete_for_its_entry_only() -> None:
    campaign = evidence()
    failed = campaign.trials[0].model_copy(update={"status": Status.FAILED})
    finding = only(method.few_rounds(replace(campaign, trials=(failed, *campaign.trials[1:]))))
    assert "5 of 6 planned rounds of hpcc are complete in container and host" in finding.message
    assert (finding.environment, finding.benchmark) == ("container", "hpcc")


def test_an_entry_that_fails_in_every_round_is_reported_and_no_other() -> None:
    campaign = evidence(rounds=8)
    trials = tuple(
        one.model_copy(update={"status": Status.FAILED}) if (one.environment, one.label) == ("host", "hpcc") else one
        for one in campaign.trials
    )
    finding = only(method.few_rounds(replace(campaign, trials=trials)))
    assert (finding.environment, finding.benchmark) == ("container", "hpcc")
    assert "0 of 8 planned rounds of hpcc" in finding.message


def test_where_no_entry_has_enough_rounds_the_campaign_is_a_pilot() -> None:
    campaign = evidence(rounds=5)
    failed = campaign.trials[0].model_copy(update={"status": Status.FAILED})
    finding = only(method.few_rounds(replace(campaign, trials=(failed, *campaign.trials[1:]))))
    assert "at most 5 of 5 planned rounds are complete" in finding.message
    assert (finding.environment, finding.benchmark) == ("", "")


def test_order_as_planned() -> None:
    assert method.order(evidence()) == ()


def test_cells_in_another_order_than_planned() -> None:
    campaign = evidence()
    late = tuple(
        one.model_copy(update={"started": 10_000.0 + number}) if one.cell == "r1-host" else one
        for number, one in enumerate(campaign.trials)
    )
    finding = only(method.order(replace(campaign, trials=late)))
    assert finding.severity is Severity.BLOCKER
    assert "cell r1-container ran before cell r1-host" in finding.message


def test_trials_in_another_order_within_a_cell() -> None:
    campaign = evidence()
    first, second, *rest = campaign.trials
    swapped = (
        first.model_copy(update={"started": second.started}),
        second.model_copy(update={"started": first.started}),
    )
    finding = only(method.order(replace(campaign, trials=(*swapped, *rest))))
    assert "trial r1-host-iperf3-udp ran before r1-host-hpcc" in finding.message


def alternating(iterations: int = 2) -> Evidence:
    """The same campaign with a plan whose trials alternate, each done twice in ABBA order."""
    campaign = evidence()
    cells, trials = [], []
    for cell in campaign.plan.cells:
        twice = [
            trial.model_copy(update={"id": f"{trial.id}.{number}", "iteration": number})
            for trial in cell.trials
            for number in range(1, iterations + 1)
        ]
        cells.append(cell.model_copy(update={"trials": tuple(twice)}))
    plan = campaign.plan.model_copy(update={"cells": tuple(cells), "interleave": "trial"})
    known = {trial.id: trial for trial in campaign.trials}
    for number, planned in enumerate(planned_order(plan, lambda _: True)):
        old = known[planned.id.rpartition(".")[0]]
        update = {"id": planned.id, "iteration": planned.iteration, "started": 1000.0 * number}
        trials.append(old.model_copy(update=update))
    return replace(campaign, plan=plan, trials=tuple(trials))


def test_alternating_trials_as_planned() -> None:
    assert any("6 rounds of alternating trials" in said for said in passed(method.order, alternating()))


def test_alternating_trials_that_ran_as_whole_cells() -> None:
    campaign = alternating()
    cells = {cell.id: number for number, cell in enumerate(campaign.plan.cells)}
    by_cell = sorted(campaign.trials, key=lambda one: (cells[one.cell], one.started))
    trials = tuple(one.model_copy(update={"started": 1000.0 * n}) for n, one in enumerate(by_cell))
    finding = only(method.order(replace(campaign, trials=trials)))
    assert (finding.severity, "which the plan has first" in finding.message) == (Severity.BLOCKER, True)
    why = "the cluster of container cannot be paused: no freezer"
    records = tuple(cell.model_copy(update={"not_interleaved": why}) for cell in campaign.cells)
    finding = only(method.order(replace(campaign, trials=trials, cells=records)))
    assert finding.severity is Severity.WARNING
    assert f"not in alternating trials: {why}" in finding.message


def test_no_runs_are_missing() -> None:
    assert method.missing_runs(evidence()) == ()


def test_missing_and_failed_runs_are_counted_with_their_reasons() -> None:
    campaign = evidence()
    failed = campaign.trials[0].model_copy(update={"status": Status.TIMED_OUT, "failure": "ended after 9 s\nlog"})
    lost = campaign.trials[4]
    kept = tuple(one for one in campaign.trials if one not in (campaign.trials[0], lost))
    finding = only(method.missing_runs(replace(campaign, trials=(failed, *kept))))
    assert (finding.severity, finding.environment, finding.benchmark) == (Severity.WARNING, "host", "hpcc")
    assert "2 of 6 runs of hpcc in host" in finding.message
    assert "1 timed out: ended after 9 s" in finding.message
    assert "1 not recorded" in finding.message


def test_a_cluster_made_again_is_reported() -> None:
    campaign = evidence()
    again = campaign.cells[0].model_copy(update={"instance": 2})
    finding = only(method.missing_runs(replace(campaign, cells=(*campaign.cells, again))))
    assert "cell r1-host" in finding.message


def test_ranks_where_they_belong() -> None:
    assert mpi.placement(evidence()) == ()


def test_ranks_of_the_host_are_on_one_machine() -> None:
    campaign = evidence()
    cells = [
        cell.model_copy(update={"checks": ("mpi placement workers: host=4 on CPUs 2 3 4 5",)})
        for cell in campaign.cells
    ]
    assert mpi.placement(replace(campaign, cells=tuple(cells))) == ()


def test_ranks_of_a_single_node_of_the_host_are_recorded_under_its_own_name() -> None:
    nodes = (node_shape("worker1", (0, 1)),)
    assert mpi.misplaced({"bare": 2}, nodes, "bare") == ""
    assert mpi.misplaced({"bare": 1}, nodes, "bare") == "1 ranks on bare; expected 2"
    assert mpi.misplaced({"elsewhere": 2}, nodes, "bare") == "0 of 2 ranks on worker1; expected 2"


@pytest.mark.parametrize(
    ("check", "severity", "words"),
    [
        ("mpi placement workers: worker1=4", Severity.BLOCKER, "4 of 4 ranks on worker1; expected 2"),
        ("mpi placement workers: worker1=3 worker2=1", Severity.BLOCKER, "3 of 4 ranks on worker1; expected 2"),
        ("mpi placement workers: host=3 on CPUs 0 1 2", Severity.BLOCKER, "3 ranks on host; expected 4"),
        ("SSH between all 9 pairs of nodes", Severity.WARNING, "not recorded: the verified placement"),
    ],
)
def test_misplaced_ranks(check: str, severity: Severity, words: str) -> None:
    campaign = evidence()
    cells = (campaign.cells[0].model_copy(update={"checks": (check,)}), *campaign.cells[1:])
    finding = only(mpi.placement(replace(campaign, cells=cells)))
    assert (finding.severity, finding.environment) == (severity, "host")
    assert words in finding.message
