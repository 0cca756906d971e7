"""What a row of the audit is: the facts that it needs, one small check of them, and all that is said about it.

    @row("O02", Severity.WARNING, "huge pages are configured differently",
         short="unequal huge pages", why="...", remedy="...", source="...",
         needs=Needs("the huge pages of its nodes", node=("thp",)))
    def huge_pages(evidence: Evidence) -> Iterator[Result]:
        yield Failed("transparent_hugepage is always in vm, madvise in host", "vm")
        yield "vm: transparent huge pages always"  # what was seen that is right

The check is asked only about environments, or entries, for which the facts were recorded. What is not recorded is the
row's to say, in the same words everywhere, and so are its id, its reason and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from vtax.evidence.campaign import Evidence
from vtax.evidence.needs import Needs, scopes_of
from vtax.model.finding import AuditRow, Finding, Outcome, Severity
from vtax.model.nodes import Scope
from vtax.model.plan import Origin
from vtax.model.trial import TrialRecord

UNKNOWN_REMEDY = "take it into account: this campaign did not record it, so the condition cannot be excluded"
ADDITIONAL = "in addition to the usual advice"
NOT_IN_LOGS = "not recorded in imported logs: only a campaign that vtax runs itself has what this needs"


@dataclass(frozen=True)
class Failed:
    """What is wrong, and what it touches: empty fields touch all. Without a severity and a remedy it has the row's.

    `against` is the other environment of a difference of two, which touches no comparison with a third one.
    """

    message: str
    environment: str = ""
    entry: str = ""
    severity: Severity | None = None
    remedy: str = ""
    metrics: tuple[str, ...] = ()
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    against: str = ""


class Undecided(Failed):
    """What was recorded, and still does not decide the matter."""


Result = Failed | str
Check = Callable[[Evidence], Iterable[Result]]


def every(_trial: TrialRecord) -> bool:
    return True


def always(_evidence: Evidence) -> str:
    return ""


@dataclass(frozen=True)
class Row:
    """One row. `severity` is the worst that it says; `source` is where its evidence comes from, and who has it."""

    id: str
    severity: Severity
    title: str  # the condition that fails
    short: str  # the same in a few words, for a sentence that gives it as a reason
    why: str
    remedy: str
    source: str
    check: Check
    benchmarks: tuple[str, ...] = ()  # it applies only to campaigns that run one of them
    scopes: tuple[Scope, ...] = ()  # it is about runs of these scopes alone
    needs: tuple[Needs, ...] = ()  # any of them is enough
    about: Callable[[TrialRecord], bool] = every  # it is about these runs alone
    applies: Callable[[Evidence], str] = always  # "" or why it does not
    note: str = ""  # where it differs from the usual advice
    whole: bool = False  # it looks at the whole campaign, with environments that are not compared because of emulation

    def __call__(self, evidence: Evidence) -> tuple[Finding, ...]:
        """The findings alone."""
        return self.look(evidence).findings

    def look(self, evidence: Evidence) -> AuditRow:
        """What the row came to."""
        if reason := self.inapplicable_because(evidence):
            return self._row(Outcome.NOT_APPLICABLE, (), (reason,))
        any_trials = bool(evidence.trials)
        if not self.whole:
            evidence = evidence.comparable
        if self.benchmarks or self.scopes or self.about is not every:
            evidence = evidence.part(self.covers)
        imported = evidence.plan.origin is Origin.IMPORTED
        missing: tuple[Finding, ...] = ()
        if self.needs:
            needs = tuple(one for one in self.needs if one.origin in (None, evidence.plan.origin))
            if not needs:
                return self._row(Outcome.UNKNOWN, (), (NOT_IN_LOGS,))
            known, unknown = scopes_of(needs, evidence)
            if imported and not (known and any(one.comparable(evidence, known) for one in needs)):
                both = " of two environments" if all(one.compares for one in needs) else ""
                what = "; ".join(one.what for one in needs)
                return self._row(Outcome.UNKNOWN, (), (f"not recorded in these logs{both}: {what}",))
            if unknown:
                missing = () if imported else tuple(self._missing(needs[0], scope) for scope in unknown)
                evidence = evidence.part(self.covers, unknown)
            if unknown and not known:
                return self._row(Outcome.UNKNOWN, missing, ())
        said = list(self.check(evidence))
        seen = tuple(dict.fromkeys(one for one in said if isinstance(one, str)))
        findings = (*(self._finding(one) for one in said if not isinstance(one, str)), *missing)
        if imported:  # most logs lack most facts: one that does not decide is no finding
            seen = seen or tuple(dict.fromkeys(one.message for one in findings if one.unknown))
            findings = tuple(one for one in findings if not one.unknown)
        if any(not one.unknown for one in findings):
            outcome = Outcome.FAIL
        elif findings or not any_trials or (said and not any(isinstance(one, str) for one in said)):
            outcome = Outcome.UNKNOWN
        else:
            outcome = Outcome.PASS if seen else Outcome.NOT_APPLICABLE
        return self._row(outcome, findings, seen)

    def covers(self, trial: TrialRecord) -> bool:
        """Whether the row is about a trial."""
        return (
            (not self.benchmarks or trial.benchmark in self.benchmarks)
            and (not self.scopes or trial.scope in self.scopes)
            and self.about(trial)
        )

    def inapplicable_because(self, evidence: Evidence) -> str:
        """Why the row does not apply to a campaign; "" when it does."""
        if self.benchmarks and not evidence.labels_of(*self.benchmarks):
            return f"no {' or '.join(self.benchmarks)} in this campaign"
        used = {*(one.target.scope for one in evidence.plan.work), *(one.scope for one in evidence.trials)}
        if self.scopes and not used & set(self.scopes):
            return f"no run with scope {' or '.join(self.scopes)} in this campaign"
        return self.applies(evidence)

    def _missing(self, needs: Needs, scope: tuple[str, str]) -> Finding:
        environment, entry = scope
        where = f"{entry} in {environment}: " if entry else f"{environment}: " if environment else ""
        return self._finding(Undecided(f"{where}not recorded: {needs.what}", environment, entry))

    def _finding(self, one: Failed) -> Finding:
        """What every finding of a row has in common. What is not known is a warning where it would block."""
        unknown = isinstance(one, Undecided)
        mild = Severity.WARNING if self.severity is Severity.BLOCKER else Severity.INFO
        return Finding(
            id=self.id,
            severity=mild if unknown else one.severity or self.severity,
            message=one.message,
            remedy=UNKNOWN_REMEDY if unknown else one.remedy or self.remedy,
            why=self.why,
            environment=one.environment,
            against=one.against,
            benchmark=one.entry,
            metrics=one.metrics,
            labels=one.labels,
            unknown=unknown,
        )

    def _row(self, outcome: Outcome, findings: tuple[Finding, ...], seen: tuple[str, ...]) -> AuditRow:
        return AuditRow(
            id=self.id, severity=self.severity, title=self.title, outcome=outcome, findings=findings, seen=seen
        )


def row(
    id: str,
    severity: Severity,
    title: str,
    *,
    why: str,
    remedy: str,
    source: str,
    short: str = "",
    benchmarks: tuple[str, ...] = (),
    scopes: tuple[Scope, ...] = (),
    needs: Needs | tuple[Needs, ...] = (),
    about: Callable[[TrialRecord], bool] = every,
    applies: Callable[[Evidence], str] = always,
    note: str = "",
    whole: bool = False,
) -> Callable[[Check], Row]:
    """Makes a row of a check."""
    alternatives = (needs,) if isinstance(needs, Needs) else needs

    def made(check: Check) -> Row:
        about_what = (benchmarks, scopes, alternatives, about, applies)
        return Row(id, severity, title, short, why, remedy, source, check, *about_what, note, whole)

    return made


def rows_of(*modules: object) -> tuple[Row, ...]:
    """The rows that modules declare, in the order of their ids."""
    return tuple(sorted((one for module in modules for one in vars(module).values() if isinstance(one, Row)), key=_id))


def _id(one: Row) -> str:
    return one.id
