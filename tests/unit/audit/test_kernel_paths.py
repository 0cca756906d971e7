"""K01 to K03, on what kernel-paths and hackbench printed."""

from __future__ import annotations

from typing import Any

from builders.audit_cases import both, failed, logged, only, passed, recorded, unknown, value
from vtax.audit import Evidence
from vtax.audit.scheduling import scheduling
from vtax.model.finding import Severity
from vtax.model.nodes import Scope
from vtax.tools.kernel_paths import audit

PARAMS = {"command": ["./kernel-paths"], "metrics": [{"reader": "kernel-paths", "primary": ["wakeup_late_p50"]}]}
TEXT = recorded("readers/kernel-paths", "1--trixie-wakeups", "output")


def paths(host: str = TEXT, container: str = TEXT, **more: Any) -> Evidence:
    texts = both(host) | {"container": container}
    return logged("kernel-paths", texts, params=PARAMS, scope=Scope.NODE, **more)


def test_k01_scheduling() -> None:
    assert passed(scheduling, paths())[0] == "kernel-paths in host: SCHED_OTHER, on one CPU"
    real_time = TEXT.replace("SCHED_OTHER", "SCHED_FIFO")
    one = only(failed(scheduling, paths(container=real_time)))
    assert one.severity is Severity.BLOCKER
    assert one.message == ("kernel-paths: SCHED_FIFO, on one CPU in container, SCHED_OTHER, on one CPU in host")
    free = failed(scheduling, paths(TEXT.replace('"pinned": true', '"pinned": false'), TEXT))
    assert "SCHED_OTHER, on any CPU in host" in free[0].message
    alike = failed(scheduling, paths(real_time, real_time))
    assert [one.severity for one in alike] == [Severity.INFO, Severity.INFO]
    assert unknown(scheduling, paths("", ""))


def test_k01_the_policy_that_chrt_prints_before_hackbench() -> None:
    text = recorded("readers/hackbench", "2.6--trixie-policy-text", "output")
    params = {"command": ["sh"], "metrics": [{"reader": "hackbench", "primary": ["time"]}]}

    def campaign(**texts: str) -> Evidence:
        return logged("hackbench", texts, params=params, scope=Scope.NODE)

    assert passed(scheduling, campaign(host=text, container=text)) == (
        "hackbench in host: SCHED_OTHER",
        "hackbench in container: SCHED_OTHER",
    )
    one = only(failed(scheduling, campaign(host=text, container=text.replace("SCHED_OTHER", "SCHED_BATCH"))))
    assert one.message == "hackbench: SCHED_BATCH in container, SCHED_OTHER in host"
    assert one.severity is Severity.BLOCKER
    silent = recorded("readers/hackbench", "2.6--trixie-text", "output")
    assert unknown(scheduling, campaign(host=silent, container=silent))


def test_k02_timer_slack() -> None:
    assert passed(audit.timer_slack, paths())[0] == "kernel-paths in host: 50 µs"
    one = only(failed(audit.timer_slack, paths(container=TEXT.replace('slack_ns": 50000', 'slack_ns": 1'))))
    assert one.message == "kernel-paths: 0.001 µs in container, 50 µs in host"
    assert one.severity is Severity.WARNING


def test_k03_a_clock_that_is_too_coarse() -> None:
    late = {name: (value("kernel-paths", "wakeup_late_p50", 81.783e-6, "s"),) for name in ("host", "container")}
    assert len(passed(audit.coarse_clock, paths(values=late))) == 2
    steps = TEXT.replace('"clock_step_ns": 1', '"clock_step_ns": 100001')
    one = only(failed(audit.coarse_clock, paths(container=steps, values=late)))
    assert (one.environment, one.severity) == ("container", Severity.BLOCKER)
    assert "and half of the wake-ups are at most 81783 ns late" in one.message
