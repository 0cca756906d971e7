"""A cluster's pauses: what is measured, and the clocks of guests, which stand still meanwhile."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from builders.small import IMAGE, MACHINE, study
from fakes.cluster import ELAPSED_S, FakeProvider, Reply, Script
from vtax.errors import PauseError
from vtax.planning.shape import cluster_shape
from vtax.providers.base import Cluster, Site
from vtax.running.pausing import Pauses
from vtax.running.sites import label_of


def cluster(top: Path, script: Script | None = None, *, own_kernel: bool = False) -> tuple[FakeProvider, Cluster]:
    provider = FakeProvider("box", top, script=script)
    shape, _ = cluster_shape(study(), MACHINE)
    site = Site("c1", top / "c1" / "box", IMAGE, top / "c1" / "keys")
    made = provider.create(study().environments[1], shape, "/shared", site)
    able = made.capabilities.model_copy(update={"own_kernel": own_kernel})
    return provider, replace(made, capabilities=able)


def test_a_pause_is_measured(tmp_path: Path) -> None:
    provider, made = cluster(tmp_path)
    pauses = Pauses(made)
    assert pauses.resume() is None, "it was not paused"
    pauses.pause()
    assert (pauses.how, provider.paused) == ("a fake pause", {"c1"})
    time.sleep(0.02)
    found = pauses.resume()
    assert found is not None
    assert 0.02 <= found.lasted_s < 5
    assert 0 <= found.pause_s < 1
    assert 0 <= found.resume_s < 1
    assert (found.clock_behind_s, provider.paused) == ({}, set())
    assert pauses.resume() is None


def slow_by(seconds: float, asked: list[tuple[str, ...]]) -> Script:
    """Nodes whose clocks are behind by so much when they read them, in the middle of the command."""

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if argv[:2] != ("sh", "-c") or "date" not in argv[2]:
            return None
        asked.append((node, *argv))
        return 0, f"{time.time() + ELAPSED_S / 2 - seconds:.9f}\n", ""

    return script


def test_the_clock_of_a_guest_is_set_to_that_of_the_machine(tmp_path: Path) -> None:
    asked: list[tuple[str, ...]] = []
    _, made = cluster(tmp_path, slow_by(300.0, asked), own_kernel=True)
    pauses = Pauses(made)
    pauses.pause()
    before = time.time()
    found = pauses.resume()
    assert found is not None
    assert found.clock_behind_s == {name: pytest.approx(300.0, abs=0.2) for name in ("master", "worker1", "worker2")}
    for _, *argv in asked:
        assert argv[:2] == ["sh", "-c"]
        assert argv[2] == 'date +%s.%N && date -s "@$1" >/dev/null'
        assert before - 0.001 <= float(argv[4]) <= time.time()


@pytest.mark.parametrize("reply", [(255, "", "Connection closed\n"), (0, "", ""), (124, "", "")])
def test_a_guest_that_does_not_answer_did_not_resume(tmp_path: Path, reply: Reply) -> None:
    _, made = cluster(tmp_path, lambda node, argv, stdin: reply if node == "worker2" else None, own_kernel=True)
    pauses = Pauses(replace(made, nodes=made.nodes[-1:]))
    pauses.pause()
    with pytest.raises(PauseError, match="worker2 does not answer after a pause"):
        pauses.resume()


def test_a_cluster_whose_provider_has_no_pauses(tmp_path: Path) -> None:
    _, made = cluster(tmp_path)
    with pytest.raises(PauseError, match="cannot pause"):
        Pauses(replace(made, pausing=None)).pause()


def test_labels_are_of_campaign_and_environment() -> None:
    """Derived, so that a resumed campaign and `vtax clean` find what an earlier process made."""
    labels = {label_of(campaign, name) for campaign in ("0a1b2c3d", "0a1b2c3e") for name in ("host", "docker")}
    assert len(labels) == 4
    assert label_of("0a1b2c3d", "docker") == "a19dbfde"
