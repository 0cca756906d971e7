"""Visits, with the shell of this machine as the node: what is asked, what a command leaves, and how it is ended."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import pytest

from vtax.errors import CommandError
from vtax.model.trial import OUTPUT_BYTES
from vtax.transport import process
from vtax.transport.visit import Errand, Limits, Visit

pytestmark = pytest.mark.integration
HERE = {"PATH": os.environ["PATH"], "KEPT": "yes"}
LIMITS = Limits(60.0)
LINKED = "it is a symbolic link, or behind one, and none is followed"
SPECIAL = "it is no regular file"


@pytest.fixture(scope="module", autouse=True)
def fetch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The program that copies files on nodes, where the shell finds it."""
    made = tmp_path_factory.mktemp("bin") / "vtax-fetch"
    source = resources("vtax.image") / "guest" / "vtax-fetch.c"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", str(source), "-o", str(made)], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(HERE, "PATH", f"{made.parent}:{os.environ['PATH']}")
        yield made


def visit(
    place: Path, *argv: str, asked: str = "echo asked", files: Sequence[str] = (), limits: Limits = LIMITS
) -> Visit:
    def wrap(words: Sequence[str]) -> tuple[str, ...]:
        return ("env", "-C", str(place), *words)

    return Visit(Errand(argv, asked, tuple(files)), limits, wrap, place / "out", place / "err", HERE)


def test_what_is_asked_surrounds_the_command_and_leaves_no_trace_in_it(tmp_path: Path) -> None:
    (tmp_path / "n").write_text("1")
    asked = "KEPT=no; export KEPT; read -r n <n; echo $n >>order; echo $((n + 1)) >n; echo n=$n"
    one = visit(tmp_path, "sh", "-c", 'echo "run $KEPT" >>order; cat; echo done', asked=asked)
    assert one.before.text == "n=1\n"
    assert (tmp_path / "order").read_text() == "1\n"  # the command waits
    result = one.run()
    after, _ = one.leave({})
    assert (result.exit_code, result.timed_out, result.stopped) == (0, False, "")
    assert (tmp_path / "order").read_text() == "1\nrun yes\n2\n"
    assert after.text == "n=2\n"
    assert (tmp_path / "out").read_bytes() == b"done\n"
    assert one.process.returncode == 0


def test_what_is_asked_is_read_within_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where this process waits for a CPU after it has asked, as on a busy machine."""
    talk, go = process.talk, Visit._go

    def slow_talk(*words: Any) -> Any:
        started = talk(*words)
        time.sleep(0.3)
        return started

    def slow_go(one: Visit) -> None:
        go(one)
        time.sleep(0.3)

    monkeypatch.setattr(process, "talk", slow_talk)
    monkeypatch.setattr(Visit, "_go", slow_go)
    one = visit(tmp_path, "true", asked="date +%s.%N")
    one.run()
    after, _ = one.leave({})
    for asked in (one.before, after):
        assert asked.started <= float(asked.text) <= asked.started + asked.elapsed_s


def test_output_is_kept_byte_by_byte_without_an_added_line_end(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000 + b"\nvtax-"
    (tmp_path / "content").write_bytes(content)
    one = visit(tmp_path, "sh", "-c", "cat content; cat content >&2")
    one.run()
    one.leave({})
    assert (tmp_path / "out").read_bytes() == content
    assert (tmp_path / "err").read_bytes() == content


def test_files_are_removed_before_and_fetched_after(tmp_path: Path) -> None:
    for name in ("old", "new file"):
        (tmp_path / name).write_text("of an earlier trial")
    one = visit(tmp_path, "sh", "-c", "printf 'a\\n\\n\\0b' >'new file'", files=("old", "new file"))
    one.run()
    _, found = one.leave({"old": tmp_path / "kept.old", "new file": tmp_path / "kept.new"})
    assert found == {"new file": ""}
    assert (tmp_path / "kept.new").read_bytes() == b"a\n\n\0b"
    assert not (tmp_path / "kept.old").exists()


def test_files_that_cannot_be_kept_have_a_reason_and_the_others_are_fetched(tmp_path: Path) -> None:
    """A pipe would be read for ever, and a file of gigabytes would fill the disk; the last one is what others need."""
    script = f"mkfifo pipe; mkdir folder; truncate -s {OUTPUT_BYTES + 1} huge; ln usage0 usage"
    names = ("pipe", "folder", "huge", "none", "usage")
    (tmp_path / "usage0").write_text("1\n")
    one = visit(tmp_path, "sh", "-c", script, files=names)
    one.run()
    _, found = one.leave({name: tmp_path / f"kept.{name}" for name in names})
    assert found == {"pipe": SPECIAL, "folder": SPECIAL, "huge": "it has more than 64 MiB", "usage": ""}
    assert [path.name for path in tmp_path.glob("kept.*")] == ["kept.usage"]


def test_no_link_is_followed_to_a_file(tmp_path: Path) -> None:
    """A command may leave a link with the name of an output: what it leads to is not what the command wrote, and root
    reads it."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("a secret\n")
    place = tmp_path / "place"
    place.mkdir()
    leads = {
        "absolute": f"ln -s {secret}/key absolute",
        "relative": "ln -s ../secret/key relative",
        "dangling": "ln -s nowhere dangling",
        "itself": "ln -s itself itself",
        "device": "ln -s /dev/zero device",
        "folder/key": f"ln -s {secret} folder",
        "inner/deep/key": f"mkdir inner && ln -s {secret} inner/deep",
        "good/deep/key": "mkdir -p good/deep && echo mine >good/deep/key",
    }
    one = visit(place, "sh", "-c", "\n".join(leads.values()), files=tuple(leads))
    assert one.run().exit_code == 0
    _, found = one.leave({name: tmp_path / f"kept.{name.replace('/', '.')}" for name in leads})
    assert found == {**dict.fromkeys(leads, LINKED), "good/deep/key": ""}
    assert (tmp_path / "kept.good.deep.key").read_text() == "mine\n"
    assert len(list(tmp_path.glob("kept.*"))) == 1


def test_a_file_that_is_exchanged_all_the_time_is_never_followed_elsewhere(tmp_path: Path) -> None:
    """A service that still runs swaps its output with a link and with a pipe while it is fetched."""
    (tmp_path / "secret").write_text("a secret\n")
    place = tmp_path / "place"
    place.mkdir()
    swap = (
        "while :; do ln -s ../secret l; mv -T l end; mkfifo p; mv -T p end; echo mine >f; mv -T f end; done 2>/dev/null"
    )
    service = subprocess.Popen(["sh", "-c", swap], cwd=place)
    try:
        seen = set()
        for number in range(40):
            one = visit(place, "sleep", "0.01", files=("end",))
            one.run()
            kept = tmp_path / f"kept.{number}"
            seen.add(one.leave({"end": kept})[1].get("end", "absent"))
            assert not kept.exists() or kept.read_text() == "mine\n"
        assert seen <= {"", "absent", LINKED, SPECIAL}
    finally:
        service.kill()
        service.wait()


@pytest.mark.parametrize(
    ("argv", "code"), [(("sh", "-c", "exit 3"), 3), (("no-such-program",), 127), (("asked",), 127)]
)
def test_the_exit_code_is_that_of_the_command(tmp_path: Path, argv: tuple[str, ...], code: int) -> None:
    """`asked` is a function of the shell, which no command starts."""
    one = visit(tmp_path, *argv)
    assert one.run().exit_code == code
    assert one.leave({})[0].text == "asked\n"


def test_a_command_that_prints_without_end_is_ended_at_the_limit(tmp_path: Path) -> None:
    for stream, redirected in (("out", ""), ("err", " >&2")):
        one = visit(tmp_path, "sh", "-c", f"yes 'a line of a text'{redirected}")
        result = one.run()
        assert (result.stopped, result.timed_out) == ("it printed more than 64 MiB", False)
        assert one.leave({})[1] == {}
        assert (tmp_path / stream).stat().st_size == process.KEPT_BYTES
        assert one.process.poll() is not None


def test_an_output_of_just_the_limit_is_whole(tmp_path: Path) -> None:
    one = visit(tmp_path, "head", "-c", f"{OUTPUT_BYTES}", "/dev/zero")
    assert one.run().stopped == ""
    one.leave({})
    assert (tmp_path / "out").stat().st_size == OUTPUT_BYTES


def test_the_time_limit_ends_the_command_and_what_it_started(tmp_path: Path) -> None:
    one = visit(tmp_path, "sh", "-c", "sleep 1000 & echo $! >pid; wait", limits=Limits(0.5))
    result = one.run()
    assert (result.timed_out, result.stopped) == (True, "")
    assert _gone(int((tmp_path / "pid").read_text()))


def test_a_reason_to_end_it_ends_the_command(tmp_path: Path) -> None:
    reasons = iter(["", "", *["its server has ended"] * 100])
    one = visit(tmp_path, "sleep", "1000")
    result = one.run(lambda: next(reasons))
    assert (result.stopped, result.timed_out) == ("its server has ended", False)
    assert one.process.poll() is not None


def test_a_node_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"the shell on the node did not answer within 0\.3 s"):
        visit(tmp_path, "true", asked="sleep 1000", limits=Limits(1.0, answer_s=0.3))
    with pytest.raises(CommandError, match="the shell on the node ended") as caught:
        visit(tmp_path, "true", files=(".",))
    assert "cannot remove" in caught.value.detail


def test_what_is_never_run_is_left_at_once(tmp_path: Path) -> None:
    one = visit(tmp_path, "touch", "ran")
    one.end()
    one.end()
    assert not (tmp_path / "ran").exists()
    assert one.process.poll() is not None


@pytest.mark.parametrize("limited", [True, False])
def test_only_what_runs_on_nodes_is_shortened(tmp_path: Path, *, limited: bool) -> None:
    """An archive that is written is whole, and the files of a process may be gone before it is stopped."""
    out, err = tmp_path / "out", tmp_path / "err"
    running = process.start(("head", "-c", f"{OUTPUT_BYTES + 1}", "/dev/zero"), stdout=out, stderr=err, limited=limited)
    assert process.wait(running.process, 60)
    assert running.stop().stopped == (process.TOO_LONG if limited else "")
    assert out.stat().st_size == (process.KEPT_BYTES if limited else OUTPUT_BYTES + 1)
    if not limited:
        other = process.start(("sleep", "1000"), stdout=out, stderr=err)
        out.unlink()
        assert other.stop().stopped == ""


def test_what_goes_on_printing_for_a_moment_is_shortened_too(tmp_path: Path) -> None:
    """As in a container, where it is not a child of vtax: it wrote on at its own place in the file."""
    path = tmp_path / "err"
    with path.open("w+b") as sink:
        flood = subprocess.Popen(["yes"], stdout=sink)
        while not process.too_long(sink):
            time.sleep(0.01)
        end = threading.Timer(0.3, flood.kill)
        end.start()
        process.shorten(sink)
        assert flood.wait() < 0
        end.join()
    assert path.stat().st_size == process.KEPT_BYTES


def _gone(pid: int) -> bool:
    for _ in range(500):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
