"""B01 to B05 and P01: persistence, failures, busy clients, coarse timers, commits, scale; from recorded outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from builders.audit_cases import DATA, as_imported, both, evidence, failed, logged, passed, unknown, value
from vtax.audit import Evidence, servers
from vtax.model.finding import Outcome, Severity
from vtax.model.nodes import Scope
from vtax.tools.pgbench.audit import scale
from vtax.tools.redis.audit import persistence


def text_of(tool: str, case: str) -> str:
    return (DATA / "readers" / tool / case / "output").read_text("utf-8")


REDIS = text_of("redis-benchmark", "8.0.2--trixie-set-get")
PGBENCH = text_of("pgbench", "17.12--trixie-time")
FAILING = text_of("pgbench", "17.12--trixie-failed")
OLD = text_of("pgbench", "13.16--bullseye-rate-limit")
ERRORS = text_of("wrk", "4.1.0--trixie-status")


def campaign(tool: str, texts: Mapping[str, str], cpu_s: float | None = None) -> Evidence:
    """Runs of an own command that a tool's reader reads; `cpu_s`: the client's, of 10 s of wall time."""
    measured = [("wall", 10.0), ("user", cpu_s), ("system", 0.5)] if cpu_s is not None else []
    values = tuple(value(tool, name, number or 0.0, "s") for name, number in measured)
    rate = {"pgbench": "tps"}.get(tool, "requests_rate")
    params = {"command": [tool], "metrics": [{"reader": tool, "primary": [rate]}]}
    return logged(tool, texts, params=params, scope=Scope.NODE, values=dict.fromkeys(texts, values))


def test_servers_that_persist_alike_pass() -> None:
    seen = passed(persistence, campaign("redis-benchmark", both(REDIS)))
    assert "redis-benchmark in host: snapshots off, append-only file no" in seen


def test_another_persistence_is_another_work() -> None:
    other = REDIS.replace('"appendonly": no', '"appendonly": yes').replace('"save": ', '"save": 3600 1')
    (found,) = failed(persistence, campaign("redis-benchmark", {"host": REDIS, "container": other}))
    assert found.severity is Severity.BLOCKER
    assert found.message == (
        "redis-benchmark: snapshots 3600 1, append-only file yes in container, "
        "snapshots off, append-only file no in host"
    )
    logs = as_imported(campaign("redis-benchmark", {"host": REDIS, "container": other}))
    assert failed(persistence, logs)[0].message == found.message


def test_what_a_table_does_not_say_about_persistence_is_unknown() -> None:
    table = (DATA / "logs" / "redis-benchmark" / "8.0.2--trixie-csv" / "output").read_text("utf-8")
    assert unknown(persistence, campaign("redis-benchmark", both(table)))


def test_campaigns_without_a_server_are_left_alone() -> None:
    for one in (persistence, servers.failures, servers.busy_client, servers.coarse_times, servers.commits, scale):
        assert one.look(evidence()).outcome is Outcome.NOT_APPLICABLE


def test_few_failures_pass_and_many_in_one_environment_block() -> None:
    assert passed(servers.failures, campaign("pgbench", both(PGBENCH)))
    (found,) = failed(servers.failures, campaign("pgbench", {"host": PGBENCH, "container": FAILING}))
    assert found.severity is Severity.BLOCKER
    assert "25,086 failed next to 9,768 that did not (72 %)" in found.message  # six runs of 4,181 and 1,628


def test_errors_that_wrk_counts_as_answers_are_found_where_both_have_them() -> None:
    found = failed(servers.failures, campaign("wrk", both(ERRORS)))
    assert {one.severity for one in found} == {Severity.WARNING}
    assert "413,850 failed next to 0 that did not (100 %)" in found[0].message  # six runs of 68,975


def test_failures_that_were_not_counted_are_unknown() -> None:
    old = OLD.replace("number of transactions skipped: 0 (0.000 %)\n", "")
    assert unknown(servers.failures, campaign("pgbench", both(old)))


def test_a_client_that_is_busy_all_the_time_was_the_limit() -> None:
    found = failed(servers.busy_client, campaign("redis-benchmark", both(REDIS), cpu_s=9.0))
    assert "used 95 % of the CPU time" in found[0].message  # 9.0 s and 0.5 s of 10 s, one thread
    assert {one.severity for one in found} == {Severity.INFO}
    assert passed(servers.busy_client, campaign("redis-benchmark", both(REDIS), cpu_s=4.0))
    assert passed(servers.busy_client, campaign("pgbench", both(PGBENCH), cpu_s=9.0))  # of two threads
    assert unknown(servers.busy_client, campaign("redis-benchmark", both(REDIS)))


def test_latencies_of_few_steps_are_named() -> None:
    found = failed(servers.coarse_times, campaign("redis-benchmark", both(REDIS)))
    assert "right to 5.6 %" in found[0].message  # half of 8 µs, of 71 µs
    assert "latency_p50" in found[0].metrics
    assert "requests_rate" not in found[0].metrics
    slower = REDIS
    for before, after in (("0.071 milliseconds", "0.571 milliseconds"), ("0.079 milliseconds", "0.579 milliseconds")):
        slower = slower.replace(f"50.000% <= {before}", f"50.000% <= {after}")
    assert passed(servers.coarse_times, campaign("redis-benchmark", both(slower)))
    plain = (DATA / "logs" / "redis-benchmark" / "8.0.2--trixie-csv" / "output").read_text("utf-8")
    assert unknown(servers.coarse_times, campaign("redis-benchmark", both(plain)))


OLTP = {"reads": text_of("sysbench", "1.0.20--trixie-oltp-point-select")}
OLTP["writes"] = text_of("sysbench", "1.0.20--trixie-oltp-read-write")


def on_disk(tool: str, text: str, written: Mapping[str, float], kind: str = "ext4") -> Evidence:
    """Runs during which the machine's disks took so many bytes."""
    rate = {"pgbench": "tps"}.get(tool, "transactions_rate")
    params = {"command": [tool], "metrics": [{"reader": tool.removesuffix("-oltp"), "primary": [rate]}]}
    facts = {name: {"scratch_filesystem": kind} for name in ("host", "container")}
    made = logged(tool, both(text), params=params, scope=Scope.NODE, facts=facts)
    counted = (
        {"disk_written_bytes": written[one.environment]} if one.environment in written else {} for one in made.trials
    )
    pairs = zip(made.trials, counted, strict=True)
    return replace(made, trials=tuple(one.model_copy(update={"host_counters": said}) for one, said in pairs))


def test_commits_that_did_not_wait_for_a_disk() -> None:
    """6,460 transactions of 4 clients waited at least 1,615 times, for 512 bytes each: 826,880 bytes."""
    enough = on_disk("pgbench", PGBENCH, {"host": 826_880.0, "container": 8e6})
    assert "pgbench in host: the disks took 1 blocks for every wait of a commit (median)" in passed(
        servers.commits, enough
    )
    (one,) = failed(servers.commits, on_disk("pgbench", PGBENCH, {"host": 8e6, "container": 826_368.0}))
    assert (one.environment, one.severity) == ("container", Severity.BLOCKER)
    assert "the disks took 0.999 blocks for every wait" in one.message
    alike = failed(servers.commits, on_disk("pgbench", PGBENCH, {"host": 0.0, "container": 0.0}))
    assert {each.severity for each in alike} == {Severity.WARNING}
    assert unknown(servers.commits, on_disk("pgbench", PGBENCH, {}))


def test_commits_to_memory_and_transactions_that_only_read() -> None:
    found = failed(servers.commits, on_disk("pgbench", PGBENCH, {"host": 8e6, "container": 8e6}, kind="tmpfs"))
    assert found[0].message == "pgbench in host: /scratch is tmpfs"
    select = PGBENCH.replace("<builtin: TPC-B (sort of)>", "<builtin: select only>")
    assert passed(servers.commits, on_disk("pgbench", select, {"host": 0.0, "container": 0.0}))
    own = PGBENCH.replace("<builtin: TPC-B (sort of)>", "mine.sql")  # what it does is not known
    assert unknown(servers.commits, on_disk("pgbench", own, {"host": 0.0, "container": 0.0}))
    for kind, outcome in (("reads", Outcome.PASS), ("writes", Outcome.FAIL)):
        oltp = on_disk("sysbench-oltp", OLTP[kind], {"host": 0.0, "container": 0.0})
        assert servers.commits.look(oltp).outcome is outcome


def test_fewer_branches_than_clients_are_named_where_they_are_written_to() -> None:
    found = failed(scale, campaign("pgbench", both(PGBENCH)))  # a scale of 2, 4 clients
    assert "a scale of 2 for 4 clients" in found[0].message
    assert passed(scale, campaign("pgbench", both(PGBENCH.replace("factor: 2", "factor: 4"))))
    reading = PGBENCH.replace("<builtin: TPC-B (sort of)>", "<builtin: select only>")
    assert passed(scale, campaign("pgbench", both(reading)))
    (one,) = failed(
        scale, campaign("pgbench", {"host": PGBENCH.replace("factor: 2", "factor: 4"), "container": PGBENCH})
    )
    assert one.severity is Severity.WARNING
