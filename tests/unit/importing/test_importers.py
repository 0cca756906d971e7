"""Readers of the importer: recorded outputs give the recorded numbers, and quirks of folders do not change them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from builders.logs import CLIENT, LOGS, PAIRS, readings, refused, sections, taken, text_of
from builders.recorded import case_id, cases, expected
from vtax.tools import tools
from vtax.tools.stress_ng.messages import seconds_of

PLACES = ("node", "client", "server", "filesystem", "direction", "protocol")
DIGITS = 6e-3  # iperf3's text has three digits, its JSON all
BANNER = text_of(LOGS["sysbench cpu"]).split("\n", 1)[0]

OLD_CPU = """\
sysbench 0.4.12:  multi-threaded system evaluation benchmark

Running the test with following options:
Number of threads: 1

Doing CPU performance benchmark

Threads started!
Done.

Maximum prime number checked in CPU test: 20000


Test execution summary:
    total time:                          27.9063s
    total number of events:              10000
    total time taken by event execution: 27.9043
    per-request statistics:
         min:                                  2.75ms
         avg:                                  2.79ms
         max:                                  3.09ms
         approx.  95 percentile:               2.83ms

Threads fairness:
    events (avg/stddev):           10000.0000/0.00
    execution time (avg/stddev):   27.9043/0.00
"""  # written by hand, after the format strings of sysbench 0.4.12
THROUGHPUT = """\
\tIozone: Performance Test of File I/O
\t        Version $Revision: 3.489 $

\tCommand line used: iozone -t 2 -i 0
\tOutput is in kBytes/sec
\tThroughput test with 2 processes
\tEach process writes a 512 kByte file in 4 kByte records

\tChildren see throughput for  2 initial writers \t=   60000.00 kB/sec
\tParent sees throughput for  2 initial writers \t=   50000.00 kB/sec
\tMin throughput per process \t\t\t=   29000.00 kB/sec
\tMax throughput per process \t\t\t=   31000.00 kB/sec
\tAvg throughput per process \t\t\t=   30000.00 kB/sec
\tMin xfer \t\t\t\t\t=     512.00 kB

iozone test complete.
"""  # written by hand, after the format strings of iozone 3.489


IMPORTED = {
    one.name for tool in tools() if tool.logs for one in tool.benchmarks
}  # other people have no logs of the rest


@pytest.mark.parametrize("folder", [one for one in cases() if one.parent.name in IMPORTED], ids=case_id)
def test_a_recorded_output_has_the_numbers_worked_out_by_hand(folder: Path) -> None:
    """Every number of the strict parser is there, from the files alone, whatever their names are."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix not in (".toml", ".json")]
    got = [value for path in files for value in taken(text_of(path))]
    for wanted in expected(folder):
        labels = tuple(sorted(pair for pair in wanted.labels.items() if pair[0] not in PLACES))
        assert any(
            value.metric == wanted.metric
            and tuple(pair for pair in value.labels if pair[0] not in PLACES) == labels
            and math.isclose(value.value, wanted.value, rel_tol=DIGITS)
            for value in got
        ), f"{wanted} is missing"


@pytest.mark.parametrize("name", sorted(LOGS))
def test_what_people_do_to_a_file_changes_no_number(name: str) -> None:
    text = text_of(LOGS[name])
    clean = taken(text)
    assert clean, "the log has values"
    prompt = "someone@node1:~$ ls results\nnotes.txt\n"
    assert taken(text.replace("\n", "\r\n")) == clean
    assert taken(prompt + text.rstrip("\n")) == clean
    assert taken("Welcome to Ubuntu 24.04 LTS\n\n * Support: none\n" + text + "\nsomeone@node1:~$ ") == clean


@pytest.mark.parametrize("name", sorted(LOGS))
def test_two_runs_in_one_file_are_two_runs(name: str) -> None:
    text = text_of(LOGS[name])
    assert taken(text.rstrip("\n") + "\n" + text) == taken(text) * 2


def test_ranks_of_one_mpirun_are_one_run_even_when_each_came_in_one_piece() -> None:
    one, other = (text_of(path) for path in PAIRS["sysbench cpu"])
    command = "user@master:~$ mpirun -np 2 --host a,b sysbench cpu --threads=1 run\n"
    (reading,) = readings(command + one + other)
    assert reading.ranks == 2
    assert reading.facts["ranks_asked"] == 2
    assert reading.facts["hosts"] == "a,b"


def test_a_rank_that_did_not_end_spoils_the_sum() -> None:
    """Three rates of four ranks are no sum, and which one is missing is not known."""
    one, other = (text_of(path).rstrip("\n").split("\n") for path in PAIRS["sysbench cpu"])
    text = "\n".join([*one[:10], *other, *one[10:15]])
    assert not taken(text)
    assert any("ranks began" in reason for reason in refused(text))


def test_tags_of_mpirun_tell_the_ranks_apart() -> None:
    one, other = (text_of(path).rstrip("\n").split("\n") for path in PAIRS["sysbench cpu"])
    lines = [f"[1,0]<stdout>:{line}" for line in one] + [f"[1,1]<stdout>:{line}" for line in other]
    text = "\n".join([*lines[:9], *lines[len(one) :], *lines[9 : len(one)]])
    rates = {dict(value.labels).get("rank"): value.value for value in taken(text) if value.metric == "events_rate"}
    alone = [next(v.value for v in taken("\n".join(each)) if v.metric == "events_rate") for each in (one, other)]
    assert rates == {"0": alone[0], "1": alone[1], None: pytest.approx(sum(alone))}


def test_old_sysbench_prints_a_time_for_a_fixed_number_of_events() -> None:
    found = {value.metric: value.value for value in taken(OLD_CPU)}
    assert found["total_time"] == 27.9063
    assert found["latency_avg"] == pytest.approx(27.9043 / 10_000)
    assert found["latency_p95"] == pytest.approx(0.00283)
    assert "events_rate" not in found


def test_throughput_mode_has_its_unit_in_every_line() -> None:
    (value,) = taken(THROUGHPUT)
    assert value.value == 60_000 * 1024
    assert dict(value.labels) == {
        "operation": "write",
        "processes": "2",
        "file_bytes": "524288",
        "record_bytes": "4096",
    }
    assert not taken(THROUGHPUT.replace("60000.00", "61000.00")), "the mean per process contradicts it"


def test_a_table_of_iozone_without_its_header_has_no_unit_and_is_not_used() -> None:
    lines = text_of(LOGS["iozone kB"]).split("\n")
    head = next(place for place, line in enumerate(lines) if "reclen" in line)
    rows = "\n".join(line for line in lines[head + 1 :] if line.strip() and line.strip()[0].isdecimal())
    assert not taken(rows)
    assert any("unit" in reason for reason in refused(rows))
    without = "\n".join(line for line in lines if "Output is in" not in line)
    assert not taken(without)
    assert any("in which unit" in reason for reason in refused(without))


def test_a_damaged_command_of_iozone_is_refused_and_whole_rows_are_not() -> None:
    """A `-` that was typed behind the number of a test: rows that have all columns need no command."""
    text = text_of(LOGS["iozone kB"])
    damaged = text.replace(" -i 4 ", " -i4- ")
    assert damaged != text
    assert taken(damaged) == taken(text)
    assert "'4-' is not the number of a test: which columns a row has is not known" in refused(damaged)
    blanks = text_of(LOGS["iozone blanks"])
    assert not taken(blanks.replace(" -i 5", " -i5-"))


@pytest.mark.parametrize("word", ["nan", "-1", "1.5", "9" * 400])
def test_a_row_of_iozone_with_a_word_that_is_not_its_number_is_refused(word: str) -> None:
    text = text_of(LOGS["iozone kB"])
    assert "     128      64 " in text
    for size in ("     128", "      64 "):
        damaged = text.replace("     128      64 ", "     128      64 ".replace(size, f"  {word} "))
        assert len(taken(damaged)) == len(taken(text)) - 13
        assert refused(damaged) == ["a row with something else than numbers in it"]


def test_a_table_saved_by_a_spreadsheet_has_the_same_numbers() -> None:
    """Tabs instead of blanks, quotes around the first word, options that became #NAME?."""
    text = text_of(LOGS["iozone kB"])
    rows = []
    for line in text.split("\n"):
        words = line.split()
        words = ["#NAME?" if word.startswith("-") and "Command" in line else word for word in words]
        rows.append("\t".join(['"\t' + words[0] + '"', *words[1:], "", ""]) if words else "\t\t\t")
    assert taken("\r\n".join(rows)) == taken(text)


def test_the_receiver_counts_and_the_unit_of_its_own_line() -> None:
    text = CLIENT.format(host="node1", address="10.0.0.1")
    found = {value.metric: value.value for value in taken(text)}
    assert found == {
        "throughput": 1e9,
        "retransmits": 7.0,
        "transfer": 1.16 * 2**30,
        "transfer_sent": 1.16 * 2**30,
        "throughput_sent": 1e9,
        "throughput_interval": 1e9,
        "transfer_interval": 119 * 2**20,
        "retransmits_interval": 0.0,
    }
    assert not any(value.metric == "throughput" for value in taken(text.replace("1.16 GBytes", "1.16 MBytes")))


def test_several_sessions_stand_apart() -> None:
    text = "".join(f"\nA title {n}\n" + CLIENT.format(host=f"h{n}", address=f"10.0.0.{n}") for n in (1, 3, 4))
    assert [value.value for value in taken(text) if value.metric == "throughput"] == [1e9] * 3
    assert {reading.direction for reading in readings(text)} == {f"10.0.0.2>10.0.0.{n} forward" for n in (1, 3, 4)}


def test_a_damaged_summary_of_hpcc_counts_only_where_its_sections_agree() -> None:
    text = text_of(LOGS["hpcc"])
    whole = {value.metric: value.value for value in taken(text)}
    lines = text.split("\n")
    place = next(n for n, line in enumerate(lines) if line.startswith("SingleSTREAM_Add="))
    lines[place] = lines[place][:-2]  # two digits are gone
    damaged = {value.metric: value.value for value in taken("\n".join(lines))}
    assert "SingleSTREAM_Add" not in damaged or damaged["SingleSTREAM_Add"] == pytest.approx(
        whole["SingleSTREAM_Add"], rel=5e-3
    )
    lines[place] = "some other program wrote this"
    found = taken("\n".join(lines))
    assert "SingleSTREAM_Add" not in {value.metric for value in found}
    assert {value.metric: value.value for value in found}["SingleSTREAM_Triad"] == whole["SingleSTREAM_Triad"]


def test_what_hpcc_prints_twice_is_refused_with_the_reason() -> None:
    text = text_of(LOGS["hpcc"])
    error = [line for line in text.split("\n") if line.startswith("max(|x-x0|):")][-1]
    check = next(line for line in text.split("\n") if line.startswith("||Ax-b||_oo/"))
    whole = {value.metric for value in taken(text)}
    assert whole - {value.metric for value in taken(text.replace(error, f"{error}\n{error}"))} == {"StarFFT_maxErr"}
    assert refused(text.replace(error, f"{error}\n{error}")) == ["2 lines say it, instead of one"]
    assert refused(text.replace(check, f"{check}\n{check}")) == ["a residual check appears twice below it"]


def test_a_residual_check_below_the_row_of_another_system_is_not_taken() -> None:
    """The largest of both would be a wrong residual of the second system."""
    text = text_of(LOGS["hpl"])
    first, second = [line for line in text.split("\n") if line.startswith("||Ax-b||_oo/")][:2]
    damaged = text.replace(second, f"{second}\n{first}")
    assert set(taken(damaged)) < set(taken(text))
    assert refused(damaged) == ["a residual check appears twice below it"]


def test_of_an_aborted_run_the_completed_sections_are_taken_and_marked() -> None:
    text = text_of(LOGS["hpcc"])
    aborted = text[: text.index("Begin of StarSTREAM section.")]
    both = taken(aborted + text)
    marked = {value.metric: value.value for value in both if ("run", "aborted") in value.labels}
    assert [value for value in both if ("run", "aborted") not in value.labels] == taken(text)
    assert any("aborted; completed sections: " in reason for reason in refused(aborted + text))
    assert {"PTRANS", "StarDGEMM", "StarRandomAccess"} <= set(marked)
    assert not any(name.startswith(("StarSTREAM", "HPL", "RandomlyOrdered")) for name in marked)
    whole = {value.metric: value.value for value in taken(text)}
    assert all(value == pytest.approx(whole[name], rel=1e-3) for name, value in marked.items())


def test_a_section_that_is_not_whole_is_not_taken() -> None:
    text = text_of(LOGS["hpcc"])
    cut = text[: text.index("End of StarRandomAccess section.")]
    assert "StarRandomAccess" not in {value.metric for value in taken(cut)}
    assert "MPIRandomAccess" in {value.metric for value in taken(cut)}


def test_a_killed_worker_takes_its_cpu_time_with_it() -> None:
    text = text_of(LOGS["stress-ng 0.19"])
    lines = text.split("\n")
    pid = lines[0].split("[")[1].split("]")[0]
    killed = f"stress-ng: debug: [{pid}] cpu: assuming killed by OOM killer, restarting again (instance 0)"
    damaged = "\n".join([*lines[:12], killed, *lines[12:]])
    (reading,) = readings(damaged)
    assert reading.facts["oom_kills"] == 1
    assert {value.metric for value in taken(damaged)} == {"bogo_ops", "bogo_ops_rate_real"}
    assert any("killed" in reason for reason in refused(damaged))


def test_little_cpu_time_is_believed_where_a_killed_worker_would_be_reported() -> None:
    """Without `--verbose`, stress-ng restarts a killed worker in silence, and its CPU time is lost."""
    text = text_of(LOGS["stress-ng 0.19"])
    row = next(line for line in text.split("\n") if "metrc" in line and " cpu   " in line)
    prefix, numbers = row.split(" cpu ", 1)
    count, real_s = numbers.split()[:2]
    rates = f"{int(count) / float(real_s):.2f} {int(count) / 0.02:.2f}"
    little = text.replace(row, f"{prefix} cpu {count} {real_s} 0.02 0.00 {rates}")
    quiet = "\n".join(line for line in little.split("\n") if "debug:" not in line)
    assert {value.metric for value in taken(little)} == {"bogo_ops", "bogo_ops_rate_real", "bogo_ops_rate_cpu"}
    assert {value.metric for value in taken(quiet)} == {"bogo_ops", "bogo_ops_rate_real"}
    assert any("killed" in reason for reason in refused(quiet))


@pytest.mark.parametrize(
    ("text", "seconds"), [("1 min", 60.0), ("1 min, 0 secs", 60.0), ("60 second", 60.0), ("1 hour, 2 mins", 3720.0)]
)
def test_durations_of_stress_ng(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_text_without_a_benchmark_has_no_sections() -> None:
    assert not sections("nothing here\n" * 100)
    assert not sections("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\n")  # not sizes of a file and a record
