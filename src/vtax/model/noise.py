"""How even a machine is while nothing of vtax's runs: rates of the same small work, again and again."""

from __future__ import annotations

from vtax.model.record import Record, Seconds


class Probe(Record):
    """One kind of work: its `rates`, in operations per second of each time slot, in pairs of adjacent slots."""

    name: str
    rates: tuple[float, ...]


class NoiseReading(Record):
    """What was measured in `elapsed_s`. `stolen` and `others` are shares of all CPU time: what the hypervisor gave to
    other machines, and what other programs used; absent where the kernel does not count them."""

    elapsed_s: Seconds
    slot_s: Seconds
    apart_s: Seconds  # from one pair of a probe to its next
    stolen: float | None
    others: float | None
    probes: tuple[Probe, ...]
