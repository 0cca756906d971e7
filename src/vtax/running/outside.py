"""What this machine counts of a trial's nodes while its command runs: a control group, or the process of a machine. Of
a machine with a kernel of its own, that kernel counts the memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vtax.facts.perf import Counter
from vtax.model.outside import EVENTS, MEMORY_PEAK
from vtax.providers.base import Cluster, Outside

NO_GROUP = "no control group or process of its own is known of this node"
NO_MARK = "its kernel does not count it anew for each run (Linux does from 6.12 on)"
ONE_NODE = "each guest counts its own, and the run is on several nodes"
REPORTED = re.compile(rb'"memory_peak_bytes": ([0-9]{1,18}),')  # by vtax-run
REPORT_BYTES = 4096
PEAKS = ("memory.peak", "memory.max_usage_in_bytes")  # of versions 2 and 1


@dataclass
class Seen:
    """What was counted, and why the rest was not; all nodes together."""

    counted: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def of_guest(self, report: Path | None, nodes: int) -> None:
        """Take the memory's peak from the report that vtax-run made in a guest, where `nodes` took part."""
        if MEMORY_PEAK not in self.missing or report is None:
            return
        with report.open("rb") as text:
            found = REPORTED.search(text.read(REPORT_BYTES))
        if nodes > 1 or found is None:
            self.missing[MEMORY_PEAK] = ONE_NODE if nodes > 1 else NO_MARK
            return
        del self.missing[MEMORY_PEAK]
        self.counted[MEMORY_PEAK] = int(found[1])


class Peak:
    """The largest use of memory since this began. Raises OSError where it cannot begin anew."""

    def __init__(self, group: Path) -> None:
        path = next((group / name for name in PEAKS if (group / name).exists()), None)
        if path is None:
            raise OSError("its control group does not count it")
        self.file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.write(self.file, b"0")  # the kernel begins anew with what is in use now
        except OSError:
            self.close()
            raise

    def read(self) -> int:
        return int(os.pread(self.file, 64, 0))

    def close(self) -> None:
        os.close(self.file)


@contextmanager
def seen(cluster: Cluster, nodes: Sequence[str], wanted: Sequence[str]) -> Iterator[Seen]:
    """Count what is `wanted` until the end; it is filled in then."""
    found = Seen()
    with ExitStack() as stack:
        where = cluster.outside(nodes) if wanted and cluster.outside is not None else ()
        counters: dict[str, list[Counter | Peak]] = {}
        for name in wanted:
            try:
                counters[name] = [_begin(stack, name, one) for one in where]
            except OSError as error:
                found.missing[name] = error.strerror or str(error)
        try:
            yield found
        finally:
            for name, several in counters.items():
                counts = [one.read() for one in several]
                known = [count for count in counts if count is not None]
                if known and len(known) == len(counts):
                    found.counted[name] = sum(known)
                else:
                    found.missing[name] = "it was counted for a part of the time only" if counts else NO_GROUP


def _begin(stack: ExitStack, name: str, where: Outside) -> Counter | Peak:
    if name == MEMORY_PEAK:
        if where.memory is None:
            raise OSError("nothing outside counts the memory of this node")
        counter: Counter | Peak = Peak(where.memory)
    elif where.subject is None or name not in EVENTS:
        raise OSError(NO_GROUP)
    else:
        counter = Counter(name, where.subject)
    stack.callback(counter.close)
    return counter
