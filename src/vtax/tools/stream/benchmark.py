"""What vtax runs: STREAM with one pinned thread for each CPU of a node, on arrays much larger than its caches.

McCalpin's run rules ask for arrays of four times all last-level caches, and of a million elements at least. The code is
HPC Challenge's variant, so results are "based on a variant of the STREAM benchmark code".
"""

from __future__ import annotations

from math import ceil
from typing import Annotated

from pydantic import Field

from vtax.errors import LeftOut, UsageError
from vtax.launchers.base import Launcher
from vtax.model.nodes import NodeShape, Scope, Target
from vtax.model.plan import Step
from vtax.model.trial import TrialRecord
from vtax.tools.benchmark import GRACE_S, Params, own_section
from vtax.tools.fields import Auto, Threads, threads_on
from vtax.tools.reading import Output, Reading, near_miss
from vtax.tools.stream.metrics import LOOPS, METRICS
from vtax.tools.stream.reader import SETTINGS, read
from vtax.units import format_bytes

OUTPUT = "stream.txt"
CACHES, FEWEST_ELEMENTS = 4, 1_000_000  # of the run rules
ARRAYS, ELEMENT_BYTES = 3, 8
MOST_ELEMENTS = 2**31 - 1  # its code counts them in an int
MEMORY_SHARE = 0.85  # of a node's memory, for the arrays: its kernel and its services need the rest
FEWEST_PASSES = 10  # as in STREAM itself
LEAST_S = 1.0  # that the passes take on a machine as fast as FAST
FAST, USUAL = 12e9, 8e9  # byte/s of one CPU: few have more, most have about as much
SETUP_PASSES = 1.5  # what filling and checking the arrays takes, with their first use of each page
SLOWEST = 60.0  # a run is hung when it takes this many times as long as estimated


class StreamParams(Params):
    """`n` elements of 8 bytes in each of three arrays, and `passes` over them. "auto" is four times the last-level
    caches of the node's CPUs, and passes for a second or more."""

    n: Auto | Annotated[int, Field(ge=1000, le=MOST_ELEMENTS)] = "auto"
    passes: Auto | Annotated[int, Field(ge=2, le=1_000_000)] = "auto"
    threads: Threads = "auto"


class Stream:
    name = "stream"
    group = "Memory"
    requires = ("stream",)
    scopes = (Scope.NODE,)
    default_scopes = (Scope.NODE,)
    metrics = METRICS
    params = StreamParams

    def resolve(self, params: StreamParams, target: Target) -> StreamParams:
        node, threads = target.nodes[0], threads_on(target, params.threads)
        n = elements_for(node) if params.n == "auto" else params.n
        if problem := why_too_large(n, node):
            if params.n == "auto":
                raise LeftOut(problem)
            raise UsageError(f"{node.name}: {problem}", remedy='choose a smaller n, or leave it out ("auto")')
        passes = params.passes
        if passes == "auto":
            passes = max(FEWEST_PASSES, ceil(LEAST_S * FAST * threads / bytes_of_pass(n)))
        return params.model_copy(update={"n": n, "passes": passes, "threads": threads})

    def steps(self, params: StreamParams, target: Target, launcher: Launcher) -> tuple[Step, ...]:
        return (
            Step(
                nodes=target.names,
                argv=("stream", str(params.n), str(params.passes), str(params.threads)),
                timeout_s=GRACE_S + SLOWEST * self.estimate_s(params, target),
                outputs=(OUTPUT,),
            ),
        )

    def read(self, record: TrialRecord) -> tuple[Output, ...]:
        file, section = own_section(record, output=OUTPUT)
        reading = read(section)
        for name, fact in (("n", "elements"), ("passes", "passes"), ("threads", "threads")):
            line = near_miss(section.lines, SETTINGS[fact]) or section.end
            _demand(reading, fact, record.params.get(name), line)
        return (Output(file, reading),)

    def estimate_s(self, params: StreamParams, target: Target) -> float:
        n, passes = int(params.n), int(params.passes)
        return 0.5 + (passes + SETUP_PASSES) * bytes_of_pass(n) / (USUAL * int(params.threads))

    def clocked_s(self, params: StreamParams, target: Target) -> float:
        return 0.0


def elements_for(node: NodeShape) -> int:
    """The elements of an array that follow the run rules on a node. Raises LeftOut where its caches are unknown."""
    if node.last_cache_bytes is None:
        raise LeftOut(
            "the size of the last-level cache is unknown, and the arrays must be four times as large (`n` sets them)"
        )
    return max(FEWEST_ELEMENTS, ceil(CACHES * node.last_cache_bytes / ELEMENT_BYTES))


def why_too_large(n: int, node: NodeShape) -> str:
    """Why a node cannot hold three arrays of `n` elements, with the numbers; "" when it can."""
    array = n * ELEMENT_BYTES
    cache = node.last_cache_bytes
    follows = cache is not None and n == elements_for(node) > FEWEST_ELEMENTS
    because = f" ({CACHES} times the last-level cache of {format_bytes(cache)})" if cache and follows else ""
    said = f"three arrays of {format_bytes(array)}{because}"
    if n > MOST_ELEMENTS:
        return f"{said} have more than the {MOST_ELEMENTS} elements that its code can count"
    if ARRAYS * array > MEMORY_SHARE * node.memory_bytes:
        room = f"{MEMORY_SHARE:.0%} of the node's {format_bytes(node.memory_bytes)} of memory"
        return f"{said} take {format_bytes(ARRAYS * array)}, more than {room}"
    return ""


def bytes_of_pass(n: int) -> int:
    """What the four loops read and write in one pass."""
    return n * ELEMENT_BYTES * sum(arrays for _, arrays in LOOPS.values())


def _demand(reading: Reading, fact: str, planned: object, line: int) -> None:
    """Refuse a run that is not the planned one."""
    found = reading.facts.get(fact)
    if planned is not None and found != planned:
        reading.refuse(line, f"{fact}: {'not printed' if found is None else found}", f"the plan has {planned}")
