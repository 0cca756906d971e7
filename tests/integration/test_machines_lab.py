"""The lab of machines itself: what a test process that was killed leaves is removed by the next one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration.machines_lab import PREFIX, remove_abandoned, run
from vtax.model.cluster import Image

pytestmark = pytest.mark.integration

SCRIPT = """
import sys, time
from pathlib import Path
from integration.machines_lab import lab
with lab(("a",), Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])) as made:
    print(made.machines["a"].sshd, flush=True)
    time.sleep(600)
"""


def test_a_lab_whose_owner_was_killed_is_removed(image: Image, tmp_path: Path) -> None:
    tree = Path(image.directory)
    command = (sys.executable, "-c", SCRIPT, str(tree), str(tree.parent.parent), str(tmp_path))
    owner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent.parent)
    assert owner.stdout is not None
    server = Path(f"/proc/{owner.stdout.readline().strip()}")
    mine = f"{PREFIX}{owner.pid}x"
    assert server.exists()
    remove_abandoned()  # while its owner lives, nothing happens
    assert mine in run("ip", "netns", "list") and server.exists()
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert mine in run("ip", "netns", "list")
    remove_abandoned()
    assert mine not in run("ip", "netns", "list")
    deadline = time.monotonic() + 10
    while server.exists() and "zombie" not in (server / "status").read_text():  # nobody may have waited for it yet
        assert time.monotonic() < deadline
        time.sleep(0.05)
