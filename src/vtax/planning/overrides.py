"""What the command line replaces of a study, and whether a budget holds what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vtax.errors import UsageError
from vtax.model.plan import Plan
from vtax.model.study import Study
from vtax.planning.study import at_any_time
from vtax.units import format_seconds


@dataclass(frozen=True)
class Overrides:
    """Options that replace values of the study: a fixed number of rounds, a budget of wall time, an interim analysis
    after every round (then `rounds` is the maximum)."""

    rounds: int | None = None
    budget_s: float | None = None
    anytime: bool = False

    def of(self, study: Study) -> Study:
        if self.anytime:
            study = at_any_time(study, self.rounds)
        elif self.rounds is not None:
            study = study.fixed(self.rounds)
        return study if self.budget_s is None else study.model_copy(update={"budget_s": self.budget_s})

    @classmethod
    def taken(cls, given: object) -> Overrides:
        """Those that a campaign records (`given`); none for anything else."""
        table = given if isinstance(given, Mapping) else {}
        rounds, budget_s = table.get("--rounds"), table.get("--budget")
        return cls(
            rounds=rounds if isinstance(rounds, int) and rounds > 0 else None,
            budget_s=float(budget_s) if isinstance(budget_s, int | float) and budget_s > 0 else None,
            anytime=bool(table.get("--anytime")),
        )

    def given(self) -> dict[str, float]:
        """Those that were given, by the option's name."""
        named = {"--rounds": self.rounds, "--budget": self.budget_s, "--anytime": self.anytime or None}
        return {name: value for name, value in named.items() if value is not None}

    def comments(self) -> bytes:
        """What stands above the study of a campaign that they changed."""
        lines = (
            f"# vtax run {name}{'' if value is True else f' {value:g}'} overrode the study below\n"
            for name, value in self.given().items()
        )
        return "".join(lines).encode()


def refuse_small_budget(plan: Plan) -> tuple[str, ...]:
    """Raise UsageError for a budget below one round; a sentence when it ends before the first interim analysis."""
    budget_s = plan.study.budget_s
    if budget_s is None:
        return ()
    round_s = plan.estimate_until(1)
    if round_s > budget_s:
        raise UsageError(
            f"the budget of {format_seconds(budget_s)} is too small: one round takes about {format_seconds(round_s)}",
            remedy="raise the budget or reduce the work in the study",
        )
    first = plan.study.looks[0]
    if plan.estimate_until(first) <= budget_s:
        return ()
    rounds = sum(plan.estimate_until(number) <= budget_s for number in range(1, first))
    return (
        f"the budget is enough for about {rounds} rounds, and the first interim analysis is after {first}, so no "
        "verdict will be possible",
    )
