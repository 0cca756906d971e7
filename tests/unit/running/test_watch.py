"""Watching and serving a campaign from its directory alone."""

from __future__ import annotations

import fcntl
import http.client
import io
import json
import os
import socket
import struct
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from builders.small import PRINTED, new_campaign, planned, store
from fakes.cluster import FakeProvider
from vtax.analysis.estimate.intervals import InterimInterval, selected
from vtax.cli.app import app
from vtax.cli.watch import WIDTH, cut, drawn, table, telling, view
from vtax.errors import UsageError
from vtax.planning.plan import ORCHESTRATION_S, SWITCH_S
from vtax.publishing.server import CONNECTIONS, PAGE, Server
from vtax.running.watch import Watcher
from vtax.store import Campaign


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Four rounds of two environments with one trial each; three rounds and a half are done."""
    providers = {name: FakeProvider(name, tmp_path) for name in ("host", "box")}
    made = new_campaign(tmp_path / "c", providers, rounds=4, iterations=1)
    store(made, dict.fromkeys(planned(made.plan())[:7], PRINTED))
    return made


# --- watch ---------------------------------------------------------------------------------------------------------


def test_a_snapshot_says_where_a_campaign_is(campaign: Campaign) -> None:
    now = Watcher(campaign.directory).snapshot()
    last = campaign.plan().cells[-1]
    assert (now.running, now.rounds, now.rounds_done) == (False, 4, 3)
    assert (now.trials_done, now.trials, now.failed) == (7, 8, ())
    assert (now.cell, now.trial) == (last.id, "sysbench-cpu.worker1.1")
    assert now.elapsed_s > 0
    assert now.remaining_s is not None
    assert now.remaining_s > 0
    (interval,) = [one for one in now.intervals if "events_rate" in one.name]
    assert (interval.environment, interval.n) == ("box", 3)
    assert interval.ratio == pytest.approx(1.0)


def test_of_alternating_trials_the_next_is_the_next_to_run(tmp_path: Path) -> None:
    """And the time of one environment is that of its own trials, not of those between them."""
    providers = {name: FakeProvider(name, tmp_path) for name in ("host", "box")}
    made = new_campaign(tmp_path / "c", providers, rounds=1, iterations=4, interleave="trial")
    order = planned(made.plan())
    store(made, dict.fromkeys(order[:5], PRINTED))
    now = Watcher(made.directory).snapshot()
    assert f"{now.cell}/{now.trial}" == order[5]
    trials = made.trials(texts=False)
    elapsed_s = trials[0].elapsed_s
    assert now.remaining_s == pytest.approx(3 * (elapsed_s + ORCHESTRATION_S + SWITCH_S), rel=0.01)


def test_a_campaign_that_runs_is_seen_to_run(campaign: Campaign) -> None:
    with campaign.exclusive():
        assert Watcher(campaign.directory).snapshot().running
        assert campaign.running()
    assert not campaign.running()
    with (campaign.directory / ".lock").open("w") as lock:  # looking keeps nobody from starting
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_before_the_first_trial_nothing_is_guessed(tmp_path: Path) -> None:
    made = new_campaign(tmp_path / "c", {name: FakeProvider(name, tmp_path) for name in ("host", "box")})
    now = Watcher(made.directory).snapshot()
    assert (now.trials_done, now.remaining_s, now.intervals, now.elapsed_s) == (0, None, (), 0.0)


def test_the_command_shows_it_once_and_as_json(campaign: Campaign) -> None:
    selected = CliRunner().invoke(app, ["watch", "--once", str(campaign.directory)])
    assert selected.exit_code == 0
    assert "round 3 of 4 done" in " ".join(selected.stdout.split())
    told = json.loads(CliRunner().invoke(app, ["watch", "--json", str(campaign.directory)]).stdout)
    assert told["trials_done"] == 7
    nothing = CliRunner().invoke(app, ["watch", str(campaign.directory / "trials")])
    assert isinstance(nothing.exception, UsageError)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "expected"),
    [
        (1.0, 1.0, 1.0, {20: "o"}),
        (1.0, 0.1, 9.0, {0: "<", 20: "o", 40: ">"}),
        (2.0, None, None, {20: "|", 40: "o"}),
        (12.3, 1.5, 99.0, {20: "|", 39: "-", 40: ">"}),  # the ratio itself is beyond
        (0.005, 0.004, 0.006, {0: "<", 1: " ", 20: "|"}),
    ],
)
def test_an_interval_is_drawn_to_scale(
    ratio: float, low: float | None, high: float | None, expected: dict[int, str]
) -> None:
    (line,) = drawn(
        [InterimInterval(name="x", environment="box", n=3, ratio=ratio, low=low, high=high, verdict="v")], "host"
    )
    assert len(line) == WIDTH == 41
    assert {at: line[at] for at in expected} == expected


def interval(name: str, width: float | None, verdict: str = "inconclusive") -> InterimInterval:
    low, high = (None, None) if width is None else (1 / width, width)
    return InterimInterval(
        name=name, environment="box", n=3, ratio=1.0, low=low, high=high, verdict=verdict, decided=verdict == "slower"
    )


def test_of_many_intervals_those_that_wait_are_shown_the_widest_first_and_in_their_order() -> None:
    several = [
        interval("a", 1.01),
        interval("b", 1.5, "slower"),
        interval("c", 1.2),
        interval("d", None),
        interval("e", 1.1, "slower"),
    ]
    assert selected(several, 5) == (tuple(several), "")
    some, more = selected(several, 2)
    assert ([one.name for one in some], more) == (["c", "d"], "and 3 more, 2 of them settled")
    assert selected(several, 3)[1] == "and 2 more, 2 of them settled"
    assert selected([one for one in several if not one.decided], 1)[1] == "and 2 more"


def test_a_terminal_that_is_low_shows_what_fits(campaign: Campaign) -> None:
    now = Watcher(campaign.directory).snapshot()
    now = now.model_copy(update={"intervals": tuple(interval(f"m{number}", 1.1) for number in range(40))})
    console = Console(width=120, height=20, record=True, file=io.StringIO())
    console.print(view(now, 11))
    text = console.export_text()
    assert sum("inconclusive" in line for line in text.splitlines()) == 11
    assert "and 29 more" in text


def test_names_on_a_narrow_terminal_say_what_differs() -> None:
    """Rows of iozone do not all read "iozone thro...": what they share goes, and what is left loses its middle."""
    places = (("local", "worker1", "worker1"), ("shared", "worker1", "worker1.shared"))
    several = [
        interval(f"iozone throughput 2097152 {place} {node} {operation} {record} {target}", 1.1)
        for place, node, target in places
        for operation in ("read", "write")
        for record in ("65536", "1048576")
    ]
    lines = table(several, "host", 8, 80)
    assert lines[1].split("  ")[0] == "iozone local read 65536"
    assert lines[8].split("  ")[0] == "iozone shared write 1048576"
    assert lines[1].endswith("○")
    assert lines[-1] == "○ inconclusive"
    assert max(map(len, lines)) <= 80
    wide = table(several, "host", 8, 200)
    assert wide[1].startswith(several[0].name)
    assert wide[1].endswith("inconclusive")
    pairs = ["iperf3 throughput worker1 worker2 worker1-worker2", "iperf3 throughput worker2 worker1 worker2-worker1"]
    assert telling(["hpl HPL 672 workers", *pairs]) == [
        "hpl HPL 672 workers",
        "iperf3 worker1 worker2",
        "iperf3 worker2 worker1",
    ]
    assert cut("RandomlyOrderedRingLatency", 11) == "Rando…tency"


# --- serve ---------------------------------------------------------------------------------------------------------


class Served:
    """A server in a thread, and a browser that keeps its cookie."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cookie = ""

    def get(
        self, path: str, *, host: str = "", method: str = "GET", inside: bool = True
    ) -> tuple[int, dict[str, str], bytes]:
        path = self.server.place + path.removeprefix("/") if inside else path
        connection = http.client.HTTPConnection(self.server.host, timeout=10)
        headers = {"Host": host or self.server.host, **({"Cookie": self.cookie} if self.cookie else {})}
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        found = (answer.status, dict(answer.getheaders()), answer.read())
        connection.close()
        return found

    def enter(self) -> None:
        split = urllib.parse.urlsplit(self.server.address)
        status, headers, _ = self.get(f"/?{split.query}", inside=False)
        assert (status, headers["Location"]) == (303, f"{self.server.place}{PAGE}")
        self.cookie = headers["Set-Cookie"].partition(";")[0]


@pytest.fixture
def served(campaign: Campaign) -> Iterator[Served]:
    rendered: list[Path] = []

    def render(directory: Path) -> None:
        rendered.append(directory)
        campaign.save("report/index.html", b"<!doctype html><p>report")

    with Server(campaign.directory, render) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield Served(server)
        server.shutdown()
        thread.join()


def test_without_the_token_nothing_is_served(served: Served) -> None:
    for path in ("/", f"/{PAGE}", "/plan.json", "/?token=wrong"):
        assert served.get(path)[0] == 403
    served.cookie = f"{served.server.cookie}=wrong"
    assert served.get("/")[0] == 403
    served.enter()
    assert served.get(f"/{PAGE}", inside=False)[0] == 403  # a path that others know


def test_two_servers_do_not_share_a_cookie(served: Served, campaign: Campaign) -> None:
    """Browsers send cookies to every port of a machine, if name and path fit."""
    with Server(campaign.directory, lambda directory: None) as other:
        assert other.cookie != served.server.cookie
        assert other.place != served.server.place
    _, headers, _ = served.get(f"/?token={served.server.token}", inside=False)
    assert headers["Set-Cookie"] == (
        f"vtax-{served.server.server_address[1]}={served.server.token}; HttpOnly; SameSite=Strict; "
        f"Path={served.server.place}"
    )


SCRIPT = b"<!doctype html><script>document.title = 'owned'</script>"


def test_only_the_page_that_was_rendered_here_is_a_page(served: Served, campaign: Campaign) -> None:
    """Neither a page that came with the campaign, however new it is, nor any other."""
    for name in (PAGE, "report/other.html", "report/x.svg"):
        campaign.save(name, SCRIPT)
    later = time.time() + 3600
    os.utime(campaign.directory / PAGE, (later, later))
    served.enter()
    assert served.get("/")[2] == b"<!doctype html><p>report"
    campaign.save(PAGE, SCRIPT)
    assert served.get("/")[2] == b"<!doctype html><p>report"
    assert served.get("/report/other.html")[1]["Content-Type"] == "text/plain; charset=utf-8"
    for name in ("/", "/report/other.html", "/report/x.svg", "/plan.json", "/nothing"):
        policy = served.get(name)[1]["Content-Security-Policy"]
        assert policy.startswith("sandbox; default-src 'none';"), name
        assert "script-src" not in policy


def test_the_page_has_its_own_policy_as_a_header(served: Served, campaign: Campaign) -> None:
    content = b'<meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;"><p>report'
    served.server.render = lambda directory: campaign.save(PAGE, content)
    served.enter()
    status, headers, body = served.get("/")
    assert (status, body) == (200, content)
    assert headers["Content-Security-Policy"] == "default-src 'none'; frame-ancestors 'none'"


def test_idle_connections_are_ended_and_limited(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.publishing.server.Handler.timeout", 0.3)
    port = served.server.server_address[1]
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
    time.sleep(0.2)
    assert sum("process_request_thread" in thread.name for thread in threading.enumerate()) <= CONNECTIONS
    time.sleep(0.5)
    assert served.get("/")[0] == 403  # it serves again
    for one in idle:
        one.close()


def test_a_connection_that_is_never_silent_is_ended(
    served: Served, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A byte now and then, and a browser that goes away before it is answered, which is no error."""
    monkeypatch.setattr("vtax.publishing.server.REQUEST_S", 0.5)
    with socket.create_connection(("127.0.0.1", served.server.server_address[1])) as slow:
        slow.settimeout(5)
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            while time.monotonic() - began < 5:
                slow.sendall(b"X")
                time.sleep(0.05)
    with socket.create_connection(("127.0.0.1", served.server.server_address[1])) as gone:
        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gone.sendall(f"GET / HTTP/1.1\r\nHost: {served.server.host}\r\n\r\n".encode())
    time.sleep(0.2)
    assert served.get("/")[0] == 403
    assert capfd.readouterr().err == ""


def test_with_the_token_the_report_is_rendered_and_served(served: Served, campaign: Campaign) -> None:
    served.enter()
    status, headers, body = served.get("/")
    assert (status, body) == (200, b"<!doctype html><p>report")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Refresh" not in headers
    with campaign.exclusive():
        assert served.get("/")[1]["Refresh"] == "10"
    assert served.get("/", method="HEAD")[2] == b""


def test_raw_files_are_text_and_only_those_of_the_campaign(served: Served, campaign: Campaign) -> None:
    served.enter()
    (campaign.directory / "trials" / "evil.html").write_text("<script>")
    status, headers, body = served.get("/trials/evil.html")
    assert (status, body) == (200, b"<script>")
    assert headers["Content-Type"].startswith("text/plain")
    outside = campaign.directory.parent / "secret"
    outside.write_text("no")
    (campaign.directory / "link").symlink_to(outside)
    for path in (
        "/../secret",
        "/%2e%2e/secret",
        "/link",
        "/.lock",
        "/trials/../../secret",
        "/nothing",
        "/%00",
        "/trials",
    ):
        assert served.get(path)[0] == 404, path


def test_another_sites_name_is_refused(served: Served) -> None:
    served.enter()
    assert served.get("/", host="evil.example")[0] == 421
    assert served.get("/", host=served.server.host.replace("127.0.0.1", "localhost"))[0] == 200


def test_the_server_listens_on_loopback_only(served: Served) -> None:
    assert served.server.server_address[0] == "127.0.0.1"
