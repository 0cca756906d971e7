"""All goals in order: what `vtax selftest stats` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vtax.selftest import alternating, fixed, honesty, machines, stealing, stopping
from vtax.selftest.campaigns import orders
from vtax.selftest.check import Check

FULL = 20_000  # campaigns of G0 to G2; the other goals take a quarter
SEED = 1
ROUNDS_FIXED, ROUNDS_MOST = 20, 60
RESAMPLED = 2_000  # campaigns that are bootstrapped
RECORDED = 48  # campaigns that go through records


def run(
    replicates: int = FULL, seed: int = SEED, announce: Callable[[str], None] = lambda _: None
) -> tuple[Check, ...]:
    """Every check of every goal; `announce` is called with each goal when it begins."""
    quarter = max(RECORDED, replicates // 4)
    recorded = min(RECORDED, quarter)
    many, few = orders(seed, replicates, ROUNDS_FIXED), orders(seed, quarter, ROUNDS_MOST)
    goals: tuple[tuple[str, Callable[[], Iterable[Check]]], ...] = (
        ("G0", lambda: fixed.g0(seed, replicates)),
        ("G1", lambda: fixed.g1(seed, replicates, many)),
        ("G2", lambda: fixed.g2(seed, replicates, many)),
        ("G2, means", lambda: fixed.means(seed, min(quarter, RESAMPLED), few[:RESAMPLED])),
        ("G3", lambda: fixed.g3(seed, quarter, few)),
        ("G4 and G5", lambda: stopping.g4_g5(seed, quarter, few)),
        ("G4 and G5, anytime", lambda: stopping.anytime(seed, quarter, few)),
        ("G6", lambda: fixed.g6(seed, quarter, few)),
        ("G7", lambda: (*fixed.g7(seed, quarter, few), *honesty.g7(seed, recorded))),
        ("G8", lambda: stopping.g8(seed, quarter, few)),
        ("G9", lambda: stopping.g9(seed, quarter, few)),
        ("G10", lambda: (*honesty.same_bits(seed, recorded, few[:recorded]), *honesty.g10(seed, 8, few[:8]))),
        ("G11", lambda: alternating.g11(seed, replicates, many)),
        ("G12", lambda: stealing.g12(seed, quarter, recorded, few)),
        ("G13", lambda: (*machines.g13(seed, many), *honesty.same_on_machines(seed, min(recorded, 16)))),
    )
    found: list[Check] = []
    for name, goal in goals:
        announce(name)
        found += goal()
    return tuple(sorted(found, key=lambda check: int(check.goal[1:])))
