"""The studies in `examples/` are right, and those about own workloads say what docs/own-workloads.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from vtax.planning.study import load

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_a_study(path: Path) -> None:
    assert load(path).benchmarks


def test_servers_and_clients_are_on_one_node_by_default() -> None:
    redis, network = load(EXAMPLES[0].with_name("redis.toml")).benchmarks
    assert [scope.value for scope in (*redis.scopes, *network.scopes)] == ["node", "pairs"]
    (pgbench,) = load(EXAMPLES[0].with_name("pgbench.toml")).benchmarks
    assert (pgbench.label, pgbench.params["user"], pgbench.params["packages"]) == (
        "pgbench",
        "postgres",
        ["postgresql-17"],
    )
