"""Logs of containers, pods, journals and launchers: what is in front of each line is removed, and sources separated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from builders.logs import LOGS, imported, lines_of, readings, text_of
from builders.recorded import DATA
from vtax import pipeline
from vtax.importing.sections import cut
from vtax.store import Campaign
from vtax.tools.trials import read_section

TIME = "2026-11-23T15:25:09.123456789Z"
FORMS: dict[str, Callable[[str], str]] = {
    "compose v1": lambda line: f"web_1  | {line}",
    "compose v2, coloured": lambda line: f"\x1b[36mweb-1  | \x1b[0m{line}",
    "compose with times": lambda line: f"web-1  | {TIME} {line}",
    "kubectl --prefix": lambda line: f"[pod/web-1/bench] {line}",
    "kubectl --prefix --timestamps": lambda line: f"[pod/web-1/bench] {TIME} {line}",
    "docker logs -t": lambda line: f"{TIME} {line}".rstrip(),
    "docker's JSON": lambda line: json.dumps({"log": line + "\n", "stream": "stdout", "time": TIME}),
    "CRI": lambda line: f"{TIME} stdout F {line}",
    "journald": lambda line: f"Nov 23 15:25:09 web-1 bench[123]: {line}",
    "journald, ISO": lambda line: f"2026-11-23T15:25:09+0000 web-1 bench[123]: {line}",
    "journald, full times": lambda line: f"Mon 2026-11-23 15:25:09 UTC web-1 bench[123]: {line}",
    "journald, seconds": lambda line: f"1700000000.123456 web-1 bench[123]: {line}",
    "journald, JSON": lambda line: json.dumps({"_PID": "12", "_HOSTNAME": "web-1", "MESSAGE": line}),
    "syslog": lambda line: f"<13>Nov 23 15:25:09 web-1 bench: {line}",
    "syslog, RFC 5424": lambda line: f"<13>1 {TIME} web-1 bench 12 - - {line}",
    "GitHub Actions": lambda line: f"2026-11-23T15:25:09.1234567Z {line}",
    "gh run view --log": lambda line: f"build\tRun bench\t2026-11-23T15:25:09.1234567Z {line}",
    "ts": lambda line: f"Nov 23 15:25:09 {line}",
    "ts -s": lambda line: f"00:00:01 {line}",
    "ts %.s": lambda line: f"1700000000.123456 {line}",
    "ts -s %.s": lambda line: f"12.123456 {line}",
    "mpiexec -prepend-rank": lambda line: f"[0] {line}",
    "ctime": lambda line: f"Mon Nov 23 15:25:09 2026 {line}",
    "pdsh": lambda line: f"web-1: {line}",
    "srun -l": lambda line: f"0: {line}",
    "mpirun --tag-output": lambda line: f"[1,0]<stdout>:{line}",
    "mpirun 5 --tag-output": lambda line: f"[prterun-web-1-12@1,0]<stdout>: {line}",
    "mpirun --timestamp-output": lambda line: f"Mon Nov 23 15:25:09 2026<stdout>:{line}",
    "mpirun with tags and times": lambda line: f"Mon Nov 23 15:25:09 2026[1,0]<stdout>:{line}",
    "quoted mail": lambda line: f"> {line}",
    "quoted mail, twice": lambda line: f"> > {line}".rstrip(),
    "indented": lambda line: f"    {line}".rstrip(),
    "tab": lambda line: f"\t{line}",
    "mpirun 5, detailed": lambda line: f"[1,0][web-1:4711]<stdout>: {line}",
    "GitLab": lambda line: f"{TIME} 01O {line}",
    "stern": lambda line: f"web-7d9f8c-x2xq9 bench {line}",
    "heroku": lambda line: f"2026-11-23T15:25:09.123456+00:00 web[bench.1]: {line}",
    "logger of Java": lambda line: f"2026-11-23 15:25:09,123 INFO org.example.Bench - {line}",
    "logger of Python": lambda line: f"INFO:root:{line}",
    "logger of Python, with times": lambda line: f"2026-11-23 15:25:09,123 - bench - INFO - {line}",
    "cat -n": lambda line: f"    12\t{line}",
    "grep -H": lambda line: f"web-1.txt:{line}",
    "grep -n": lambda line: f"12:{line}",
    "dmesg": lambda line: f"[   12.123456] {line}",
    "parallel --tag": lambda line: f"web-1\t{line}",
    "pasted journal": lambda line: f"> Nov 23 15:25:09 web-1 bench[123]: {line}",
}
NAMED = ("compose", "kubectl", "journald", "syslog", "pdsh", "pasted", "stern", "heroku", "grep -H", "parallel")
TOOLS = (
    *("sysbench cpu", "ping", "iperf3 json", "stress-ng 0.19", "hpl", "iozone kB", "redis-benchmark text", "fio text"),
    *("fio json", "stream"),
)


def within(form: str, text: str) -> str:
    return "\n".join(map(FORMS[form], text.rstrip("\n").split("\n"))) + "\n"


def values(text: str) -> list[tuple[str, float]]:
    return [(value.metric.name, value.value) for reading in readings(text) for value in reading.values]


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("name", TOOLS)
def test_a_prefix_changes_no_value(name: str, form: str) -> None:
    text = text_of(LOGS[name])
    assert values(text)
    assert values(within(form, text)) == values(text)


@pytest.mark.parametrize("form", sorted(FORMS))
def test_the_name_of_a_source_is_the_node(form: str) -> None:
    (reading,) = readings(within(form, text_of(LOGS["sysbench cpu"])))
    nodes = {value.labels.get("node", "") for value in reading.values}
    named = form.startswith(NAMED)
    assert len(nodes) == 1
    assert next(iter(nodes)).startswith("web") is named


def halves(form: Callable[[str, bool], str], text: str) -> str:
    """A log of which every line was written in two parts, as container engines do with lines of more than 16 KiB."""
    lines = text.rstrip("\n").split("\n")
    return "".join(
        form(line[: len(line) // 2], False) + "\n" + form(line[len(line) // 2 :], True) + "\n" for line in lines
    )


@pytest.mark.parametrize(
    "form",
    [
        lambda part, last: f"{TIME} stdout {'F' if last else 'P'} {part}",
        lambda part, last: json.dumps({"log": part + "\n" * last, "stream": "stdout", "time": TIME}),
    ],
    ids=["CRI", "docker's JSON"],
)
@pytest.mark.parametrize("name", ["sysbench cpu", "ping", "iperf3 json"])
def test_lines_that_were_written_in_parts(form: Callable[[str, bool], str], name: str) -> None:
    text = text_of(LOGS[name])
    assert values(halves(form, text)) == values(text)
    (first,) = readings(halves(form, text))
    assert first.values[0].line % 2 == 1  # its first part
    without_end = halves(form, text).rpartition('{"log"' if "log" in form("", True) else TIME)[0]
    assert readings(without_end)  # and the last line is not lost


def test_lines_keep_their_numbers() -> None:
    text = text_of(LOGS["ping"])
    (before,), (after,) = readings(text), readings("Attaching to web-1\n" + within("compose v2, coloured", text))
    assert [value.line for value in after.values] == [value.line + 1 for value in before.values]


def alternating(*texts: str) -> str:
    """Lines of several logs in turns."""
    every = [text.rstrip("\n").split("\n") for text in texts]
    return "\n".join(lines[place] for place in range(max(map(len, every))) for lines in every if place < len(lines))


def test_sources_are_separated_and_read_again_with_their_lines(tmp_path: Path) -> None:
    one = text_of(LOGS["sysbench cpu"])
    other = one.replace("events per second:", "events per second: ").replace(" 1.0.20", " 1.0.20")
    both = alternating(
        "\n".join(f"a-1  | {line}" for line in one.split("\n")),
        "\n".join(f"b-1  | {line}" for line in other.split("\n")),
    )
    report = imported(tmp_path, {"compose.log": both})
    assert [(run.source, run.count) for run in report.runs] == [("a-1", 6), ("b-1", 6)]
    found, _ = pipeline.measurements(tmp_path / "campaign")
    rates = {(item.labels["node"], item.round) for item in found if item.metric == "events_rate"}
    assert rates == {("a-1", 1), ("b-1", 1)}
    trials = Campaign.open(tmp_path / "campaign").trials()
    (first,) = [trial.imported for trial in trials if trial.imported and trial.imported.source == "a-1"]
    assert first.pieces[:2] == ((1, 1), (3, 1))


def test_ranks_of_a_tool_of_one_process_are_sources() -> None:
    ping = text_of(LOGS["ping"]).rstrip("\n").split("\n")
    tagged = [f"[1,{rank}]<stdout>:{line}" for line in ping for rank in (0, 1)]
    found = readings("\n".join(tagged))
    assert [len(reading.values) for reading in found] == [5, 5]
    assert {value.labels["node"] for reading in found for value in reading.values} == {"rank 0", "rank 1"}


def test_iperf3_with_timestamps() -> None:
    text = text_of(DATA / "import" / "iperf3-3.12--bookworm-timestamps" / "client.txt")
    (reading,) = readings(text)
    found = {(value.metric.name, value.labels.get("interval", "")): value.value for value in reading.values}
    assert found["throughput", ""] == 13.6e9
    assert found["retransmits", ""] == 20
    assert found["throughput_interval", "1.00-2.00"] == 11.3e9
    assert found["retransmits_interval", "2.00-3.01"] == 6
    assert found["transfer_interval", "0.00-1.00"] == 1.29 * 2**30
    assert found["transfer", ""] == found["transfer_sent", ""] == 4.75 * 2**30


def test_a_session_recorded_by_script() -> None:
    text = text_of(LOGS["ping"]).replace("\n", "\r\n")
    recorded = (
        f"Script started on 2026-11-23 15:25:09+00:00\r\n\x1b]0;root@web\x07\x1b[?2004hroot@web:~# ping x\r\n{text}"
    )
    assert values(recorded) == values(text_of(LOGS["ping"]))


def test_what_was_printed_over_itself_is_behind_its_prefix(tmp_path: Path) -> None:
    """redis-benchmark ends its progress with a carriage return, not a new line."""
    bare = text_of(LOGS["redis-benchmark text"])
    assert "\r" in bare
    lines = bare.rstrip("\n").split("\n")
    files: dict[str, str | bytes] = {
        "bare.txt": bare,
        "pdsh.txt": "".join(f"web-1: {line}\n" for line in lines),
        "times.txt": "".join(f"{TIME} {line}\n" for line in lines),
        "docker.json": "".join(json.dumps({"log": line + "\n", "time": TIME}) + "\n" for line in lines),
    }
    report = imported(tmp_path, files)
    found = {
        file.file: [
            (value["metric"], value["value"], {**value["labels"], "node": ""})
            for run in file.runs
            for value in run.values
        ]
        for file in report.files
    }
    assert found["bare.txt"]
    for name in files:
        assert found[name] == found["bare.txt"], name
    assert {run.source for run in report.runs if run.file == "pdsh.txt"} == {"web-1"}


def test_text_that_only_looks_like_a_prefix_is_left_alone() -> None:
    """stress-ng's own lines begin like pdsh's; ordinary prose with a colon is no source."""
    text = text_of(LOGS["stress-ng 0.19"])
    assert [section.source for section in cut(lines_of(text))] == [""]
    prose = "".join(f"note: line {n} of 100 MB/s\n" for n in range(50))
    assert list(cut(lines_of(prose))) == []
    (section,) = cut(lines_of(prose + text))
    assert len(read_section(section).values) == 3
