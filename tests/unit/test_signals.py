"""However vtax is told to end, it removes what it started, once and whole."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator

import pytest

from vtax.cli import main
from vtax.errors import Interrupted


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of this process come back. Until then they are Python's own, also where a shell has started these tests in
    its background, with SIGINT ignored."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in main.ENDING}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ended_by(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a command does that is ended by a signal, and again by each of them while it cleans up."""
    done: list[str] = []

    def app() -> None:
        try:
            signal.raise_signal(number)
            done.append("went on")
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None
        finally:
            for again in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.raise_signal(again)
            done.append("cleaned up")

    monkeypatch.setattr("vtax.cli.app.app", app)
    assert main._run() == (0 if "went on" in done else main.INTERRUPTED)
    return done


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cleans_up_and_a_second_one_does_not_disturb_it(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended_by(number, monkeypatch) == ["cleaned up"]


def test_nohup_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    main_ending = tuple(number for number in main.ENDING if number == signal.SIGHUP)
    monkeypatch.setattr(main, "ENDING", main_ending)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    assert ended_by(signal.SIGHUP, monkeypatch) == ["went on", "cleaned up"]


def test_a_terminal_that_is_gone_is_written_to_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[int] = []
    monkeypatch.setattr("os.isatty", lambda descriptor: descriptor == 2)
    monkeypatch.setattr("os.dup2", lambda source, target: replaced.append(target))
    assert ended_by(signal.SIGHUP, monkeypatch) == ["cleaned up"]
    assert replaced == [2]


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 3), (errno.EDQUOT, 3), (errno.EIO, 1)])
def test_a_full_disk_is_no_defect(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def app() -> None:
        raise OSError(number, os.strerror(number), "/var/lib/thing")

    monkeypatch.setattr("vtax.cli.app.app", app)
    assert main._run() == code
    told = capsys.readouterr().err
    assert ("error: /var/lib/thing cannot be written" in told) is (code == 3)
    assert ("this is a defect of vtax" in told) is (code == 1)
