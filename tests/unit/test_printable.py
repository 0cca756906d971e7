"""What others wrote is shown on a terminal, never obeyed by it."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.pages import hostile, markdown
from vtax.cli import console, main
from vtax.cli.progress import Lines
from vtax.cli.watch import view
from vtax.errors import ParseError
from vtax.events import CellFinished, Notice, StageProgress, TrialFinished
from vtax.running.watch import Snapshot
from vtax.wording import printable

CLIPBOARD = "\x1b]52;c;ZXZpbA==\x07"  # writes the clipboard where a terminal allows it
EVIL = f"a{CLIPBOARD}b\x1b[2J\x9b31m\x7f\r\b\u202etxt.exe\u2066\udce9"
KEPT = ("\t", "\n")


def obeyed(text: str) -> list[str]:
    """Characters that a terminal obeys: controls, marks of direction, halves of surrogate pairs."""
    marks = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    return [
        one
        for one in text
        if one not in KEPT and (unicodedata.category(one) in ("Cc", "Cs") or unicodedata.bidirectional(one) in marks)
    ]


@given(st.text(st.characters()))
def test_nothing_is_left_to_obey(text: str) -> None:
    assert obeyed(printable(text)) == []
    printable(text).encode()


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_what_was_there_is_shown() -> None:
    assert printable(CLIPBOARD + "\n\t\u202e") == "\\x1b]52;c;ZXZpbA==\\x07\n\t\\u202e"


EVENTS = (
    Notice(EVIL),
    StageProgress("build", EVIL),
    TrialFinished(EVIL, EVIL, EVIL, 1.0, 1.0, 1, 1.0),
    CellFinished("r001-box", "failed", f"{EVIL}\n{EVIL}"),
)


def shown() -> None:
    for event in EVENTS:
        Lines(live=False).hear(event)


WRITERS: dict[str, Callable[[], object]] = {
    "say": lambda: console.say(EVIL),
    "warn": lambda: console.warn(EVIL),
    "a table": lambda: console.say(console.table([(EVIL, EVIL)], (EVIL, EVIL))),
    "JSON": lambda: console.print_json({EVIL: [EVIL]}),
    "progress": shown,
}


@pytest.mark.parametrize("kind", WRITERS)
def test_no_command_prints_it(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    WRITERS[kind]()
    printed = capsys.readouterr()
    assert obeyed(printed.out + printed.err) == []
    assert "52;c;ZXZpbA==" in printed.out + printed.err


def test_json_is_the_same_json(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"name": EVIL})
    assert json.loads(capsys.readouterr().out) == {"name": EVIL}


@pytest.mark.parametrize("error", [ParseError(EVIL, detail=EVIL, remedy=EVIL), RuntimeError(EVIL)])
def test_no_error_prints_it(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def app() -> None:
        raise error

    monkeypatch.setattr("vtax.cli.app.app", app)
    monkeypatch.setattr(sys, "argv", ["vtax", "audit"])
    with pytest.raises(SystemExit):
        main.main()
    printed = capsys.readouterr().err
    assert "52;c;ZXZpbA==" in printed
    assert obeyed(printed) == []


def test_the_display_of_a_campaign_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    texts = dict.fromkeys(("directory", "cell", "trial", "baseline", "note"), EVIL.replace("\udce9", ""))
    numbers = dict.fromkeys(("rounds", "rounds_done", "trials", "trials_done", "elapsed_s", "remaining_s"), 1)
    now = Snapshot.model_validate({**texts, **numbers, "running": True, "failed": (texts["cell"],), "intervals": ()})
    Console(force_terminal=False, width=200).print(view(now))
    assert obeyed(capsys.readouterr().out) == []


def test_no_markdown_contains_it() -> None:
    text = markdown(hostile(EVIL.replace("\udce9", "")))
    assert "52;c;ZXZpbA==" in text
    assert obeyed(text) == []
