"""Blocks: a round on one machine, as one number. What is compared with each other is always in one block.

Where a plan has its rounds on one machine, or spreads each cluster over several, a block is the number of its round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from numpy.typing import NDArray

from vtax.model.plan import Plan
from vtax.model.record import TRIALS

Ints = NDArray[np.int64]
ROUNDS = 1 << 20  # more than any campaign has
assert TRIALS < ROUNDS


@dataclass(frozen=True)
class Blocks:
    """The machines that each have whole rounds alone, () unless there are several, and on which of them a cell is."""

    machines: tuple[str, ...] = ()
    of_cell: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: Plan) -> Blocks:
        machines = tuple(dict.fromkeys(cell.machine for cell in plan.cells))
        if len(machines) < 2:
            return ONE_MACHINE
        return cls(machines, {cell.id: machines.index(cell.machine) for cell in plan.cells})

    def number(self, round_: int, cell: str) -> int:
        """The block of a cell."""
        return ROUNDS * self.of_cell.get(cell, 0) + round_

    def on(self, machine: str, round_: int) -> int:
        """The block of a round on a machine; "" where there is one machine."""
        return ROUNDS * self.machines.index(machine) + round_ if machine else round_

    def machine(self, block: int) -> str:
        return self.machines[block // ROUNDS] if self.machines else ""


@overload
def round_of(block: int) -> int: ...
@overload
def round_of(block: Ints) -> Ints: ...
def round_of(block: int | Ints) -> int | Ints:
    return block % ROUNDS


ONE_MACHINE = Blocks()
