"""Labels, lists and counts as a person reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from vtax.units import format_bytes

DIGITS = re.compile(r"(\d+)")
# What a terminal, or a reader of Markdown, would obey instead of showing it: C0 but tab and line feed, DEL, C1, marks
# of direction (which reorder the rest of a line), and halves of surrogate pairs, which cannot be written at all.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


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


def shortened(words: Sequence[str], most: int = 8) -> str:
    """All words, or of more than `most` the first two and how many more there are."""
    return ", ".join(words) if len(words) <= most else f"{', '.join(words[:2])} and {len(words) - 2} more"


def plural(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"


def printable(text: str) -> str:
    """Text of others as it may be printed: what a terminal would obey is shown as `\\x1b`."""
    return CONTROL.sub(lambda found: _named(ord(found[0])), text)


def _named(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
