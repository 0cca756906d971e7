"""vtax watch: a running campaign, from another terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from vtax.analysis.estimate.intervals import InterimInterval
    from vtax.running.watch import Snapshot

POLL_S = 2.0
WIDTH = 41  # of an interval's drawing
COMPACT = 21  # of the same on a narrow terminal
WIDE = 120  # columns from which a terminal is not
OTHER_LINES = 10  # lines of a terminal that are not for intervals
WIDEST = 2.0  # the drawing goes from 1/WIDEST to WIDEST, on a logarithmic scale


def watch(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    once: Annotated[bool, typer.Option(help="Show the current state and exit.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the current state as JSON and exit.")] = False,
) -> None:
    """Watch a campaign: rounds, the current trial, the time left, and how the intervals narrow. Ends with the campaign.

    \b
    Example:  vtax watch campaigns/standard-20260101-120000
    """
    from rich.console import Console
    from rich.live import Live

    from vtax.cli.console import print_json
    from vtax.running.watch import Watcher

    watcher = Watcher(directory)
    snapshot = watcher.snapshot()
    if json:
        print_json(snapshot.model_dump(mode="json"))
        return
    console = Console()
    if once or not console.is_terminal:
        console.print(view(snapshot, width=console.width))
        return
    rows = max(3, console.height - OTHER_LINES)
    with Live(view(snapshot, rows, console.width), console=console, refresh_per_second=2) as live:
        while snapshot.running:
            time.sleep(POLL_S)
            snapshot = watcher.snapshot()
            live.update(view(snapshot, rows, console.width))


def view(now: Snapshot, rows: int | None = None, width: int = WIDE) -> RenderableType:
    """One snapshot as text, with at most `rows` intervals, in `width` columns."""
    from rich.console import Group
    from rich.text import Text

    from vtax.units import format_seconds
    from vtax.wording import printable

    state = "running" if now.running else "not running" if now.trial else "ended"
    left = "" if now.remaining_s is None or not now.trial else f", about {format_seconds(now.remaining_s)} left"
    lines = [
        f"{now.directory}: {state}; round {now.rounds_done} of {now.rounds} done, "
        f"trial {now.trials_done} of {now.trials}; elapsed {format_seconds(now.elapsed_s)}{left}"
    ]
    if now.trial:
        lines.append(f"now: {now.cell} {now.trial}" if now.running else f"next: {now.cell} {now.trial}")
    if now.failed:
        lines.append(
            f"failed: {', '.join(now.failed[-3:])}"
            + (f" and {len(now.failed) - 3} more" if len(now.failed) > 3 else "")
        )
    if now.note:
        lines.append(f"no intervals: {now.note}")
    found = table(now.intervals, now.baseline, rows or len(now.intervals), width)
    return Group(Text(printable("\n".join(lines))), Text(printable("\n".join(found)), no_wrap=True))


def table(several: Sequence[InterimInterval], baseline: str, most: int, width: int) -> tuple[str, ...]:
    """At most `most` lines of intervals below a title, how many are left out, and on a narrow terminal what the marks
    of the verdicts mean; none longer than `width`."""
    from vtax.analysis.estimate.intervals import selected
    from vtax.figures.theme import mark_of

    some, more = selected(several, most)
    if not some:
        return ()
    wide = width >= WIDE
    drawing, counted = (WIDTH, "rounds") if wide else (COMPACT, "n")
    versus = max(len(baseline) + 8, *(len(one.environment) for one in some))
    verdicts = max(len(one.verdict) for one in some) if wide else 1
    count = max(len(counted), *(len(str(one.n)) for one in some))
    room = max(12, width - versus - count - verdicts - drawing - 15)
    names = [one.name for one in some]
    if max(map(len, names)) > room:
        names = telling(names)
    longest = min(room, max(len("metric"), *map(len, names)))
    scale = f"1/{WIDEST:g}{'1':^{drawing - 4}}{WIDEST:g}"
    title = f"{'metric':<{longest}}  {f'against {baseline}':<{versus}}  {counted:>{count}}  ratio  {scale}"
    lines = [
        f"{cut(name, longest):<{longest}}  {one.environment:<{versus}}  {one.n:{count}} {one.ratio:6.3f}  "
        f"{strip}  {one.verdict if wide else mark_of(one.verdict).glyph}"
        for name, one, strip in zip(names, some, drawn(some, baseline, drawing), strict=True)
    ]
    marks = dict.fromkeys(f"{mark_of(one.verdict).glyph} {one.verdict}" for one in some)
    key = "" if wide else "   ".join(marks)
    found = (f"{title}  verdict" if wide else title, *lines, more, key)
    return tuple(line[:width].rstrip() for line in found if line)


def telling(names: Sequence[str]) -> list[str]:
    """Names without the words that all rows of their benchmark entry share, and without a word that only puts others
    together, such as `worker1-worker2`, where the rest still distinguishes the rows."""
    several: dict[tuple[str, int], list[str]] = {}
    for name in dict.fromkeys(names):
        several.setdefault((name.split(" ")[0], name.count(" ")), []).append(name)
    short: dict[str, str] = {}
    for own in several.values():
        if len(own) == 1:
            short[own[0]] = own[0]
            continue
        rows = [name.split(" ") for name in own]
        kept = [at for at in range(len(rows[0])) if at == 0 or len({row[at] for row in rows}) > 1]
        for at in kept[:0:-1]:
            rest = [other for other in kept if other != at]
            apart = len({tuple(row[other] for other in rest) for row in rows}) == len(rows)
            if apart and all(any(word in row[at] for word in row[:at] + row[at + 1 :]) for row in rows):
                kept = rest
        short |= {name: " ".join(row[at] for at in kept) for name, row in zip(own, rows, strict=True)}
    return [short[name] for name in names]


def cut(text: str, width: int) -> str:
    """Text of at most `width` letters, without its middle: the ends of a name distinguish it best."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def widest(several: Sequence[InterimInterval]) -> str:
    """`; widest 0.91 to 1.10: hpl HPL, box`; "" without an interval."""
    known = [one for one in several if one.low is not None and one.high is not None]
    if not known:
        return ""
    one = max(known, key=lambda one: one.width)
    return f"; widest interval {one.low:.3g} to {one.high:.3g}: {one.name}, {one.environment}"


def drawn(several: Sequence[InterimInterval], baseline: str, width: int = WIDTH) -> list[str]:
    """Each interval as a line of letters, on one logarithmic axis."""
    from vtax.figures.intervals import Ratio, intervals
    from vtax.figures.terminal import strips

    rows = [
        Ratio(str(place), one.environment, one.ratio, one.low, one.high, one.verdict)
        for place, one in enumerate(several)
    ]
    environments = tuple(dict.fromkeys(one.environment for one in several))
    return strips(intervals("watch", rows, environments, baseline, domain=(1 / WIDEST, WIDEST)), width)
