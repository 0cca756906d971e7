"""Whether a plan can tell environments from machines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vtax.errors import UsageError
from vtax.model.plan import Cell
from vtax.wording import listed

Where = tuple[tuple[str, str], ...]  # node and machine; ("", machine) for all nodes


def refuse_confounded(cells: Iterable[Cell], baseline: str) -> None:
    """Raise UsageError for an environment that never has its nodes on the same machines as the baseline in a round.

    The difference of two machines cannot be told from that of two environments, and no number of rounds helps.
    """
    placed: dict[str, dict[int, set[Where]]] = {}
    for cell in cells:
        where = tuple(sorted(cell.placement.items())) or (("", cell.machine),)
        placed.setdefault(cell.environment, {}).setdefault(cell.round, set()).add(where)
    ours = placed.get(baseline, {})
    for environment, rounds in placed.items():
        common = rounds.keys() & ours.keys()
        if common and not any(rounds[number] & ours[number] for number in common):
            raise UsageError(
                f'environment "{environment}" and the baseline "{baseline}" are never on the same machines in a round: '
                "environment and machine are confounded",
                detail=f"{environment}: {_machines(rounds)}; {baseline}: {_machines(ours)}",
                remedy='give both the same machines: place = "together" or "spread", or one table for all environments',
            )


def _machines(rounds: Mapping[int, set[Where]]) -> str:
    names = {machine for several in rounds.values() for one in several for _, machine in one}
    return listed(sorted(name or "this machine" for name in names))
