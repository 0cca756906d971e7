"""STREAM: arrays that follow its run rules, or a reason why not; the output of every version of it."""

from __future__ import annotations

import re

import pytest

from builders.recorded import DATA, load, parse, with_text
from fakes.cluster import node_shape
from vtax.errors import LeftOut, ParseError, UsageError
from vtax.model.nodes import HostCapacity, LastCache, NodeShape, Scope, Target
from vtax.tools import log_formats
from vtax.tools.reading import Reading, Section, lines_of
from vtax.tools.stream.benchmark import Stream, StreamParams
from vtax.tools.stream.reader import read, starts

GIB, MIB = 2**30, 2**20
RULE = "-" * 61
ORIGINAL = f"""\
{RULE}
STREAM version $Revision: 5.10 $
{RULE}
This system uses 8 bytes per array element.
{RULE}
Array size = 90000000 (elements), Offset = 0 (elements)
Memory per array = 686.6 MiB (= 0.7 GiB).
Total memory required = 2059.9 MiB (= 2.0 GiB).
Each kernel will be executed 10 times.
 The *best* time for each kernel (excluding the first iteration)
 will be used to compute the reported bandwidth.
{RULE}
Number of Threads requested = 8
Number of Threads counted = 8
{RULE}
Your clock granularity/precision appears to be 1 microseconds.
{RULE}
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:           45000.0     0.033000     0.032000     0.034000
Scale:          45000.0     0.032100     0.032000     0.032201
Add:            48000.0     0.045200     0.045000     0.045301
Triad:          48000.0     0.046012     0.045000     0.047055
{RULE}
Solution Validates: avg error less than 1.000000e-13 on all three arrays
{RULE}
"""
OLD = f"""\
STREAM version $Revision: 5.9 $
{RULE}
This system uses 8 bytes per DOUBLE PRECISION word.
{RULE}
Array size = 31576436, Offset = 0
Total memory required = 722.7 MB.
Each test is run 10 times, but only
the *best* time for each is used.
{RULE}
Function      Rate (MB/s)   Avg time     Min time     Max time
Copy:       12990.8210       0.0390       0.0389       0.0391
Scale:      12990.8210       0.0390       0.0389       0.0391
Add:        14000.0000       0.0543       0.0541       0.0546
Triad:      14000.0000       0.0543       0.0541       0.0546
{RULE}
Solution Validates
{RULE}
"""
MPI = (
    ORIGINAL.replace("5.10", "1.8")
    .replace(
        "Array size = 90000000 (elements), Offset = 0 (elements)", "Total Aggregate Array size = 90000000 (elements)"
    )
    .replace(
        "Each kernel",
        "Data is distributed across 4 MPI ranks\n   Array size per MPI rank = 22500000 (elements)\nEach kernel",
    )
)


def reading_of(text: str) -> Reading:
    return read(Section("stream", lines_of(text)))


def values(text: str) -> dict[str, float]:
    return {value.metric.name: value.value for value in reading_of(text).values}


def on(node: NodeShape) -> Target:
    return Target(scope=Scope.NODE, nodes=(node,), directory="/scratch/stream")


def node(memory_bytes: int = 2 * GIB, cache: int | None = 8 * MIB) -> NodeShape:
    return node_shape("worker1", (0, 1), memory_bytes).model_copy(update={"last_cache_bytes": cache})


def test_arrays_are_four_times_the_last_cache() -> None:
    made = Stream().resolve(StreamParams(), on(node()))
    assert (made.n, made.threads) == (4 * 8 * MIB // 8, 2)
    assert Stream().resolve(StreamParams(), on(node(cache=64 * 1024))).n == 1_000_000  # the least by the run rules


def test_the_passes_take_a_second_on_fast_memory_and_are_ten_at_least() -> None:
    small, large = (Stream().resolve(StreamParams(), on(node(8 * GIB, cache))) for cache in (MIB, 512 * MIB))
    assert isinstance(small.passes, int)
    assert isinstance(small.n, int)
    assert small.passes * small.n * 80 >= 2 * 12e9
    assert large.passes == 10


def test_what_the_study_sets_is_kept() -> None:
    asked = StreamParams(n=5000, passes=3, threads=1)
    assert Stream().resolve(asked, on(node(cache=None))) == asked


def test_arrays_that_do_not_fit_are_left_out_with_the_numbers() -> None:
    with pytest.raises(LeftOut) as caught:
        Stream().resolve(StreamParams(), on(node(4 * GIB, 480 * MIB)))
    assert caught.value.message == (
        "three arrays of 1.88 GiB (4 times the last-level cache of 480 MiB) take 5.62 GiB, more than 85% of the node's "
        "4 GiB of memory"
    )


def test_an_unknown_cache_is_a_reason_too() -> None:
    with pytest.raises(LeftOut, match="the size of the last-level cache is unknown"):
        Stream().resolve(StreamParams(), on(node(cache=None)))


def test_a_chosen_size_that_does_not_fit_is_a_mistake() -> None:
    with pytest.raises(UsageError, match=r"worker1: three arrays of 1\.49 GiB take 4\.47 GiB") as caught:
        Stream().resolve(StreamParams(n=200_000_000), on(node()))
    assert not isinstance(caught.value, LeftOut)


def test_a_node_has_the_caches_behind_its_cpus() -> None:
    caches = (LastCache(cpu_ids=(0, 1), size_bytes=32), LastCache(cpu_ids=(2, 3), size_bytes=16))
    machine = HostCapacity(cpu_ids=(0, 1, 2, 3, 4), memory_bytes=1, last_caches=caches)
    assert machine.last_cache_bytes((0, 1)) == 32
    assert machine.last_cache_bytes((1, 2)) == 48
    assert machine.last_cache_bytes((1, 4)) is None  # that of CPU 4 is unknown


def test_the_table_of_the_original() -> None:
    found = values(ORIGINAL)
    assert found["Triad"] == 48e9
    assert found["Copy"] == 45e9
    assert found["Copy_time"] == 0.033
    facts = reading_of(ORIGINAL).facts
    assert (facts["stream_code"], facts["validated"]) == ("5.10", True)
    assert (facts["elements"], facts["array_bytes"], facts["passes"], facts["threads"]) == (90000000, 720000000, 10, 8)


def test_the_table_of_version_5_9() -> None:
    assert values(OLD)["Triad"] == 14e9
    assert reading_of(OLD).ended


def test_the_table_of_the_mpi_version_is_of_all_ranks() -> None:
    assert reading_of(MPI).ranks == 4
    assert reading_of(MPI).params == {"n": 90000000, "threads": 8, "ranks": 4}
    assert values(MPI)["Add"] == 48e9


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Solution Validates", "Failed Validation on array a[], AvgRelAbsErr > epsilon", "wrong numbers"),
        ("Solution Validates: avg", "Solution: avg", "no line says that the solution validates"),
        (
            "Solution Validates: avg error less than 1.000000e-13 on all three arrays",
            "Solution Validates",
            "no line says",
        ),
        ("Copy:           45000.0", "Copy:           95000.0", "do not move 1440000000 bytes"),
        (
            "Copy:           45000.0     0.033000",
            "Copy:           45000.0     0.031000",
            "the mean time is not between",
        ),
        ("Best Rate MB/s", "Best Rate GiB/s", "no table"),
        ("Scale: ", "Skale: ", "no table"),
        ("Array size = ", "Array size = 1", "do not move"),
        ("Array size = 90000000", "Array size = some", "the number of elements"),
    ],
)
def test_what_contradicts_itself_is_refused(old: str, new: str, words: str) -> None:
    assert old in ORIGINAL
    reading = reading_of(ORIGINAL.replace(old, new))
    assert words in " ".join(refusal.reason for refusal in reading.refusals)


def test_a_run_begins_with_its_version_and_nothing_of_hpcc_does() -> None:
    assert [line for line in ORIGINAL.splitlines() if starts(line)] == ["STREAM version $Revision: 5.10 $"]
    assert not starts("Begin of StarSTREAM section.")
    assert log_formats()["stream"].starts("STREAM of HPC Challenge 1.5.0: based on")


def test_results_of_the_variant_are_labelled_wherever_they_are_shown() -> None:
    """Item 3b of the licence."""
    rates = [metric for metric in Stream.metrics if metric.unit == "byte/s"]
    assert len(rates) == 4
    assert all("based on a variant of the STREAM benchmark code" in metric.meaning for metric in rates)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Number of Threads requested = 2", "Number of Threads requested = 1", "threads: 1: the plan has 2"),
        ("Number of Threads requested = 2\n", "", "threads: not printed: the plan has 2"),
        ("Each test is run 40 times", "Each test is run 10 times", "passes: 10: the plan has 40"),
    ],
)
def test_an_own_run_that_is_not_the_planned_one_is_refused(old: str, new: str, words: str) -> None:
    record = load(DATA / "stream" / "hpcc-1.5.0--trixie")
    text = record.texts["stream.txt"]
    assert old in text
    with pytest.raises(ParseError, match=re.escape(words)):
        parse(with_text(record, "stream.txt", text.replace(old, new)))
