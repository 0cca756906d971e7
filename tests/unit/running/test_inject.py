"""The self-test on a real provider, without one: what it plans, and how it judges what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from builders.measurements import measurement
from builders.small import PRINTED, new_campaign, planned, store
from builders.synthetic import plan
from fakes.cluster import FakeProvider
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis
from vtax.errors import EnvironmentMissing, UsageError
from vtax.model.metric import Kind
from vtax.model.study import EnvironmentSpec
from vtax.paths import Paths
from vtax.selftest import inject
from vtax.selftest.inject import engine_of, judged, study_of, throttled

STUDY = study_of("docker", 1, 1, 1, 0.05)[1]
WIGGLE = (0.3, -0.2, 0.1, -0.3, 0.2, -0.1)  # percent


def seen(slowed: Sequence[float], control: Sequence[float], whole: Sequence[float] = (100.0,) * 6) -> Analysis:
    made = plan(("whole", "slowed", "control"), rounds=6)
    specs = tuple(
        EnvironmentSpec(name=name, provider="docker", control_of="whole" if name == "control" else "")
        for name in ("whole", "slowed", "control")
    )
    looks = {"environments": specs, "looks": (6, 10), "control": True}
    made = made.model_copy(update={"study": made.study.model_copy(update=looks), "environments": specs})
    values = {"whole": whole, "slowed": slowed, "control": control}
    numbers = [
        measurement(value, environment=name, round=i, metric="events_rate", unit="1/s", kind=Kind.RATE_FIXED_TIME)
        for name, several in values.items()
        for i, value in enumerate(several, 1)
    ]
    return analyse(numbers, plan=made, findings=(), trials=())


def wiggled(level: float) -> list[float]:
    return [level * (1 + w / 100) for w in WIGGLE]


def test_a_handicap_that_is_there_and_a_control_that_is_quiet() -> None:
    found = judged(seen(wiggled(95.0), wiggled(100.0)), STUDY, (), "dir")
    assert (found.detected, found.quiet, found.passed) == (True, True, True)
    assert (found.slowed.n, found.slowed.verdict, found.expected_ratio) == (6, "slower", 0.95)
    assert found.slowed.ratio == pytest.approx(0.95, abs=1e-3)


def test_a_handicap_that_is_not_found_fails() -> None:
    found = judged(seen(wiggled(99.9), wiggled(100.0)), STUDY, (), "dir")
    assert (found.detected, found.quiet, found.passed) == (False, True, False)


def test_identical_clusters_that_differ_fail_even_when_the_handicap_is_found() -> None:
    found = judged(seen(wiggled(95.0), wiggled(97.0)), STUDY, (), "dir")
    assert not found.quiet
    assert not found.passed


def test_without_numbers_it_does_not_judge() -> None:
    with pytest.raises(EnvironmentMissing, match="no numbers to judge"):
        judged(seen((), ()), STUDY, (), "dir")


def test_the_study_is_one_like_any_other() -> None:
    text, study = study_of("podman", seconds=2, iterations=4, seed=7)
    assert "cpu_share = 0.9\n" in text
    assert (study.seed, study.looks, study.control_name) == (7, (6, 10), "control")
    assert [entry.iterations for entry in study.benchmarks] == [4]
    assert [(spec.name, spec.options["cpu_share"]) for spec in study.environments] == [
        ("whole", None),
        ("slowed", 0.9),
        ("control", None),
    ]
    assert study_of("docker", 1, 1, 1, 0.9)[1].environments[1].options["cpu_share"] == 0.1


def test_the_first_engine_that_works_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"docker": "no daemon", "podman": ""}
    monkeypatch.setattr(inject, "provider", lambda name, runtime: FakeProvider(name, runtime, broken=broken[name]))
    paths = Paths(tmp_path, tmp_path)
    assert engine_of("", paths) == "podman"
    with pytest.raises(EnvironmentMissing) as caught:
        engine_of("docker", paths)
    assert caught.value.detail == "docker: no daemon"
    with pytest.raises(UsageError, match="'qemu' cannot limit CPU time"):
        engine_of("qemu", paths)


def test_how_often_the_quota_was_felt(tmp_path: Path) -> None:
    providers = {name: FakeProvider(name, tmp_path) for name in ("whole", "slowed")}
    campaign = new_campaign(tmp_path / "c", providers, iterations=1)
    store(campaign, dict.fromkeys(planned(campaign.plan()), PRINTED))
    trials = campaign.trials(texts=False)
    assert throttled([trial.model_copy(update={"counters": {}}) for trial in trials]) is None
    counted = {"slowed": {"cpu_periods": 10.0, "cpu_throttled_periods": 9.0}, "whole": {"cpu_periods": 10.0}}
    some = [trial.model_copy(update={"counters": {"worker1": counted[trial.environment]}}) for trial in trials]
    assert throttled(some) == pytest.approx(0.9)
