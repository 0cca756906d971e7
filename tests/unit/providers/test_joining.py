"""Ranks that join a node of the host: what it takes, and what says that it cannot be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from vtax.errors import ProvisionError
from vtax.providers.host import joining


def srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    program = tmp_path / "srun"
    program.write_text(f"#!/bin/sh\nprintf '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


def test_srun_with_pmix_and_root_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    srun(
        tmp_path,
        monkeypatch,
        "MPI plugin types are...\\n\\tnone\\n\\tpmix\\nspecific pmix plugin versions available: pmix_v5\\n",
    )
    assert list(joining.problems(root=True)) == []
    (problem,) = joining.problems(root=False)
    assert problem.message.startswith('launcher = "srun" needs root')


def test_srun_without_pmix_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    srun(tmp_path, monkeypatch, "MPI plugin types are...\\n\\tnone\\n\\tpmi2\\n")
    (problem,) = joining.problems(root=True)
    assert "no plug-in for PMIx" in problem.message


def test_a_machine_without_srun_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.transport.process.installed", lambda _: False)
    (problem,) = joining.problems(root=True)
    assert problem.message == "srun is not installed"


def test_a_rank_joins_the_first_process_of_its_node() -> None:
    """The child of what entered it from the machine, which itself is outside."""
    with subprocess.Popen(("sh", "-c", "sleep 60 & echo $!; wait"), stdout=subprocess.PIPE, text=True) as entered:
        assert entered.stdout is not None
        first = entered.stdout.readline().strip()
        try:
            words = joining.words(entered.pid, [Path("/sys/fs/cgroup/a"), Path("/sys/fs/cgroup/b")], "master")
        finally:
            os.kill(int(first), 9)
    assert words[:2] == ("sh", "-c") and words[3:] == ("vtax-join", first, "/sys/fs/cgroup/a /sys/fs/cgroup/b")
    assert "--bounding-set=-all" in words[2] and "HOME=/root" in words[2]


def test_a_node_whose_first_process_has_ended_has_no_ranks() -> None:
    with pytest.raises(ProvisionError, match="worker1: its first process has ended"):
        joining.words(None, (), "worker1")
