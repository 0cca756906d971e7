"""Pods as nodes, with a `kubectl` that is written here: what is asked of a cluster, and what its answers mean."""

from __future__ import annotations

import hashlib
import json
import socket
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest

from fakes.cluster import node_shape
from fakes.kubectl import FakeKubectl, machine, pod
from vtax.cluster.archive import tags, write_archive
from vtax.errors import EnvironmentMissing, NotMatched, PauseError, ProvisionError, StudyError
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape
from vtax.planning.study import parse
from vtax.providers.kubernetes import checks, inside, manifests, owned, starting, states
from vtax.providers.kubernetes.options import KubernetesOptions
from vtax.providers.kubernetes.pausing import PodsPausing
from vtax.transport import kubectl
from vtax.transport.kubectl import Kubectl
from vtax.transport.ssh import SshTransport

GIB = 2**30
SHAPE = ClusterShape(nodes=(node_shape("master", (0,), GIB), node_shape("worker1", (1,), GIB)))
OPTIONS = KubernetesOptions(nodes={"master": "n1", "worker1": "n2"})
CLUSTER = Kubectl()
OWNER = manifests.Owner("0123abcd", "/run", "here")
BOTH = {"items": [machine("n1"), machine("n2")]}
REFUSED = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKubectl:
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place), prepend=":")
    monkeypatch.setattr(kubectl, "AGAIN_S", 0.01)
    return FakeKubectl(place)


def allowed(*refused: str) -> str:
    """What the API server answers about each right."""
    rights = [f"{verb} {resource}" for verb, resource in checks.RIGHTS]
    return "\n".join(json.dumps({"status": {"allowed": right not in refused}}, indent=1) for right in rights)


def found(fake: FakeKubectl, options: KubernetesOptions = OPTIONS) -> list[str]:
    return [one.message for one in checks.problems(CLUSTER, options, SHAPE)]


def test_a_cluster_with_rights_and_room_has_no_problems(fake: FakeKubectl) -> None:
    fake.answer("^create", allowed())
    fake.answer("^get nodes", BOTH)
    assert found(fake) == []
    reviews = fake.created()
    assert {one["kind"] for one in reviews} == {"SelfSubjectAccessReview"}
    assert {"verb": "create", "resource": "pods", "subresource": "exec"} in [
        one["spec"]["resourceAttributes"] for one in reviews
    ]
    assert len(fake.calls) == 2  # rights, and machines


def test_missing_rights_are_named_before_anything_else(fake: FakeKubectl) -> None:
    fake.answer("^create", allowed("create pods", "list nodes"))
    (problem,) = checks.problems(CLUSTER, OPTIONS, SHAPE)
    assert problem.message == "this user of the cluster may not create pods and list nodes"
    assert "kubectl apply -f rbac.yaml" in problem.remedy
    assert len(fake.calls) == 1


def test_rbac_yaml_gives_what_is_asked_for() -> None:
    text = (Path(__file__).parents[4] / "rbac.yaml").read_text()
    for verb, resource in checks.RIGHTS:
        rule = text.split(f"resources: [{resource}]\n", 1)[1].split("\n", 1)[0]
        assert verb in rule.replace("[", " ").replace("]", " ").replace(",", " ").split(), (verb, resource)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (machine("n3"), "the cluster has no machine n2: it has n1 and n3"),
        (
            machine("n2", conditions=[{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped"}]),
            "machine n2 is not Ready: Kubelet stopped",
        ),
        ({**machine("n2"), "spec": {"unschedulable": True}}, "machine n2 is cordoned: it takes no new pods"),
        (
            {**machine("n2"), "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}},
            "machine n2 takes no pods of vtax: it has the taint gpu:NoSchedule",
        ),
        (
            machine("n2", allocatable={"cpu": "500m", "memory": "4Gi"}),
            "machine n2 gives pods 0.5 CPUs, and the plan wants 1",
        ),
        (
            machine("n2", allocatable={"cpu": "2", "memory": "512Mi"}),
            "machine n2 gives pods 512 MiB, and the plan wants 1 GiB",
        ),
    ],
)
def test_machines_that_cannot_have_the_pods_are_named(fake: FakeKubectl, other: dict[str, Any], expected: str) -> None:
    fake.answer("^create", allowed())
    fake.answer("^get nodes", {"items": [machine("n1"), other]})
    assert found(fake) == [expected]


def test_an_unknown_runtime_class_is_named(fake: FakeKubectl) -> None:
    fake.answer("^create", allowed())
    fake.answer("^get nodes", BOTH)
    fake.answer("^get runtimeclass gvisor", code=1, err='runtimeclasses.node.k8s.io "gvisor" not found\n')
    (message,) = found(fake, OPTIONS.model_copy(update={"runtime_class": "gvisor"}))
    assert message.startswith("runtime class gvisor cannot be used: ")


@pytest.mark.parametrize(("text", "value"), [("2", 2), ("500m", 0.5), ("4Gi", 4 * GIB), ("3k", 3000), ("1e", None)])
def test_quantities(text: str, value: float | None) -> None:
    if value is None:
        with pytest.raises(ValueError, match="not a quantity"):
            checks.quantity(text)
    else:
        assert checks.quantity(text) == value


def test_reading_is_repeated_while_the_api_server_restarts(fake: FakeKubectl) -> None:
    fake.answer("^get nodes", code=1, err=REFUSED, times=2)
    fake.answer("^get nodes", BOTH)
    assert len(CLUSTER.items("nodes")) == 2
    assert len(fake.calls) == 3


def test_reading_ends_with_what_to_do(fake: FakeKubectl) -> None:
    fake.answer("^get nodes", code=1, err=REFUSED)
    with pytest.raises(EnvironmentMissing, match="does not answer") as caught:
        CLUSTER.items("nodes", within_s=0.05)
    assert caught.value.detail == REFUSED
    assert "get nodes" in caught.value.remedy


def test_pods_are_limited_as_the_plan_says() -> None:
    made = manifests.Order(OWNER, "space", OPTIONS, "image", 22, "/shared").pod(SHAPE.nodes[0])["spec"]
    limits = made["containers"][0]["resources"]
    assert limits["limits"] == limits["requests"] == {"cpu": "1", "memory": str(GIB)}
    assert made["containers"][0]["imagePullPolicy"] == "Never"
    assert json.dumps(made["affinity"]).count('"n1"') == 1
    assert made["hostname"] == "master"
    assert not made["hostNetwork"]


def test_burstable_pods_request_half_and_the_host_network_has_the_names_of_machines() -> None:
    options = OPTIONS.model_copy(update={"qos": "burstable", "network": "host", "registry": "r:5000"})
    made = manifests.Order(OWNER, "space", options, "image", 20_000, "/shared").pod(SHAPE.nodes[0])["spec"]
    assert made["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": str(GIB // 2)}
    assert made["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert made["hostNetwork"]
    assert "hostname" not in made


def watch(*several: dict[str, Any]) -> str:
    """What a watch prints: one object after the other."""
    return "\n".join(json.dumps(one, indent=4) for one in several)


def test_pods_are_awaited_by_watches(fake: FakeKubectl) -> None:
    waiting = pod("master", phase="Pending", conditions=[], containerStatuses=[])
    fake.answer("^get pods", watch(waiting, pod("worker1", "n2"), pod("master")))
    pods = starting.Watched(CLUSTER, "space", ["master", "worker1"]).until_started(time.monotonic() + 5)
    assert sorted(pods) == ["master", "worker1"]
    assert len([line for line in fake.calls if line.startswith("get pods")]) == 1
    with pytest.raises(NotMatched, match="not on the machines") as caught:
        starting.refuse_misplaced(pods, {"master": "n1", "worker1": "n3"})
    assert caught.value.detail == "worker1 is on n2, and the study says n3"


def test_a_pod_has_started_when_its_kubelet_says_so_whose_status_follows_later(fake: FakeKubectl) -> None:
    waiting = pod("master", phase="Pending", conditions=[], containerStatuses=[])
    fake.answer("^get pods", watch(waiting, pod("worker1", "n2")))
    fake.answer("^get events", watch({"reason": "Started", "involvedObject": {"kind": "Pod", "name": "master"}}))
    pods = starting.Watched(CLUSTER, "space", ["master", "worker1"]).until_started(time.monotonic() + 5)
    assert pods["master"]["status"]["phase"] == "Pending"
    (events,) = [line for line in fake.calls if line.startswith("get events")]
    assert "--field-selector=reason=Started,involvedObject.kind=Pod --namespace=space --watch" in events


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImageNeverPull", "message": "not present"}}}]},
            "its image is not on the machine (ErrImageNeverPull: not present)",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such host"}}}]},
            "its image cannot be pulled (ErrImagePull: no such host)",
        ),
        ({"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough"}, "it ended (OutOfcpu: Node "),
        (
            {"containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 2}}}]},
            "its container ended (Error, exit code 2)",
        ),
    ],
)
def test_a_pod_that_will_never_be_ready_ends_the_wait(fake: FakeKubectl, status: dict[str, Any], expected: str) -> None:
    fake.answer("^get pods", watch(pod("master", **{"phase": "Pending", "conditions": [], **status})))
    began = time.monotonic()
    with pytest.raises(ProvisionError) as caught:
        starting.Watched(CLUSTER, "space", ["master"]).until_started(began + 60)
    assert f"pod master does not start: {expected}" in caught.value.message
    assert time.monotonic() - began < 5
    assert ("vtax image export" in caught.value.remedy) is ("not on the machine" in expected)


def test_what_the_scheduler_says_ends_the_wait(fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "SCHEDULE_S", 0.0)
    monkeypatch.setattr(starting, "WATCH_AGAIN_S", 0.01)
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "Insufficient cpu"}
    fake.answer("^get pods", watch(pod("master", phase="Pending", conditions=[why], containerStatuses=[])))
    with pytest.raises(ProvisionError, match="pod master cannot be scheduled: Insufficient cpu"):
        starting.Watched(CLUSTER, "space", ["master"]).until_started(time.monotonic() + 5)


def test_a_watch_that_the_api_server_closes_is_begun_again(fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "WATCH_AGAIN_S", 0.01)
    fake.answer("^get pods", watch(pod("master", phase="Pending", conditions=[], containerStatuses=[])), times=1)
    fake.answer("^get pods", watch(pod("master")))
    assert starting.Watched(CLUSTER, "space", ["master"]).until_started(time.monotonic() + 5)


def test_pods_that_do_not_run_in_time_are_named(fake: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "WATCH_AGAIN_S", 0.01)
    fake.answer("^get pods", watch(pod("master", phase="Pending", conditions=[], containerStatuses=[])))
    with pytest.raises(ProvisionError, match="did not run in time: master") as caught:
        starting.Watched(CLUSTER, "space", ["master"]).until_started(time.monotonic() + 0.3)
    assert caught.value.detail == "master: Pending"


def test_what_the_cluster_refuses_is_said_in_its_words(fake: FakeKubectl) -> None:
    fake.answer(
        "^create", code=1, err='Error from server (Forbidden): pods "master" is forbidden: violates PodSecurity'
    )
    with pytest.raises(ProvisionError, match="violates PodSecurity"):
        starting.order(CLUSTER, manifests.document([]), 5)


class Link(SshTransport):
    """A connection that is there, or not."""

    def connected(self) -> bool:
        return self.host != "closed"


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        ([pod("master")], ""),
        ([], "pod master was deleted"),
        ([{**pod("master"), "metadata": {"name": "master", "uid": "other"}}], "pod master was replaced by another one"),
        (
            [pod("master", phase="Failed", reason="Evicted", message="low on memory")],
            "pod master: it ended (Evicted: low on memory)",
        ),
        (
            [
                {
                    **pod("master", conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "Eviction"}]),
                    "metadata": {"name": "master", "uid": "uid-master", "deletionTimestamp": "now"},
                }
            ],
            "pod master: it was evicted (Eviction)",
        ),
    ],
)
def test_why_a_pod_no_longer_answers(fake: FakeKubectl, pods: list[dict[str, Any]], expected: str) -> None:
    fake.answer("^get pods", {"items": pods})
    links = {"master": Link(Path("/none"), "open")}
    assert inside.Pods(CLUSTER, "space", links, {"master": "uid-master"}).lost() == expected


def test_a_pod_that_ended_at_once_says_why_when_it_is_connected_to(fake: FakeKubectl, tmp_path: Path) -> None:
    """Its container started, so nothing else knew it."""
    ended: dict[str, Any] = {"containerStatuses": [{"state": {"terminated": {"reason": "Error", "exitCode": 2}}}]}
    fake.answer("^get pods", {"items": [pod("master", phase="Pending", containerStatuses=[])]}, times=1)
    fake.answer("^get pods", {"items": [pod("master", **ended)]})
    (tmp_path / "ssh_config").write_text("Host master\n  ProxyCommand false\n")
    links = {"master": SshTransport(tmp_path / "ssh_config", "master")}
    with pytest.raises(ProvisionError, match="pod master does not answer") as caught:
        inside.Pods(CLUSTER, "space", links, {"master": "uid-master"}).seen()
    assert caught.value.detail == "pod master: its container ended (Error, exit code 2)"


def test_a_connection_that_the_api_server_closed(fake: FakeKubectl) -> None:
    fake.answer("^get pods", {"items": [pod("master")]})
    links = {"master": Link(Path("/none"), "closed")}
    said = inside.Pods(CLUSTER, "space", links, {"master": "uid-master"}).lost()
    assert said == "the API server closed the connection to pod master"


def seen(**cpus: str) -> dict[str, dict[str, str]]:
    return {name: {"cpus_allowed": one, "cpus_online": "0-3"} for name, one in cpus.items()}


def test_cpus_are_as_the_kubelets_give_them() -> None:
    own = seen(master="2", worker1="3")
    assert inside.limited_by(SHAPE, own, OPTIONS) == "cpuset"
    assert [node.cpu_ids for node in inside.with_cpus(SHAPE, own).nodes] == [(2,), (3,)]
    assert inside.limited_by(SHAPE, seen(master="0-3", worker1="0-3"), OPTIONS) == "quota"


@pytest.mark.parametrize(
    ("limit", "cpus", "expected"),
    [
        ("cpuset", {"master": "2", "worker1": "0-3"}, "pods have no exclusive CPUs, which the study demands"),
        ("auto", {"master": "2", "worker1": "0-3"}, "some pods have exclusive CPUs, and others only a quota"),
        ("quota", {"master": "2", "worker1": "3"}, "pods have exclusive CPUs, where the study wants a quota"),
    ],
)
def test_cpus_that_are_not_as_the_study_has_them_are_refused(limit: str, cpus: dict[str, str], expected: str) -> None:
    options = OPTIONS.model_copy(update={"cpu_limit": limit})
    with pytest.raises(NotMatched, match=expected) as caught:
        inside.limited_by(SHAPE, seen(**cpus), options)
    assert "worker1 on n2: 1 planned" in caught.value.detail


def test_pods_are_stopped_and_continued_from_inside(fake: FakeKubectl) -> None:
    fake.answer("^exec", times=1)
    fake.answer("^exec", code=1, err="unable to upgrade connection: container not found\n")
    pausing = PodsPausing(CLUSTER, "space", ["master"])
    assert pausing.pause() == "SIGSTOP to all processes of the pods"
    with pytest.raises(PauseError, match="container not found"):
        pausing.resume()
    assert [line.rpartition(" -- ")[2] for line in fake.calls] == [
        "/bin/sh -c kill -STOP -1",
        "/bin/sh -c kill -CONT -1",
    ]


def space(name: str, label: str, runtime: str, host: str = "", **more: str) -> dict[str, Any]:
    about = {"vtax.runtime": runtime, "vtax.host": host or socket.gethostname()}
    return {"metadata": {"name": name, "labels": {"vtax.campaign": label}, "annotations": about, **more}}


def test_only_what_is_ones_own_is_left_behind(fake: FakeKubectl, tmp_path: Path) -> None:
    runtime = tmp_path / "run"
    owned.note(runtime, "0123abcd", CLUSTER)
    mine = str(runtime.resolve())
    fake.answer("^version", {"serverVersion": {}})
    several = [
        space("vtax-0123abcd-11", "0123abcd", mine),
        space("vtax-0123abcd-22", "0123abcd", mine, deletionTimestamp="now"),
        space("vtax-99990000-11", "99990000", mine, host="another"),
        space("production", "0123abcd", mine),
    ]
    fake.answer("^get namespaces", {"items": several})
    fake.answer("^delete")
    left = owned.leftovers("kubernetes", runtime)
    assert [(one.name, one.elsewhere) for one in left] == [
        ("vtax-0123abcd-11", ""),
        ("vtax-99990000-11", f"{mine} on another"),
    ]
    owned.remove(CLUSTER, runtime, "0123abcd")
    deleted = [line for line in fake.calls if line.startswith("delete")]
    assert [line for line in deleted if "another" in line or "production" in line or "9999" in line] == []
    assert deleted[0].startswith("delete pods,secrets --all --namespace=vtax-0123abcd-11 ")
    assert deleted[1].startswith("delete namespace vtax-0123abcd-11 --wait=false")


def test_a_cluster_that_does_not_answer_has_no_leftovers(fake: FakeKubectl, tmp_path: Path) -> None:
    fake.answer("^version", code=1, err=REFUSED)
    assert owned.leftovers("kubernetes", tmp_path) == []


def test_the_root_file_system_becomes_an_archive_of_images(tmp_path: Path) -> None:
    root = tmp_path / "rootfs.tar"
    root.write_bytes(b"root file system")
    digest = hashlib.sha256(root.read_bytes()).hexdigest()
    image = Image(recipe="r", digest=digest, directory="/i", archive=str(root))
    write_archive(image, tmp_path / "out.tar")
    with tarfile.open(tmp_path / "out.tar") as tar:
        content = {name: tar.extractfile(name).read() for name in tar.getnames()}  # type: ignore[union-attr]
    (manifest,) = json.loads(content["manifest.json"])
    assert manifest["RepoTags"] == list(tags(image)) == [f"vtax-rootfs:{digest[:12]}", "vtax-rootfs:latest"]
    assert content[manifest["Layers"][0]] == b"root file system"
    config = content[manifest["Config"]]
    assert manifest["Config"] == f"{hashlib.sha256(config).hexdigest()}.json"
    assert json.loads(config)["rootfs"]["diff_ids"] == [f"sha256:{digest}"]


STUDY = """\
name = "test"
baseline = "host"
[environments.host]
provider = "kubernetes-host"
nodes = { master = "n1", worker1 = "n2" }
[environments.pods]
provider = "kubernetes"
OPTIONS
[nodes]
workers = 1
[[benchmarks]]
name = "sysbench-cpu"
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('nodes = { master = "n1" }', "it names no machine for worker1"),
        ('nodes = { master = "n1", worker1 = "n2", worker2 = "n3" }', "the study has no node worker2"),
        ('nodes = { master = "n1", worker1 = "n1" }\nnetwork = "host"', "two nodes are on one machine"),
        (
            'nodes = { master = "n1", worker1 = "n2" }\ncpu_limit = "cpuset"\nqos = "burstable"',
            "only pods with qos guaranteed have exclusive CPUs",
        ),
        ('nodes = { master = "n1", worker1 = "n2" }\nruntime_class = "--x"', "runtime_class"),
    ],
)
def test_mistakes_of_a_study(options: str, expected: str) -> None:
    with pytest.raises(StudyError, match=expected):
        parse(STUDY.replace("OPTIONS", options), "study.toml")


def test_a_study_of_pods_and_their_machines() -> None:
    study = parse(STUDY.replace("OPTIONS", 'nodes = { master = "n1", worker1 = "n2" }'), "study.toml")
    assert [spec.one_directory for spec in study.environments] == [False, False]


def test_what_a_pod_is_is_recorded() -> None:
    assert states.facts(pod("master"), "n1") == {
        "name": "master",
        "namespace": "",
        "uid": "uid-master",
        "machine": "n1",
        "planned": "n1",
        "qos": "Guaranteed",
        "runtime_class": "",
        "restarts": 0,
    }
