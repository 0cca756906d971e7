"""What a running campaign prints where there is no terminal: plain lines, one for each thing that is done."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError, fields

import pytest

from vtax import events
from vtax.analysis.estimate.intervals import InterimInterval
from vtax.cli import progress
from vtax.cli.progress import Lines
from vtax.events import (
    CampaignStarted,
    CellFinished,
    CellStarted,
    ClusterReady,
    Event,
    IntervalsNow,
    LookTaken,
    Notice,
    StageFinished,
    StageProgress,
    StageStarted,
    TrialFinished,
    TrialStarted,
    ignore,
)

CAMPAIGN = CampaignStarted("campaigns/x", rounds=3, cells=6, trials=40, done_trials=0, estimate_s=200.0)


class Clock:
    """A monotonic clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    return made


def printed(capsys: pytest.CaptureFixture[str], *heard: Event) -> list[str]:
    lines = Lines(live=False)
    for event in heard:
        lines.hear(event)
    lines.close()
    captured = capsys.readouterr()
    assert captured.out == ""  # standard output is for results
    assert "\r" not in captured.err
    assert "\x1b" not in captured.err
    return captured.err.splitlines()


@pytest.mark.usefixtures("clock")
def test_a_campaign_from_its_start_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(
        capsys,
        CAMPAIGN,
        CellStarted("r001-host", 1, "host", 20),
        ClusterReady("r001-host", 3, 1.25),
        TrialStarted("r001-host/hpl.workers.1", 12.0),
        TrialFinished("r001-host/hpl.workers.1", "ok", "", 12.34, 180.0),
        TrialStarted("r001-host/ping.master-worker1.1", 1.0),
        TrialFinished("r001-host/ping.master-worker1.1", "failed", "ping ended with exit code 2\nlog", 1.0, 170.0),
        CellFinished("r001-host", "ok", ""),
    ) == [
        "campaign campaigns/x: 6 cells, 40 trials, about 3 min 20 s",
        "round 1/3: host: 20 trials, 3 min 20 s left",
        "  r001-host: 3 nodes verified in 1.2 s",
        "  [1/40] hpl.workers.1: ok in 12.3 s, 3 min 0 s left",
        "  [2/40] ping.master-worker1.1: failed in 1.0 s, 2 min 50 s left: ping ended with exit code 2",
    ]


@pytest.mark.usefixtures("clock")
def test_a_campaign_that_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    started = CampaignStarted("c", rounds=3, cells=2, trials=10, done_trials=30, estimate_s=60.0)
    assert printed(capsys, started, TrialFinished("r003-host/a.1", "ok", "", 1.0, 0.0)) == [
        "campaign c: 2 cells, 10 trials, 30 done before, about 1 min 0 s",
        "  [31/40] a.1: ok in 1.0 s, 0 s left",
    ]


@pytest.mark.usefixtures("clock")
def test_alternating_trials_name_their_environment(capsys: pytest.CaptureFixture[str]) -> None:
    """Several cells are open at once; what was not run of each is counted on its own."""
    lines = Lines(live=False)
    for event in (
        CampaignStarted("c", 1, 2, 4, 0, 60.0),
        CellStarted("r001-host", 1, "host", 2),
        CellStarted("r001-box", 1, "box", 2),
        TrialStarted("r001-host/ping.1", 1.0),
        TrialFinished("r001-host/ping.1", "ok", "", 1.0, 40.0),
        TrialFinished("r001-box/ping.1", "not run", "no cluster: it rains", 0.0, 30.0),
        TrialFinished("r001-box/ping.2", "not run", "no cluster: it rains", 0.0, 20.0),
        TrialFinished("r001-host/ping.2", "ok", "", 1.0, 10.0),
        CellFinished("r001-host", "ok", ""),
        CellFinished("r001-box", "failed", "it rains"),
    ):
        lines.hear(event)
    lines.close()
    said = capsys.readouterr().err
    assert "[1/4] host: ping.1: ok in 1.0 s" in said
    assert "[4/4] host: ping.2: ok in 1.0 s" in said
    assert "r001-box: failed, 2 trials not run: it rains" in said


def test_a_cell_that_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(
        capsys, CellFinished("r001-box", "failed", "no cluster\nat all"), CellFinished("b", "failed", "")
    ) == [
        "  r001-box: failed: no cluster",
        "    at all",
        "  b: failed: ",
    ]


@pytest.mark.usefixtures("clock")
def test_a_cluster_that_is_not_there_says_why_and_what_next_once(capsys: pytest.CaptureFixture[str]) -> None:
    def reason(name: str) -> str:
        return f"podman start ended\n  no container {name}\n  next: apt-get install iptables"

    def skipped(trial: str, number: int) -> TrialFinished:
        return TrialFinished(trial, "not run", f"no cluster: {reason('x')}", 0.0, 100.0 - number)

    assert printed(
        capsys,
        CAMPAIGN,
        *(skipped(f"r001-box/a.{number}", number) for number in range(14)),
        CellFinished("r001-box", "failed", reason("025c2d500c45")),
        *(skipped(f"r002-box/a.{number}", number) for number in range(2)),
        CellFinished("r002-box", "failed", reason("94b1b1a1e7a8")),
        TrialFinished("r003-host/a.1", "ok", "", 1.0, 0.0),
    )[1:] == [
        "  r001-box: failed, 14 trials not run: podman start ended",
        "    no container 025c2d500c45",
        "    next: apt-get install iptables",
        "  r002-box: failed, 2 trials not run: podman start ended",
        "  [17/40] a.1: ok in 1.0 s, 0 s left",
    ]


@pytest.mark.usefixtures("clock")
def test_a_long_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(
        capsys, StageStarted("image build", 95.0), StageFinished("image build", 61.0), StageStarted("report")
    ) == ["image build: about 1 min 35 s", "image build: ready in 1 min 1 s", "report"]


def test_a_long_stage_is_heard_of_now_and_then(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    lines = Lines(live=False)
    lines.hear(StageStarted("image build", 100.0))
    for second in range(40):
        clock.now = 1000.0 + second
        lines.hear(StageProgress("image build", f"step {second}"))
    assert capsys.readouterr().err.splitlines() == [
        "image build: about 1 min 40 s",
        "image build: step 16, about 1 min 24 s left",
        "image build: step 32, about 1 min 8 s left",
    ]


def test_what_is_left_runs_down_and_never_below_zero(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    lines = Lines(live=False)
    lines.hear(CAMPAIGN)
    clock.now += 50
    lines.hear(CellStarted("r001-host", 1, "host", 20))
    clock.now += 500
    lines.hear(CellStarted("r001-box", 1, "box", 20))
    assert capsys.readouterr().err.splitlines()[1:] == [
        "round 1/3: host: 20 trials, 2 min 30 s left",
        "round 1/3: box: 20 trials, 0 s left",
    ]


def test_before_anything_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, CellStarted("r001-host", 1, "host", 2), Notice("an old kernel")) == [
        "round 1/0: host: 2 trials, ? left",
        "note: an old kernel",
    ]


def test_a_terminal_has_one_live_line(capsys: pytest.CaptureFixture[str], clock: Clock) -> None:
    lines = Lines(live=True)
    lines.hear(CAMPAIGN)
    lines.hear(TrialStarted("r001-host/hpl.workers.1", 12.0))
    clock.now += 5
    lines.hear(Notice("hello"))
    lines.close()
    text = capsys.readouterr().err
    plain = [re.sub(r"\r\x1b\[2K", "", line) for line in text.split("\n")]
    assert plain[0] == "campaign campaigns/x: 6 cells, 40 trials, about 3 min 20 s"
    assert "hpl.workers.1 (0 s)  elapsed 0 s, about 3 min 20 s left" in text
    assert "hpl.workers.1 (5 s)  elapsed 5 s, about 3 min 15 s left" in text
    assert text.endswith("\r\x1b[2K")


HPL = InterimInterval(
    name="hpl HPL workers", environment="box", n=3, ratio=0.5, low=0.25, high=1.0, verdict="inconclusive"
)
CPU = InterimInterval(
    name="sysbench-cpu events", environment="box", n=3, ratio=1.0, low=0.98, high=1.02, verdict="equivalent"
)
NOW = IntervalsNow(3, "host", (HPL, CPU), "1 of 2 primary comparisons have their verdict after 3 complete rounds")


@pytest.mark.usefixtures("clock")
def test_elsewhere_a_round_has_one_line_about_its_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    said = "after round 3: 1 of 2 primary comparisons have their verdict after 3 complete rounds"
    assert printed(capsys, NOW) == [f"{said}; widest interval 0.25 to 1: hpl HPL workers, box"]
    assert printed(capsys, IntervalsNow(3, "host", (), "none")) == ["after round 3: none"]


def test_a_terminal_shows_the_intervals_above_the_live_line_and_replaces_them(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    lines = Lines(live=True)
    lines.hear(CAMPAIGN)
    lines.hear(TrialStarted("r003-host/hpl.workers.1", 12.0))
    lines.hear(NOW)
    lines.hear(IntervalsNow(4, "host", (CPU,), "all"))
    lines.hear(Notice("hello"))
    lines.close()
    screen = shown_on_screen(capsys.readouterr().err)
    assert screen[0].startswith("campaign campaigns/x")
    assert screen[1:] == [
        "note: hello",
        "metric               against host  rounds  ratio  1/2                  1                  2  verdict",
        "sysbench-cpu events  box                3  1.000                     -o-                     equivalent",
    ]


def shown_on_screen(text: str) -> list[str]:
    """What a terminal shows after `text`: it knows line ends, returns, clearing a line and going up one."""
    lines = [""]
    row = 0
    for part in re.findall(r"\x1b\[2K|\x1b\[1A|\r|\n|[^\x1b\r\n]+", text):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part == "\x1b[1A":
            row -= 1
            assert row >= 0
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part != "\r":
            assert lines[row] == ""
            lines[row] = part
    return [line for line in lines if line]


def test_the_listener_where_standard_error_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt), progress.progress() as listener:
        listener(Notice("hello"))
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "note: hello\n"


def test_events_are_frozen_and_nobody_needs_to_listen() -> None:
    kinds = [kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)]
    assert len(kinds) == 13
    for kind in kinds:
        event = kind(*("x" for _ in fields(kind)))
        ignore(event)
        assert event == kind(*("x" for _ in fields(kind)))
        with pytest.raises(FrozenInstanceError):
            setattr(event, fields(kind)[0].name if fields(kind) else "any", "y")


@pytest.mark.usefixtures("clock")
def test_a_campaign_with_looks_tells_the_next_and_why_it_ended(capsys: pytest.CaptureFixture[str]) -> None:
    started = CampaignStarted("campaigns/x", 16, 32, 32, 0, 960.0, looks=(6, 10, 16))
    assert printed(
        capsys,
        started,
        CellStarted("r001-box", 1, "box", 1),
        TrialFinished("r001-box/a.1", "ok", "", 30.0, 930.0, look=6, look_s=330.0),
        LookTaken(6, False, "go on: 1 of 2 primary comparisons are settled"),
        TrialFinished("r016-box/a.1", "ok", "", 30.0, 60.0, look=16, look_s=60.0),
        LookTaken(16, True, "the last planned round: 16 of 16 planned rounds"),
    ) == [
        "campaign campaigns/x: 32 cells, 32 trials, about 16 min 0 s",
        "interim analyses after 6, 10, 16 rounds; ends when all primary metrics have a verdict",
        "round 1/16: box: 1 trials, 16 min 0 s left",
        "  [1/32] a.1: ok in 30.0 s, 5 min 30 s to the analysis after round 6, 15 min 30 s left",
        "interim analysis after 6 rounds: go on: 1 of 2 primary comparisons are settled",
        "  [2/32] a.1: ok in 30.0 s, 1 min 0 s left",
        "ended after 16 rounds: the last planned round: 16 of 16 planned rounds",
    ]
