"""A cluster that is up is asked whether it is as planned; whatever differs is told at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from fakes.cluster import FakeProvider, HealthyNodes, Reply, Script, facts_text, node_shape, ran
from vtax.errors import NotMatched, ProvisionError
from vtax.launchers.mpirun import Mpirun
from vtax.model.cluster import Image, NodeFacts
from vtax.model.nodes import ClusterShape, NodeShape, Scope
from vtax.model.study import EnvironmentSpec
from vtax.providers import overlay
from vtax.providers.base import Cluster, Site
from vtax.running import peers
from vtax.running.provision import destroy, provision
from vtax.running.verify import (
    cpus_differ,
    image_differs,
    in_turn,
    memory_differs,
    parallel_targets,
    quota_differs,
    verify,
)

GIB = 2**30
SHAPE = ClusterShape(nodes=(node_shape("master", (4,)), node_shape("worker1", (0, 1)), node_shape("worker2", (2, 3))))
WORKER = SHAPE.node("worker1")
BOTH = (Scope.WORKERS, Scope.CLUSTER)


def site(tmp_path: Path) -> Site:
    image = Image(recipe="k", digest="d", directory="/", archive="/a")
    return Site("c1", tmp_path / "c1c1c1c1" / "site", image, tmp_path / "keys")


def cluster(
    tmp_path: Path,
    script: Script | None = None,
    *,
    separate_nodes: bool = True,
    shape: ClusterShape = SHAPE,
    cpu_limit: str = "cpuset",
) -> Cluster:
    provider = FakeProvider("fake", tmp_path, separate_nodes, script=script)
    spec = EnvironmentSpec(name="box", provider="fake", options={"cpu_limit": cpu_limit})
    return provider.create(spec, shape, "/shared", site(tmp_path))


def wrong(made: Cluster) -> list[str]:
    with pytest.raises(NotMatched, match="environment 'box' is up, but not as planned") as caught:
        verify(made, parallel_targets(made, BOTH))
    assert caught.value.exit_code == 3
    return caught.value.detail.splitlines()


# --- an image of the study's own -------------------------------------------------------------------------------------

OWN = overlay.PLANNED.model_copy(update={"digest": "5e" * 32, "source": "oci:app"})
INSIDE = ("/dev", "/etc/hosts", "/proc", "/scratch", "/shared", "/sys")
SEEN = {"workload_digest": OWN.digest, "workload_filesystem": "overlay", "workload_mounts": [*INSIDE, "/proc/sys"]}


@pytest.mark.parametrize(
    ("seen", "mistakes"),
    [
        (SEEN, []),
        ({}, ["/workload does not have the image oci:app"]),
        (
            {**SEEN, "workload_digest": "6f" * 32},
            [f"/workload is the image with sha256 {'6f' * 32}, but the plan has {'5e' * 32}"],
        ),
        ({**SEEN, "workload_filesystem": "ext4"}, ["/workload/root is ext4, not an overlay"]),
        (
            {**SEEN, "workload_mounts": ["/dev", "/proc", "/scratch", "/shared"]},
            ["/etc/hosts, /sys in the image is not that of the node"],
        ),
    ],
)
def test_an_image_of_the_study(seen: dict[str, object], mistakes: list[str]) -> None:
    assert image_differs(NodeFacts(node="worker1", values=seen), OWN, INSIDE) == mistakes


def test_an_image_that_a_node_lacks_is_told(tmp_path: Path) -> None:
    made = cluster(tmp_path)
    with pytest.raises(NotMatched) as caught:
        verify(made, (), OWN)
    assert caught.value.detail.splitlines() == [
        f"{name}: /workload does not have the image oci:app" for name in ("master", "worker1", "worker2")
    ]


# --- as planned ----------------------------------------------------------------------------------------------------


def test_every_check_that_passes_is_a_sentence(tmp_path: Path) -> None:
    made = cluster(tmp_path)
    facts, checks = verify(made, parallel_targets(made, BOTH))
    assert [one.node for one in facts] == ["master", "worker1", "worker2"]
    assert checks == (
        "limits of master: CPUs 4, memory 2 GiB, CPU quota none",
        "limits of worker1: CPUs 0,1, memory 2 GiB, CPU quota none",
        "limits of worker2: CPUs 2,3, memory 2 GiB, CPU quota none",
        "/scratch and /shared are empty",
        "names and SSH between all 6 pairs of nodes",
        "/shared is the same on all 3 nodes",
        "mpi world workers: 4 ranks, each of which sees all",
        "mpi placement workers: worker1=2 worker2=2",
        "mpi binding workers: worker1=0 worker1=1 worker2=2 worker2=3",
        "mpi memory workers: ranks of a node can read each other's memory",
        "mpi world cluster: 5 ranks, each of which sees all",
        "mpi placement cluster: master=1 worker1=2 worker2=2",
        "mpi binding cluster: master=4 worker1=0 worker1=1 worker2=2 worker2=3",
        "mpi memory cluster: ranks of a node can read each other's memory",
    )


def test_nodes_of_one_machine(tmp_path: Path) -> None:
    made = cluster(tmp_path, separate_nodes=False)
    _, checks = verify(made, parallel_targets(made, (Scope.WORKERS,)))
    assert checks[3:] == (
        "/scratch and /shared are empty",
        "/shared is the same on all 3 nodes",
        "mpi world workers: 4 ranks, each of which sees all",
        "mpi placement workers: box=4 on CPUs 0 1 2 3",
        "mpi binding workers: box=0 box=1 box=2 box=3",
        "mpi memory workers: ranks of a node can read each other's memory",
    )


def test_nodes_of_one_machine_that_must_share_a_cpu_may(tmp_path: Path) -> None:
    shape = ClusterShape(nodes=(node_shape("master", (0,)), *SHAPE.workers))
    made = cluster(tmp_path, separate_nodes=False, shape=shape)
    _, checks = verify(made, parallel_targets(made, BOTH))
    assert checks[-3] == "mpi placement cluster: box=5 on CPUs 0 0 1 2 3"
    assert checks[-2].startswith("mpi binding cluster: box=0 ")


def test_only_the_scopes_that_are_used_are_asked(tmp_path: Path) -> None:
    made = cluster(tmp_path)
    assert parallel_targets(made, ()) == ()
    (target,) = parallel_targets(made, (Scope.NODE, Scope.CLUSTER))
    assert (target.label, target.directory) == ("cluster", "/shared/vtax-placement-cluster")


def test_the_questions_leave_nothing_behind(tmp_path: Path) -> None:
    provider = FakeProvider("fake", tmp_path)
    made = provider.create(EnvironmentSpec(name="box", provider="fake"), SHAPE, "/shared", site(tmp_path))
    verify(made, parallel_targets(made, BOTH))
    assert [call.argv for call in ran(provider.calls, "rm")] == [("rm", "-f", "/shared/.vtax-token")]
    scripts = [call.stdin for call in provider.calls if "vtax-world" in call.stdin]
    assert sorted(line for script in scripts for line in script.splitlines() if line.startswith("rm ")) == [
        "rm -rf /shared/vtax-placement-cluster",
        "rm -rf /shared/vtax-placement-workers",
    ]


def test_ranks_are_asked_with_the_host_file_of_the_trials(tmp_path: Path) -> None:
    provider = FakeProvider("fake", tmp_path)
    made = provider.create(EnvironmentSpec(name="box", provider="fake"), SHAPE, "/shared", site(tmp_path))
    verify(made, parallel_targets(made, (Scope.WORKERS,)))
    (call,) = (call for call in provider.calls if "vtax-world" in call.stdin)
    assert (call.node, call.directory) == ("worker1", "/shared/vtax-placement-workers")
    assert "cat >hostfile <<'vtax-end-of-file'\nworker1 slots=2\nworker2 slots=2\nvtax-end-of-file\n" in call.stdin
    assert "mpirun --allow-run-as-root --np 4 --hostfile hostfile --map-by ppr:2:node " in call.stdin


# --- limits --------------------------------------------------------------------------------------------------------


def answering(**by_node: str) -> Script:
    """These nodes give these facts; everything else is as planned."""

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if "section packages" not in stdin or node not in by_node:
            return None
        return 0, HealthyNodes(SHAPE, Mpirun(interface="eth0")).logins(node) + by_node[node], ""

    return script


def test_everything_that_differs_is_listed(tmp_path: Path) -> None:
    script = answering(
        master=facts_text(cpus="0-3", memory_bytes=None),
        worker1=facts_text(cpus=None, memory_bytes=GIB),
        worker2=facts_text(cpus="2-3", quota="150000 100000"),
    )
    assert wrong(cluster(tmp_path, script)) == [
        "master: may use CPUs 0-3, but the plan has 4",
        "master: has no memory limit, but the plan has 2 GiB",
        "worker1: the CPUs that it may use are unknown",
        "worker1: has a memory limit of 1 GiB, but the plan has 2 GiB",
        "worker2: has a CPU quota of 1.5, which binds before its 2 CPUs do",
    ]


def test_a_node_that_says_nothing_does_not_pass(tmp_path: Path) -> None:
    assert wrong(cluster(tmp_path, answering(worker1=""))) == [
        "worker1: the CPUs that it may use are unknown",
        "worker1: has no memory limit, but the plan has 2 GiB",
    ]


def test_an_exact_quota_is_checked_exactly(tmp_path: Path) -> None:
    """With `cpu_limit = "quota"` there is no cpuset, so which CPUs it may use does not matter."""
    script = answering(
        master=facts_text(cpus="0-7", quota="100000 100000"),
        worker1=facts_text(cpus="0-7", quota="250000 100000"),
        worker2=facts_text(cpus="0-7"),
    )
    assert wrong(cluster(tmp_path, script, cpu_limit="quota")) == [
        "worker1: has a CPU quota of 2.5, but the plan has 2",
        "worker2: has a CPU quota of None, but the plan has 2",
    ]


def facts(**values: object) -> NodeFacts:
    return NodeFacts(node="worker1", values=values)


@pytest.mark.parametrize(
    ("allowed", "own_kernel", "right"),
    [
        ("0-1", False, True),
        ("0,1", False, True),
        ("1,0", False, True),
        ("0-2", False, False),
        ("0", False, False),
        ("2-3", False, False),
        ("0-1", True, True),
    ],
)
def test_cpus(allowed: str, own_kernel: bool, right: bool) -> None:
    assert (cpus_differ(WORKER, facts(cpus_allowed=allowed), own_kernel) == []) is right


def test_a_node_with_its_own_kernel_counts_its_cpus_from_zero() -> None:
    high = node_shape("worker2", (6, 7))
    assert cpus_differ(high, facts(cpus_allowed="0-1"), own_kernel=True) == []
    assert cpus_differ(high, facts(cpus_allowed="6-7"), own_kernel=True) == ["may use CPUs 6-7, but the plan has 0,1"]


@pytest.mark.parametrize(
    ("quota", "exact", "right"),
    [
        (None, False, True),
        (2.5, False, True),
        (2.0, False, True),
        (1.99, False, False),
        (2.0, True, True),
        (2.5, True, False),
        (None, True, False),
    ],
)
def test_quotas(quota: float | None, exact: bool, right: bool) -> None:
    seen = facts() if quota is None else facts(cpu_quota_cpus=quota)
    assert (quota_differs(WORKER, seen, exact) == []) is right


@pytest.mark.parametrize(
    ("limit", "right"), [(2 * GIB, True), (2 * GIB - 4095, True), (2 * GIB + 4096, False), (2 * GIB - 4096, False)]
)
def test_memory_to_the_page(limit: int, right: bool) -> None:
    assert (memory_differs(WORKER, facts(memory_limit_bytes=limit), own_kernel=False) == []) is right


# --- names, keys, the shared file system ---------------------------------------------------------------------------

CPUS = {"master": "4", "worker1": "0-1", "worker2": "2-3"}


def calling(node_that_calls: str, text: str, cpus: str | None = None) -> Script:
    """What one node says when it is to call the others; its facts are as planned."""

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if "vtax-login" not in stdin or node != node_that_calls:
            return None
        return 0, text + facts_text(cpus=cpus or CPUS[node]), ""

    return script


def test_a_node_that_cannot_log_in(tmp_path: Path) -> None:
    """What is quoted is what SSH said, not the facts that follow."""
    text = (
        "vtax-name master 10.0.0.2\nvtax-name worker2 10.0.0.4\n"
        "vtax-login master\nroot@worker2: Permission denied (publickey).\n"
    )
    assert wrong(cluster(tmp_path, calling("worker1", text))) == [
        "worker1 cannot log in to worker2: root@worker2: Permission denied (publickey)."
    ]


def test_a_node_that_says_nothing_of_the_others(tmp_path: Path) -> None:
    assert wrong(cluster(tmp_path, calling("master", ""))) == [
        "master cannot log in to worker1: no answer",
        "master finds worker1 at no address",
        "master cannot log in to worker2: no answer",
        "master finds worker2 at no address",
    ]


def test_a_name_that_leads_elsewhere(tmp_path: Path) -> None:
    """worker1 is the beginning of worker10, and neither must be taken for the other."""
    nodes = (node_shape("master", (4,)), node_shape("worker1", (0,)), node_shape("worker10", (1,)))
    text = "vtax-name worker10 10.0.0.4\nvtax-login worker10\nvtax-name worker1 10.0.0.33\nvtax-login worker1\n"
    made = cluster(tmp_path, calling("master", text), shape=ClusterShape(nodes=nodes))
    assert wrong(made) == ["master finds worker1 at 10.0.0.33"]


def test_a_login_to_a_longer_name_is_none_to_the_shorter_one() -> None:
    text = "vtax-name worker10 10.0.0.4\nvtax-login worker10\n"
    assert peers.wrong("master", {"worker1": "10.0.0.3"}, ["worker1"], text) == [
        "master cannot log in to worker1: no answer",
        "master finds worker1 at no address",
    ]


def test_a_node_that_is_not_new(tmp_path: Path) -> None:
    others = "vtax-name master 10.0.0.2\nvtax-name worker2 10.0.0.4\nvtax-login master\nvtax-login worker2\n"
    held = "vtax-holds /scratch/old\nvtax-holds /scratch/old/file\n"
    assert wrong(cluster(tmp_path, calling("worker1", held + others))) == [
        "worker1 is not new: it contains /scratch/old"
    ]


def test_a_file_system_that_is_not_shared(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (1, "", "No such file") if argv[0] == "cat" and node == "worker2" else None

    assert wrong(cluster(tmp_path, script)) == ["worker2 does not see what master wrote to /shared"]


def test_a_file_system_that_cannot_be_written(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (2, "", "sh: Read-only file system\n") if argv[-1].endswith(".vtax-token") and argv[0] == "sh" else None

    assert wrong(cluster(tmp_path, script)) == ["master cannot write to /shared: sh: Read-only file system"]


# --- placement -----------------------------------------------------------------------------------------------------


def telling(*ranks: str, world: int | None = None, copy: str = "yes") -> Script:
    """What ranks say: `node CPUs`, in the order of their numbers. Each sees a world of all, unless it is given."""
    text = "".join(f"vtax-world {rank} {world or len(ranks)} {place} {copy}\n" for rank, place in enumerate(ranks))
    return printing(text)


def printing(text: str) -> Script:
    """What the launch of `vtax-world` prints."""

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (0, text, "") if "vtax-world" in stdin else None

    return script


def placement(
    tmp_path: Path, script: Script, nodes: tuple[NodeShape, ...] = SHAPE.nodes, separate_nodes: bool = True
) -> list[str]:
    made = cluster(tmp_path, script, separate_nodes=separate_nodes, shape=ClusterShape(nodes=nodes))
    with pytest.raises(NotMatched) as caught:
        verify(made, parallel_targets(made, (Scope.WORKERS,)))
    return caught.value.detail.splitlines()


def test_ranks_on_the_wrong_nodes(tmp_path: Path) -> None:
    script = telling("worker1 0", "worker1 1", "worker1 0", "worker2 2")
    assert placement(tmp_path, script) == [
        "ranks are placed as {'worker1': 3, 'worker2': 1}, but the plan has {'worker1': 2, 'worker2': 2}"
    ]


def test_ranks_that_are_missing(tmp_path: Path) -> None:
    assert placement(tmp_path, telling("worker1 0", world=4)) == ["1 ranks answered, but the plan has 4"]
    assert placement(tmp_path, printing("")) == ["0 ranks answered, but the plan has 4"]


def test_singletons(tmp_path: Path) -> None:
    """Four programs of one rank each, which a launcher started without a word and with exit code 0."""
    text = "".join(f"vtax-world 0 1 {node} {cpu} alone\n" for node, cpu in (("worker1", 0), ("worker2", 2))) * 2
    (line,) = placement(tmp_path, printing(text))
    assert line.startswith("mpirun started 4 programs of one rank each, but the plan has one program of 4 ranks")
    (line,) = placement(tmp_path, printing(text), separate_nodes=False)
    assert line.startswith("mpirun started 4 programs of one rank each")


def test_ranks_of_two_worlds(tmp_path: Path) -> None:
    text = "".join(f"vtax-world {rank} 2 {node} 0 yes\n" for node in ("worker1", "worker2") for rank in (0, 1))
    assert placement(tmp_path, printing(text)) == ["ranks see worlds of 2 ranks, but the plan has 4"]


def test_a_rank_that_answers_twice(tmp_path: Path) -> None:
    text = "".join(f"vtax-world {rank} 4 worker1 0 yes\n" for rank in (0, 1, 1, 3))
    assert placement(tmp_path, printing(text)) == ["4 ranks answered, but not those with the numbers 0 to 3"]


def test_memory_that_ranks_cannot_read_is_recorded(tmp_path: Path) -> None:
    script = telling("worker1 0", "worker1 1", "worker2 2", "worker2 3", copy="no:EPERM")
    made = cluster(tmp_path, script)
    _, checks = verify(made, parallel_targets(made, (Scope.WORKERS,)))
    assert checks[-1] == "mpi memory workers: ranks of a node cannot read each other's memory (EPERM)"


def test_one_rank_on_each_node_says_nothing_of_memory(tmp_path: Path) -> None:
    nodes = (node_shape("master", (4,)), node_shape("worker1", (0,)), node_shape("worker2", (2,)))
    made = cluster(tmp_path, telling("worker1 0", "worker2 2", copy="alone"), shape=ClusterShape(nodes=nodes))
    _, checks = verify(made, parallel_targets(made, (Scope.WORKERS,)))
    assert checks[-1] == "mpi binding workers: worker1=0 worker2=2"


def test_ranks_that_share_a_cpu(tmp_path: Path) -> None:
    script = telling("worker1 0", "worker1 1", "worker2 2-3", "worker2 3")
    assert placement(tmp_path, script) == ["two ranks on worker2 share CPUs"]


def test_ranks_of_one_machine_that_share_a_cpu(tmp_path: Path) -> None:
    script = telling("host 0", "host 1", "host 2", "host 2")
    assert placement(tmp_path, script, separate_nodes=False) == ["ranks share CPUs: 0 1 2 2"]


def test_ranks_of_one_machine_that_are_missing(tmp_path: Path) -> None:
    script = telling("host 0", world=4)
    assert placement(tmp_path, script, separate_nodes=False) == ["1 ranks answered, but the plan has 4"]


def test_mpirun_that_does_not_start(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return (1, "", "PRTE has lost communication\n") if "vtax-world" in stdin else None

    made = cluster(tmp_path, script)
    with pytest.raises(ProvisionError, match="mpirun does not start on worker1, worker2") as caught:
        verify(made, parallel_targets(made, (Scope.WORKERS,)))
    assert not isinstance(caught.value, NotMatched)  # it may pass the next time
    assert caught.value.detail == "PRTE has lost communication"


# --- provisioning: create and verify, or nothing -------------------------------------------------------------------


def provisioned(provider: FakeProvider, tmp_path: Path) -> tuple[str, ...]:
    spec = EnvironmentSpec(name="box", provider="fake")
    return provision(provider, spec, SHAPE, "/shared", site(tmp_path), BOTH).checks


def test_what_is_left_of_a_cluster_in_which_its_machine_went_down_is_removed(tmp_path: Path) -> None:
    """A machine that rebooted has the files of the cluster that it had, and the next one has its label."""
    provider = FakeProvider("fake", tmp_path)
    old = tmp_path / "c1c1c1c1" / "site" / "worker1" / "scratch" / "result"
    old.parent.mkdir(parents=True)
    old.touch()
    assert len(provisioned(provider, tmp_path)) == 14
    assert (provider.created, provider.destroyed) == (1, 1)
    assert not old.exists()


def test_a_cluster_that_stands(tmp_path: Path) -> None:
    provider = FakeProvider("fake", tmp_path)
    assert len(provisioned(provider, tmp_path)) == 14
    assert (provider.created, provider.destroyed) == (1, 0)
    cluster = provider.live["c1"]
    assert (tmp_path / "c1c1c1c1" / "site").stat().st_mode & 0o777 == 0o700
    destroy(provider, site(tmp_path), cluster)
    destroy(provider, site(tmp_path), None)  # twice is fine
    assert provider.leftovers() == []
    assert not (tmp_path / "c1c1c1c1" / "site").exists()


def test_a_cluster_that_does_not_match_is_not_tried_again(tmp_path: Path) -> None:
    provider = FakeProvider("fake", tmp_path, script=answering(worker1=""))
    with pytest.raises(NotMatched):
        provisioned(provider, tmp_path)
    assert provider.created == 1
    assert provider.leftovers() == []
    assert not (tmp_path / "c1c1c1c1" / "site").exists()


def test_a_machine_that_is_lost_while_a_cluster_is_verified_does_not_end_the_cell(tmp_path: Path) -> None:
    """A machine that does not answer looks like a cluster that does not match: once it is back, there is a new one."""

    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        return missing(node, argv, stdin) if provider.machine_lost else None

    missing = answering(worker1="")
    provider = FakeProvider("fake", tmp_path, script=script, before_create=lambda number: came_back())
    provider.machine_lost = "machine b: the connection ended"

    def came_back() -> None:
        provider.machine_lost = "" if provider.destroyed else provider.machine_lost

    assert len(provisioned(provider, tmp_path)) == 14
    assert (provider.created, provider.destroyed) == (2, 1)


def test_a_machine_that_stays_lost_is_named(tmp_path: Path) -> None:
    provider = FakeProvider("fake", tmp_path, script=answering(worker1=""))
    provider.machine_lost = "machine b: the connection ended"
    with pytest.raises(ProvisionError, match="machine b: the connection ended, while the cluster was verified"):
        provisioned(provider, tmp_path)
    assert provider.created == 2


def test_what_may_pass_is_tried_once_more(tmp_path: Path) -> None:
    def fail_first(number: int) -> None:
        if number == 1 and provider.destroyed == 0:
            raise ProvisionError("a port was taken meanwhile")

    provider = FakeProvider("fake", tmp_path, before_create=fail_first)
    assert len(provisioned(provider, tmp_path)) == 14
    assert (provider.created, provider.destroyed) == (1, 1)


def test_what_fails_twice_fails(tmp_path: Path) -> None:
    def fail(number: int) -> None:
        raise ProvisionError("no answer")

    provider = FakeProvider("fake", tmp_path, before_create=fail)
    with pytest.raises(ProvisionError, match="no answer"):
        provisioned(provider, tmp_path)
    assert provider.destroyed == 2


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def script(node: str, argv: tuple[str, ...], stdin: str) -> Reply | None:
        if "vtax-world" in stdin:
            raise KeyboardInterrupt
        return None

    provider = FakeProvider("fake", tmp_path, script=script)
    with pytest.raises(KeyboardInterrupt):
        provisioned(provider, tmp_path)
    assert provider.leftovers() == []
    assert not (tmp_path / "c1c1c1c1" / "site").exists()


@pytest.mark.parametrize(("nodes", "most"), [(8, 2), (9, 1), (64, 1)])
def test_launches_on_many_nodes_come_one_after_the_other(nodes: int, most: int) -> None:
    """Two launches at once on few nodes meet; on many nodes the first one would wait in vain for the second."""
    meeting, met = threading.Barrier(2), []

    def launch() -> tuple[list[str], list[str]]:
        try:
            meeting.wait(0.3 if most == 1 else 30)
        except threading.BrokenBarrierError:
            return ["alone"], []
        met.append(1)
        return ["met"], []

    passed = [line for lines, _ in in_turn([launch, launch], nodes) for line in lines]
    assert passed == (["met"] * 2 if most == 2 else ["alone"] * 2)
