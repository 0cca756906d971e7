"""What a row is asked, what it says where nothing was recorded, and what it has in common with logs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from builders.audit_cases import as_imported, evidence
from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs
from vtax.evidence.row import NOT_IN_LOGS, UNKNOWN_REMEDY, Check, Failed, Result, Row, Undecided, row
from vtax.model.finding import Outcome, Severity
from vtax.model.nodes import Scope
from vtax.model.plan import Origin


def made(check: Check, *needs: Needs, severity: Severity = Severity.BLOCKER, scopes: tuple[Scope, ...] = ()) -> Row:
    return row("X01", severity, "t", why="w", remedy="r", source="s", needs=needs, scopes=scopes)(check)


def wrong(campaign: Evidence) -> Iterator[Result]:
    """Says that every environment and entry is wrong."""
    for environment, label in campaign.entries():
        yield Failed(f"{label} in {environment}", environment, label)


def right(campaign: Evidence) -> Iterator[Result]:
    yield from campaign.environments


def test_id_reason_and_remedy_are_the_rows() -> None:
    (found, *_) = made(wrong)(evidence())
    assert (found.id, found.severity, found.why, found.remedy) == ("X01", Severity.BLOCKER, "w", "r")

    def milder(_campaign: Evidence) -> Iterator[Result]:
        yield Failed("m", severity=Severity.INFO, remedy="other", metrics=("HPL",))

    (found,) = made(milder)(evidence())
    assert (found.severity, found.remedy, found.metrics) == (Severity.INFO, "other", ("HPL",))


def test_what_a_node_did_not_record_is_said_of_its_environment_and_the_rest_is_checked() -> None:
    looked = made(right, Needs("its kernel", node=("kernel",))).look(evidence({"container": {"kernel": None}}))
    assert looked.outcome is Outcome.UNKNOWN
    (found,) = looked.findings
    assert (found.message, found.environment) == ("container: not recorded: its kernel", "container")
    assert (found.severity, found.remedy) == (Severity.WARNING, UNKNOWN_REMEDY)
    assert looked.seen == ("host",), "the check was not asked about the container"


def test_what_a_note_cannot_see_is_a_note() -> None:
    campaign = evidence({"container": {"kernel": None}})
    looked = made(right, Needs("its kernel", node=("kernel",)), severity=Severity.INFO).look(campaign)
    assert [found.severity for found in looked.findings] == [Severity.INFO]


def test_what_a_run_did_not_say_is_said_of_its_entry() -> None:
    looked = made(wrong, Needs("its systems", facts=("systems",))).look(evidence())
    unknown = {found.message for found in looked.findings if found.unknown}
    assert unknown == {f"iperf3-udp in {name}: not recorded: its systems" for name in ("host", "container")}
    assert {found.benchmark for found in looked.findings if not found.unknown} == {"hpcc"}


def test_what_the_machine_did_not_record_is_said_once() -> None:
    (found,) = made(right, Needs("its product", host=("dmi_product",))).look(evidence()).findings
    assert (found.message, found.environment) == ("not recorded: its product", "")


def test_any_alternative_is_enough_and_of_each_kind_one_fact() -> None:
    blind = evidence({"container": {"kernel": None}})
    assert not made(right, Needs("a", node=("kernel",)), Needs("b", node=("libc",)))(blind)
    assert not made(right, Needs("a", node=("kernel", "libc")))(blind)
    assert made(right, Needs("a", node=("libc",), checks="no such check"))(blind)


def test_the_reference_stays_when_a_part_lacks_it() -> None:
    part = evidence().part(lambda one: one.label == "hpcc", [("host", "")])
    assert (part.reference, part.environments) == ("host", ("container",))
    assert {one.label for one in part.trials} == {"hpcc"}


def test_a_row_is_about_its_scopes_alone() -> None:
    looked = made(wrong, scopes=(Scope.PAIRS,)).look(evidence())
    assert {found.benchmark for found in looked.findings} == {"iperf3-udp"}
    assert made(wrong, scopes=(Scope.SHARED,)).look(evidence()).outcome is Outcome.NOT_APPLICABLE


def test_nothing_decided_is_not_passed() -> None:
    def unsure(_campaign: Evidence) -> Iterator[Result]:
        yield Undecided("too short to say")

    looked = made(unsure).look(evidence())
    assert (looked.outcome, looked.findings[0].unknown) == (Outcome.UNKNOWN, True)
    assert made(lambda _campaign: ()).look(evidence()).outcome is Outcome.NOT_APPLICABLE
    assert made(right).look(replace(evidence(), trials=())).outcome is Outcome.UNKNOWN


def test_logs_that_do_not_say_it_make_a_row_unknown_without_findings() -> None:
    logs = as_imported(evidence())
    looked = made(wrong, Needs("clocks", facts=("clock",))).look(logs)
    assert (looked.outcome, looked.findings, looked.seen) == (
        Outcome.UNKNOWN,
        (),
        ("not recorded in these logs: clocks",),
    )
    own = made(wrong, Needs("counters", counters=("steal_ticks",), origin=Origin.RUN)).look(logs)
    assert (own.outcome, own.seen) == (Outcome.UNKNOWN, (NOT_IN_LOGS,))


def test_one_log_is_enough_unless_two_are_compared() -> None:
    logs = as_imported(evidence(), {"host": {"clock": 1}})
    assert made(wrong, Needs("clocks", facts=("clock",))).look(logs).outcome is Outcome.FAIL
    compared = made(wrong, Needs("clocks", facts=("clock",), compares=True)).look(logs)
    assert compared.seen == ("not recorded in these logs of two environments: clocks",)
    both = as_imported(evidence(), {name: {"clock": 1} for name in ("host", "container")})
    assert made(wrong, Needs("clocks", facts=("clock",), compares=True)).look(both).outcome is Outcome.FAIL


def test_a_log_that_does_not_decide_is_no_finding() -> None:
    def unsure(_campaign: Evidence) -> Iterator[Result]:
        yield Undecided("the logs do not say")

    looked = made(unsure).look(as_imported(evidence()))
    assert (looked.outcome, looked.findings, looked.seen) == (Outcome.UNKNOWN, (), ("the logs do not say",))
