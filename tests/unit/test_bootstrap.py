"""scripts/bootstrap beside others that install: a second one in a checkout, an apt that holds the locks."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

BOOTSTRAP = Path(__file__).resolve().parents[2] / "scripts" / "bootstrap"
HELD = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)"


def apt_get(directory: Path, program: str) -> subprocess.CompletedProcess[str]:
    """What the script's apt_get does where `apt-get` is this program of the shell; nothing is waited for."""
    text = BOOTSTRAP.read_text(encoding="utf-8")
    functions = re.findall(r"^(?:say\(\).*|(?:as_root|apt_get)\(\) \{\n(?:.*\n)+?\})$", text, re.MULTILINE)
    assert len(functions) == 3
    for name, body in (("apt-get", program), ("sleep", "exit 0"), ("sudo", 'exec "$@"')):
        (directory / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (directory / name).chmod(0o755)
    script = "set -eu\n" + "\n".join(functions) + "\napt_get install -y one two\necho done"
    path = f"{directory}:{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script], env={"PATH": path}, cwd=directory, capture_output=True, text=True, check=False
    )


def test_it_waits_for_an_apt_that_holds_the_lock(tmp_path: Path) -> None:
    held_twice = f'echo "$*" >>asked; [ "$(wc -l <asked)" -gt 2 ] || {{ echo "{HELD}" >&2; exit 100; }}'
    done = apt_get(tmp_path, held_twice)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "bootstrap: waiting for another apt-get or dpkg to end\ndone\n"
    assert (tmp_path / "asked").read_text() == "-qq install -y one two\n" * 3


@pytest.mark.parametrize(("said", "tries"), [(HELD, 301), ("E: Unable to locate package one", 1)])
def test_it_ends_with_what_apt_said(tmp_path: Path, said: str, tries: int) -> None:
    """After ten minutes where the lock is held, at once where something else is wrong."""
    done = apt_get(tmp_path, f'echo x >>asked; echo "{said}" >&2; exit 100')
    assert (done.returncode, done.stderr) == (3, f"bootstrap: apt-get install failed: {said}\n")
    assert len((tmp_path / "asked").read_text().split()) == tries


def test_two_in_one_checkout_take_turns(tmp_path: Path) -> None:
    """The second begins when the first has ended: neither sees the other's half-made environment."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    head, _, _ = BOOTSTRAP.read_text(encoding="utf-8").partition("\nsay() {")
    assert "flock" in head
    (scripts / "bootstrap").write_text(head + "\necho begin >>log; sleep 0.2; echo end >>log\n", encoding="utf-8")
    (scripts / "bootstrap").chmod(0o755)
    both = [subprocess.Popen([scripts / "bootstrap", "test"]) for _ in range(2)]
    assert [one.wait(30) for one in both] == [0, 0]
    assert (tmp_path / "log").read_text().split() == ["begin", "end"] * 2
