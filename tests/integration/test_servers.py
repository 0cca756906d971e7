"""Redis and PostgreSQL by name, on the host and in containers; servers on bad days, which fail with their own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.pipeline import measurements
from vtax.store import Campaign

from .conftest import Vtax, finish, study

pytestmark = pytest.mark.integration
ENVIRONMENTS = ("host", "docker")
SERVERS = """
[[benchmarks]]
workload = "redis"
values = { requests = 2000, connections = 5 }

[[benchmarks]]
workload = "pgbench"
values = { scale = 1, clients = 1 }
run = { seconds = 1 }
"""
BAD_DAYS = """
[[benchmarks]]
workload = "redis"
label = "password"
values = { requests = 2000, connections = 5 }
services = [{ command = ["redis-server", "--port", "{port}", "--requirepass", "x"], ready = { port = "{port}" } }]

[[benchmarks]]
workload = "redis"
label = "taken"
port = 21099
values = { requests = 2000, connections = 5 }
services = [
  { command = ["redis-server", "--port", "21099"], ready = { port = 21099 } },
  { command = ["redis-server", "--port", "{port}"], ready = { port = "{port}" } },
]

[[benchmarks]]
workload = "pgbench"
label = "survived"
values = { scale = 1, clients = 1 }
setup = [["sh", "-c", "mkdir data && touch data/PG_VERSION"], ["initdb", "-D", "{dir}/data"]]

[[benchmarks]]
workload = "pgbench"
label = "hugepages"
values = { scale = 1, clients = 1 }

[[benchmarks.services]]  # more than any machine has
command = [
  "postgres", "-D", "{dir}/data", "-p", "{port}", "-k", "{dir}", "-c", "huge_pages=on", "-c", "shared_buffers=4TB",
]
ready = { command = ["pg_isready", "-q"] }
"""
SAID = {  # entry -> what its failure has to say
    "password": "NOAUTH",
    "taken": "21099",
    "survived": "exists but is not empty",
    "hugepages": "shared memory",
}


def test_servers_by_name_and_on_bad_days(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    text = study(ENVIRONMENTS, SERVERS + BAD_DAYS).replace("workers = 2", "workers = 1")
    (tmp_path / "servers.toml").write_text(text)
    code, _, err = finish(vtax("run", "servers.toml", "-o", "campaign"))
    assert code == 4, err  # some trials failed, and the others were measured
    trials = {(one.environment, one.label): one for one in Campaign.open(tmp_path / "campaign").trials(texts=False)}
    values, _ = measurements(tmp_path / "campaign")
    found = {(one.environment, one.label, one.metric): one.value for one in values}
    for environment in ENVIRONMENTS:
        for label, metric in (("redis", "requests_rate"), ("redis", "latency_p99"), ("pgbench", "tps")):
            assert found[environment, label, metric] > 0
        assert found[environment, "pgbench", "failed_fraction"] == 0
        for label, words in SAID.items():
            failed = trials[environment, label]
            assert failed.status is Status.FAILED
            assert words in failed.failure, failed.failure
