"""How a running campaign is displayed: intervals and one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

from vtax.events import (
    CampaignStarted,
    CellFinished,
    CellStarted,
    ClusterReady,
    Event,
    IntervalsNow,
    Listener,
    LookTaken,
    Notice,
    StageFinished,
    StageProgress,
    StageStarted,
    TrialFinished,
    TrialStarted,
)
from vtax.model.trial import Status
from vtax.units import format_looks, format_seconds
from vtax.wording import plural, printable

REDRAW_S = 1.0
HEARTBEAT_S = 15.0  # between lines of a long stage without a terminal
BLOCK_ROWS = 12  # intervals that a terminal shows at most
OTHER_LINES = 7  # lines of a terminal that are not for intervals
HEXADECIMAL = re.compile(r"\b[0-9a-f]{8,}\b")  # names of containers and the like, which differ in every cell
SIZE = os.terminal_size((160, 40))  # where standard error has none


@contextlib.contextmanager
def progress() -> Iterator[Listener]:
    """A listener that draws on standard error; a live line only when that is a terminal."""
    lines = Lines(live=sys.stderr.isatty())
    try:
        yield lines.hear
    finally:
        lines.close()


class Lines:
    """Permanent lines for what is done, and below them (on a terminal) the intervals and what is running now."""

    def __init__(self, live: bool) -> None:
        self.live = live
        self.started = time.monotonic()
        self.total = self.done = 0
        self.rounds = 0
        self.round = 0
        self.cell = self.doing = ""
        self.doing_since = self.started
        self.remaining_s: float | None = None
        self.remaining_at = self.started
        self.look: int | None = None  # rounds until the next interim analysis, when that is not the end
        self.look_at = self.started
        self.printed_at = 0.0
        self.not_run: Counter[str] = Counter()  # trials, by cell
        self.open: set[str] = set()  # cells: several where trials alternate between environments
        self.reasons: set[tuple[str, str]] = set()  # why cells were lost, as far as reported
        self.block: tuple[str, ...] = ()  # lines above the live one
        self.block_lines = 0  # how many of them are on the screen
        self.lock = threading.Lock()
        self.closed = threading.Event()
        self.ticker: threading.Thread | None = None
        if live:
            self.ticker = threading.Thread(target=self._tick, daemon=True)
            self.ticker.start()

    def hear(self, event: Event) -> None:
        with self.lock:
            self._hear(event)
            if self.live and not self.closed.is_set():
                self._draw()

    def _hear(self, event: Event) -> None:
        match event:
            case StageStarted(stage, estimate_s):
                self._doing(stage)
                self._left(estimate_s)
                self._print(f"{stage}: about {format_seconds(estimate_s)}" if estimate_s else stage)
            case StageProgress(stage, message):
                self.doing = f"{stage}: {message[:60]}"
                if not self.live and time.monotonic() - self.printed_at > HEARTBEAT_S:
                    self._print(f"{stage}: {message[:100]}, about {self._remaining()} left")
            case StageFinished(stage, elapsed_s):
                self._print(f"{stage}: ready in {format_seconds(elapsed_s)}")
            case CampaignStarted(directory, rounds, cells, trials, done_trials, estimate_s, looks):
                self.total, self.done, self.rounds = trials + done_trials, done_trials, rounds
                self._left(estimate_s)
                again = f", {done_trials} done before" if done_trials else ""
                left = format_seconds(estimate_s)
                self._print(f"campaign {directory}: {cells} cells, {trials} trials{again}, about {left}")
                if len(looks) > 1:
                    self._print(
                        f"interim analyses after {format_looks(looks)}; ends when all primary metrics have a verdict"
                    )
            case CellStarted(cell, round_, environment, trials):
                self.cell, self.round = cell, round_
                self.open.add(cell)
                self._doing("provisioning")
                self._print(f"round {round_}/{self.rounds}: {environment}: {trials} trials, {self._remaining()} left")
            case ClusterReady(cell, nodes, elapsed_s):
                self._print(f"  {cell}: {nodes} nodes verified in {elapsed_s:.1f} s")
            case TrialStarted(trial, _):
                self.cell, _, name = trial.partition("/")
                self._doing(name)
            case TrialFinished(trial, status, failure, elapsed_s, remaining_s, look, look_s):
                self.done += 1
                self._left(remaining_s)
                self.look = look if look_s < remaining_s else None
                self.look_at = time.monotonic() + look_s
                if status == Status.NOT_RUN:
                    self.not_run[trial.partition("/")[0]] += 1  # for one reason, reported once when the cell is over
                    return
                reason = f": {failure.splitlines()[0]}" if failure else ""
                name = self._name(trial)
                count = f"[{self.done}/{self.total}]"
                self._print(f"  {count} {name}: {status} in {elapsed_s:.1f} s, {self._remaining()} left{reason}")
            case CellFinished(cell, status, failure):
                self.open.discard(cell)
                if status != "ok":
                    self._lost(cell, status, failure)
            case LookTaken(rounds, ends, reason):
                what = "ended after" if ends else "interim analysis after"
                self._print(f"{what} {rounds} {plural(rounds, 'round')}: {reason}")
            case IntervalsNow():
                self._narrowed(event)
            case Notice(message):
                self._print(f"note: {message}")

    def _name(self, trial: str) -> str:
        """What a trial is called: with its environment where trials alternate."""
        cell, _, name = trial.partition("/")
        return f"{cell.partition('-')[2]}: {name}" if len(self.open) > 1 else name

    def _doing(self, what: str) -> None:
        self.doing, self.doing_since = what, time.monotonic()

    def _left(self, seconds: float) -> None:
        self.remaining_s, self.remaining_at = seconds, time.monotonic()

    def _remaining(self) -> str:
        if self.remaining_s is None:
            return "?"
        left = format_seconds(max(0.0, self.remaining_s - (time.monotonic() - self.remaining_at)))
        if self.look is None:
            return left
        until = format_seconds(max(0.0, self.look_at - time.monotonic()))
        return f"{until} to the analysis after round {self.look}, {left}"

    def _lost(self, cell: str, status: str, failure: str) -> None:
        """A cell that did not end as planned; its reason in full, with what to do next, when it is a new one."""
        first, *rest = failure.splitlines() or [""]
        not_run = self.not_run.pop(cell, 0)
        count = f", {not_run} trials not run" if not_run else ""
        self._print(f"  {cell}: {status}{count}: {first}")
        reason = cell.partition("-")[2], HEXADECIMAL.sub("", "\n".join(rest))
        if reason not in self.reasons:
            self.reasons.add(reason)
            for line in rest:
                self._print(f"    {line.strip()}")

    def _narrowed(self, event: IntervalsNow) -> None:
        from vtax.cli.watch import table, widest

        if self.live:
            width, height = _size()
            rows = min(BLOCK_ROWS, height - OTHER_LINES)
            print(self._cleared(), end="", file=sys.stderr)
            self.block = table(event.intervals, event.baseline, rows, width - 1) if rows > 0 else ()
        else:
            self._print(f"after round {event.rounds}: {event.summary}{widest(event.intervals)}")

    def _print(self, line: str) -> None:
        self.printed_at = time.monotonic()
        print(f"{self._cleared()}{printable(line)}", file=sys.stderr, flush=True)

    def _cleared(self) -> str:
        """What removes the live line, and the block above it."""
        if not self.live:
            return ""
        up, self.block_lines = self.block_lines, 0
        return "\r\x1b[2K" + "\x1b[1A\x1b[2K" * up

    def _draw(self) -> None:
        if not self.doing:
            return
        elapsed = format_seconds(time.monotonic() - self.started)
        here = format_seconds(time.monotonic() - self.doing_since)
        count = f"round {self.round}/{self.rounds}  trial {self.done + 1}/{self.total}  " if self.total else ""
        line = f"{count}{self.cell}  {self.doing} ({here})  elapsed {elapsed}, about {self._remaining()} left"
        block = ""
        if not self.block_lines:
            block, self.block_lines = "".join(f"{printable(text)}\n" for text in self.block), len(self.block)
        print(f"\r\x1b[2K{block}{printable(line).strip()[: _size().columns - 1]}", end="", file=sys.stderr, flush=True)

    def _tick(self) -> None:
        while not self.closed.wait(REDRAW_S):
            with self.lock:
                if not self.closed.is_set():
                    self._draw()

    def close(self) -> None:
        self.closed.set()
        if self.ticker:
            self.ticker.join()
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def _size() -> os.terminal_size:
    """Of the terminal that is drawn on: a longer line would break, and could not be cleared."""
    try:
        return os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        return SIZE
