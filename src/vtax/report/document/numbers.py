"""Numbers, labels and names as a person reads them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from vtax.analysis.records import Comparison, LadderStep, Level, Score
from vtax.units import format_bytes, format_number, scale_of

DIGITS = re.compile(r"(\d+)")
ABSENT = "–"


def unit_for(levels: Iterable[Level]) -> tuple[float, str]:
    """The factor and unit in which a row of levels reads well: that of the largest."""
    several = list(levels)
    return scale_of(max(abs(level.mean) for level in several), several[0].unit)


def mean_sd(mean: float, sd: float | None) -> str:
    """`5.128 ± 0.013`: the deviation to two significant digits, the mean to the same decimals."""
    if not sd:
        return format_number(mean)
    if abs(mean) >= 1e9 or (mean != 0 and abs(mean) < 1e-4):
        return f"{mean:.3e} ± {sd:.1e}"
    decimals = min(6, max(0, 1 - math.floor(math.log10(sd))))
    return f"{mean:,.{decimals}f} ± {sd:,.{decimals}f}"


def ratio_text(ratio: float) -> str:
    """A ratio to three decimals near one, to three significant digits elsewhere."""
    return f"{ratio:.3f}" if 0.1 <= ratio < 10 else f"{ratio:.3g}"


def interval_text(item: Comparison | LadderStep | Score) -> str:
    """` [0.981, 1.004]`, or nothing where no interval exists."""
    if item.low is None or item.high is None:
        return ""
    return f" [{ratio_text(item.low)}, {ratio_text(item.high)}]"


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts `worker10` after `worker2` and `4096` before `65536`."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in DIGITS.split(text) if part)


def label_value(name: str, value: str) -> str:
    """A label's value, bytes as a size."""
    if name.endswith("_bytes") and value.isdecimal():
        return format_bytes(int(value))
    return value


def labels_text(labels: Mapping[str, str]) -> str:
    """`master → worker1, stressor cpu, record size 4 KiB`: the pair of nodes or the target first, sizes last."""
    rest = dict(labels)
    target = rest.pop("target", "")
    if rest.get("node") == target:
        del rest["node"]
    words = []
    if "client" in rest and "server" in rest:
        words.append(f"{rest.pop('client')} → {rest.pop('server')}")
    elif target:
        words.append(target)
    for name, value in sorted(rest.items(), key=lambda item: (item[1].isdecimal(), item)):
        words.append(f"{name.removesuffix('_bytes').replace('_', ' ')} {label_value(name, value)}")
    return ", ".join(words)


def listed(words: Sequence[str]) -> str:
    """`a, b and c`; "nothing" for none."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "nothing"


def plural(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"
