"""What killed tests leave: namespaces whose names say that their process has ended."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from .namespaces import PLACE, ip, new_name, remove_abandoned, started

pytestmark = pytest.mark.integration
MAKE = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from integration.namespaces import new_name
name = new_name("a")
subprocess.run(("ip", "netns", "add", name), check=True)
process = subprocess.Popen(("ip", "netns", "exec", name, "sleep", "600"), stdout=subprocess.DEVNULL)
print(name, process.pid, flush=True)
sys.stdin.read()
"""


def test_what_a_killed_test_left_is_removed_by_the_next_one() -> None:
    program = (sys.executable, "-c", MAKE, str(Path(__file__).parents[1]))
    other = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    name, pid = other.stdout.readline().split()
    while not ip("netns", "pids", name):
        time.sleep(0.01)
    mine = new_name("b")
    ip("netns", "add", mine)
    try:
        remove_abandoned()
        assert (PLACE / name).exists() and started(int(pid)), "its test still runs"
        other.kill()
        deadline = time.monotonic() + 10
        while (PLACE / name).exists() and time.monotonic() < deadline:
            new_name("c")
        assert not (PLACE / name).exists()
        assert not started(int(pid))
        assert (PLACE / mine).exists(), "this test still runs"
    finally:
        other.kill()
        other.communicate()
        ip("netns", "del", mine)
