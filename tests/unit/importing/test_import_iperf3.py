"""iperf3 as other people's logs have it: interrupted sessions, `--json-stream`, titles, rates in kilobits."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.logs import imported, readings, text_of
from builders.recorded import DATA

FOLDER = DATA / "import" / "iperf3-3.18--trixie-interrupted"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("server.txt", "iperf3: the client has terminated"),
        ("client.txt", "iperf3: interrupt - the client has terminated"),
        ("client-reverse.txt", "iperf3: interrupt - the client has terminated"),
        ("stream-interrupted.ndjson", "iperf3 says: interrupt - the client has terminated"),
    ],
)
def test_an_interrupted_session_is_refused(name: str, reason: str) -> None:
    """The server's closing line has a time that is too short, so its rate is too high."""
    (reading,) = readings(text_of(FOLDER / name))
    assert reading.values == []
    assert [refusal.reason for refusal in reading.refusals] == [reason]


def test_an_interrupted_session_whose_error_is_elsewhere_is_refused() -> None:
    """Standard error is not buffered, so in a file with several sessions its line may be behind the one before."""
    text = text_of(FOLDER / "client-reverse.txt").partition("\n")[2]
    (reading,) = readings(text)
    assert reading.values == []
    assert "did not exchange their results" in reading.refusals[0].reason


def test_a_connection_that_ends_on_the_way_is_refused() -> None:
    text = text_of(FOLDER / "server.txt")
    text = text.replace("the client has terminated", "the client has unexpectedly closed the connection")
    (reading,) = readings(text)
    assert reading.values == []


def test_a_recorded_json_stream_is_read() -> None:
    (reading,) = readings(text_of(FOLDER / "stream.ndjson"))
    found = {value.metric.name: value.value for value in reading.values}
    text = text_of(FOLDER / "stream.ndjson")
    received = text.rpartition('"sum_received":{')[2]
    assert f'"bits_per_second":{found["throughput"]}' in received
    assert len([value for value in reading.values if value.metric.name == "throughput_interval"]) == 2


def test_a_json_stream_without_a_connection_has_iperf3s_own_reason(tmp_path: Path) -> None:
    report = imported(
        tmp_path,
        {
            "failed.ndjson": (FOLDER / "stream-refused.ndjson").read_bytes(),
            "both.ndjson": (FOLDER / "stream-refused.ndjson").read_bytes() + (FOLDER / "stream.ndjson").read_bytes(),
        },
    )
    assert [(run.file, run.count > 0, run.left_out[:31]) for run in report.runs] == [
        ("both.ndjson", False, "iperf3 says: unable to connect "),
        ("both.ndjson", True, ""),
        ("failed.ndjson", False, "iperf3 says: unable to connect "),
    ]


def test_titles_and_rates_in_kilobits() -> None:
    (reading,) = readings(text_of(FOLDER / "title-kilobits.txt"))
    assert {value.metric.name: value.value for value in reading.values}["throughput"] == 24402250e3
