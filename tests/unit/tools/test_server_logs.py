"""Outputs of programs that load servers, as they are found in logs: those that no last line proves to be whole."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from builders.recorded import DATA, PROVENANCE, Value, difference, expected
from vtax.importing.sections import cut
from vtax.tools.reading import Line, Reading, Section, clean, lines_of
from vtax.tools.trials import read_section

FOLDERS = sorted(path.parent for path in (DATA / "logs").glob("*/*/provenance.toml"))
each = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")


REFUSED = sorted(path.parent for path in (DATA / "refused").glob("*/*/provenance.toml"))


def text_of(folder: Path) -> str:
    return (folder / "output").read_bytes().decode("utf-8")


def values(*readings: Reading) -> list[Value]:
    rows = [Value(v.metric.name, v.value, v.metric.unit, dict(v.labels)) for one in readings for v in one.values]
    return sorted(rows, key=lambda row: (row.metric, sorted(row.labels.items()), row.value))


def imported(text: str) -> list[Reading]:
    """The runs in a log, as `vtax import` finds and reads them."""
    lines = (Line(number, *clean(line)) for number, line in enumerate(text.split("\n"), start=1))
    return [read_section(section) for section in cut(lines)]


@each
def test_a_log_gives_the_numbers_in_it(folder: Path) -> None:
    facts = tomllib.loads((folder / "provenance.toml").read_text(encoding="utf-8"))
    assert all(str(facts[key]).strip() for key in PROVENANCE)
    assert facts["reader"] == folder.parent.name
    found = read_section(Section(facts["reader"], lines_of(text_of(folder))))
    assert not found.refusals
    assert found.ended
    assert not difference(values(found), expected(folder))


@each
def test_a_log_is_recognised_without_being_named(folder: Path) -> None:
    found = imported(f"$ cat notes.txt\nhello\n\n{text_of(folder)}\n")
    assert {one.benchmark for one in found} == {folder.parent.name}
    assert not difference(values(*found), expected(folder))


@each
def test_what_is_left_of_a_log_gives_no_other_number(folder: Path) -> None:
    text, whole = text_of(folder), expected(folder)
    for end in range(0, len(text), 7):
        found = read_section(Section(folder.parent.name, lines_of(text[:end])))
        missing = [row for row in values(found) if row not in whole and difference([row], whole[:0])]
        assert all(any(not difference([row], [one]) for one in whole) for row in missing), end


OLD_OLTP = """\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

No DB drivers specified, using mysql
Running the test with following options:
Number of threads: 4

Doing OLTP test.
Running mixed OLTP test
Doing read-only test
Threads started!
Time limit exceeded, exiting...
(last message repeated 3 times)
Done.

OLTP test statistics:
    queries performed:
        read:                            14000
        write:                           0
        other:                           2000
        total:                           16000
    transactions:                        1000   (100.00 per sec.)
    deadlocks:                           250      (25.00 per sec.)
    read/write requests:                 14000 (1400.00 per sec.)
    other operations:                    2000 (200.00 per sec.)

Test execution summary:
    total time:                          10.0000s
    total number of events:              1000
    total time taken by event execution: 39.9000
    per-request statistics:
         min:                                  2.46ms
         avg:                                 39.90ms
         max:                                 49.81ms
         approx.  95 percentile:              48.46ms

Threads fairness:
    events (avg/stddev):           250.0000/10.00
    execution time (avg/stddev):   9.9750/0.01
"""


def test_oltp_of_sysbench_before_1_0_is_read_and_says_its_version() -> None:
    (found,) = imported(OLD_OLTP)
    labels = {"test": "read-only"}
    assert found.benchmark == "sysbench-oltp"
    assert found.facts["sysbench_version"] == "0.4.12"
    assert not found.refusals
    assert values(found) == [
        Value("failed_fraction", 0.2, "1", labels),  # 250 of 1,250 that were begun
        Value("latency_avg", 0.0399, "s", labels),
        Value("latency_max", 0.04981, "s", labels),
        Value("latency_min", 0.00246, "s", labels),
        Value("latency_p95", 0.04846, "s", labels),
        Value("queries_rate", 1400.0, "1/s", labels),
        Value("transactions_rate", 100.0, "1/s", labels),
    ]


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("transactions:                        1000 ", "transactions:                        1001 "),
        ("read:                            14000", "read:                            14001"),
        ("total time:                          10.0000s", "total time:                          11.0000s"),
    ],
)
def test_numbers_of_a_run_that_do_not_fit_are_not_taken(there: str, instead: str) -> None:
    assert there in OLD_OLTP
    (found,) = imported(OLD_OLTP.replace(there, instead))
    assert not found.values
    assert found.refusals


def test_refused_requests_are_no_requests() -> None:
    """redis-benchmark 6.0 counts the refusals of a server that wants a password, and ends with code 0."""
    text = "ERROR: NOAUTH Authentication required.\nWARN: could not fetch server CONFIG\n" + '"GET","100000.00"\n'
    found = read_section(Section("redis-benchmark", lines_of(text)))
    assert not found.values
    assert "NOAUTH" in found.refusals[-1].what


def test_progress_of_pgbench_is_a_time_series() -> None:
    folder = DATA / "logs" / "pgbench" / "13.16--bullseye-progress"
    found = read_section(Section("pgbench", lines_of(text_of(folder))))
    rows = found.series["progress"].rows
    assert rows[0] == (1.0, 1924.8, 0.002052)
    assert [row[0] for row in rows] == [1.0, 2.0, 3.0, 4.0]


def test_a_pgbench_whose_clients_were_aborted_has_no_numbers() -> None:
    whole = text_of(DATA / "readers" / "pgbench" / "17.12--trixie-time")
    found = read_section(Section("pgbench", lines_of(whole + "pgbench: error: Run was aborted; incomplete.\n")))
    assert not found.values
    assert "no result" in found.refusals[0].reason


def test_a_pgbench_without_a_transaction_says_so() -> None:
    whole = text_of(DATA / "readers" / "pgbench" / "17.12--trixie-time")
    text = re.sub(r"(actually processed: )\d+", r"\g<1>0", whole)
    text = re.sub(r"(failed transactions: 0) \(.*\)", r"\g<1> (NaN%)", text)
    assert "(NaN%)" in text
    found = read_section(Section("pgbench", lines_of(text)))
    assert not found.values
    assert [refusal.reason for refusal in found.refusals] == ["no transaction succeeded"]


@pytest.mark.parametrize("folder", REFUSED, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_a_run_on_a_bad_day_has_no_numbers_and_says_why(folder: Path) -> None:
    """A full disk in the middle of a transaction, a server that refuses clients or dies: what the tool then printed."""
    facts = tomllib.loads((folder / "provenance.toml").read_text(encoding="utf-8"))
    assert all(str(facts[key]).strip() for key in PROVENANCE)
    found = read_section(Section(facts["reader"], lines_of(text_of(folder))))
    assert not found.values
    assert any(facts["says"] in refusal.what for refusal in found.refusals), found.refusals
