"""A real Kubernetes with two nodes: that the lab is one, and that it leaves nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration import kubernetes_build, kubernetes_images
from integration.kubernetes_lab import GROUPS, NO_STATIC, Kubernetes, kubernetes, wait
from integration.machines_lab import run
from vtax.model.cluster import Image

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.kubernetes]

CPUS = "/sys/fs/cgroup/cpuset/cpuset.cpus"
QUOTA = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"


@pytest.fixture(scope="module")
def cluster(cache: Path, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    images = Path(image.directory).parent.parent
    with kubernetes(cache, images, tmp_path_factory.mktemp("kubernetes")) as made:
        yield made


@pytest.fixture
def namespace(cluster: Kubernetes) -> Iterator[str]:
    name = "lab-test"
    cluster.kubectl("create", "namespace", name)
    wait_for_account(cluster, name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--timeout=60s")


def wait_for_account(cluster: Kubernetes, namespace: str) -> None:
    """A pod cannot be created before its namespace has an account for it."""
    asked = ("get", "serviceaccount", "default", f"--namespace={namespace}")
    wait(lambda: cluster.ask(*asked).returncode == 0, "the account of pods", cluster.logs)


def pod(name: str, node: str, image: str = kubernetes_images.BUSYBOX, pull: str = "Never") -> str:
    """A pod with one CPU for itself on a node."""
    limits = {"cpu": "1", "memory": "64Mi"}
    container = {"name": "main", "image": image, "imagePullPolicy": pull, "resources": {"limits": limits}}
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        },
    }
    return json.dumps(made)


def started(cluster: Kubernetes, namespace: str, *pods: str) -> None:
    where = f"--namespace={namespace}"
    for made in pods:
        cluster.kubectl("create", where, "--filename=-", typed=made)
    names = [f"pod/{json.loads(made)['metadata']['name']}" for made in pods]
    cluster.kubectl("wait", where, "--for=condition=Ready", "--timeout=60s", *names)


def read(cluster: Kubernetes, namespace: str, name: str, path: str) -> str:
    return cluster.kubectl("exec", f"--namespace={namespace}", name, "--", "cat", path).strip()


def test_pods_of_two_nodes_have_a_cpu_each_and_reach_each_other(cluster: Kubernetes, namespace: str) -> None:
    started(cluster, namespace, pod("one", "n1"), pod("two", "n2"))
    found = {item["metadata"]["name"]: item for item in cluster.objects("pods", f"--namespace={namespace}")}
    assert {name: item["spec"]["nodeName"] for name, item in found.items()} == {"one": "n1", "two": "n2"}
    assert {item["status"]["qosClass"] for item in found.values()} == {"Guaranteed"}
    assert [read(cluster, namespace, name, CPUS) for name in ("one", "two")] == ["1", "0"]
    address = found["two"]["status"]["podIP"]
    said = cluster.kubectl("exec", f"--namespace={namespace}", "one", "--", "ping", "-c", "2", address)
    assert "2 packets received" in said
    assert not cluster.connects(f"{address}:8080")
    cluster.kubectl("exec", f"--namespace={namespace}", "two", "--", "httpd", "-p", "8080", "-h", "/etc")
    assert cluster.connects(f"{address}:8080")


def test_a_deleted_namespace_takes_its_pods(cluster: Kubernetes) -> None:
    cluster.kubectl("create", "namespace", "short")
    wait_for_account(cluster, "short")
    started(cluster, "short", pod("one", "n1"))
    cluster.kubectl("delete", "namespace", "short", "--timeout=60s")
    assert cluster.objects("pods", "--all-namespaces") == []
    assert "sleep 100000" not in "\n".join(cluster.machines.machines["n1"].processes())


def test_a_user_without_rights_is_refused_until_they_are_given(cluster: Kubernetes, namespace: str) -> None:
    where = f"--namespace={namespace}"
    assert "Forbidden" in cluster.kubectl("get", "pods", where, user="restricted", code=1)
    cluster.kubectl("create", "rolebinding", "reader", where, "--clusterrole=view", "--user=restricted")
    assert cluster.kubectl("get", "pods", where, "--output=name", user="restricted") == ""
    assert "Forbidden" in cluster.kubectl("get", "nodes", user="restricted", code=1)


def test_an_image_is_pulled_from_the_registry_or_reported(
    cluster: Kubernetes, namespace: str, image: Image, tmp_path: Path
) -> None:
    registry = cluster.serve_images()
    archive = f"docker-archive:{cluster.place / 'busybox.tar'}"
    push = ("skopeo", "copy", "--quiet", "--dest-tls-verify=false", archive, f"docker://{registry}/box:1")
    run(*cluster.machines.enter(push))
    started(cluster, namespace, pod("pulled", "n2", f"{registry}/box:1", "Always"))
    cluster.kubectl("create", f"--namespace={namespace}", "--filename=-", typed=pod("none", "n1", f"{registry}/no:1"))
    missing = pod("missing", "n1", f"{registry}/missing:1", "Always")
    cluster.kubectl("create", f"--namespace={namespace}", "--filename=-", typed=missing)

    def reason(name: str) -> str:
        status = json.loads(cluster.kubectl("get", "pod", name, f"--namespace={namespace}", "--output=json"))["status"]
        states = status.get("containerStatuses", [{"state": {}}])
        return str(states[0]["state"].get("waiting", {}).get("reason"))

    wait(lambda: reason("none") == "ErrImageNeverPull", "the refusal to pull", cluster.logs)
    cluster.kubectl("delete", "pod", "none", f"--namespace={namespace}")
    wait(lambda: reason("missing") in ("ErrImagePull", "ImagePullBackOff"), "the failure to pull", cluster.logs)


def test_pods_outlive_the_api_server(cluster: Kubernetes, namespace: str) -> None:
    started(cluster, namespace, pod("one", "n1"))
    cluster.end_part("kube-apiserver")
    assert "refused" in cluster.kubectl("get", "nodes", code=1)
    cluster.start_api_server()
    assert "100000" in read(cluster, namespace, "one", "/proc/1/cmdline")


def test_a_node_is_lost_without_its_kubelet_and_comes_back(cluster: Kubernetes) -> None:
    cluster.kill_kubelet("n2")
    wait(lambda: cluster.ready() == {"n1": True, "n2": False}, "the loss of the node", cluster.logs)
    cluster.start_kubelet("n2")
    wait(lambda: cluster.ready() == {"n1": True, "n2": True}, "its return", cluster.logs)


def test_a_drained_node_has_no_pods(cluster: Kubernetes, namespace: str) -> None:
    started(cluster, namespace, pod("one", "n1"), pod("two", "n2"))
    cluster.drain("n1")
    found = cluster.objects("pods", f"--namespace={namespace}")
    assert [item["metadata"]["name"] for item in found] == ["two"]
    cluster.kubectl("uncordon", "n1")


def test_without_static_policy_a_pod_shares_cpus_and_the_end_leaves_nothing(
    cache: Path, image: Image, tmp_path: Path
) -> None:
    links, place, began = run("ip", "-o", "link"), tmp_path / "lab", time.monotonic()
    place.mkdir()
    with kubernetes(cache, Path(image.directory).parent.parent, place, NO_STATIC) as made:
        print(f"ready after {time.monotonic() - began:.1f} s")  # noqa: T201
        assert time.monotonic() - began < 60
        started(made, "default", pod("one", "n1"), pod("two", "n2"))
        assert (read(made, "default", "one", CPUS), read(made, "default", "one", QUOTA)) == ("1", "-1")
        assert (read(made, "default", "two", CPUS), read(made, "default", "two", QUOTA)) == ("0-1", "100000")
        namespace = made.machines.namespace
        assert list(GROUPS.glob(f"*/{group_of(made)}"))
    assert not list(Path("/run/netns").glob(f"{namespace}*"))
    assert not list(GROUPS.glob(f"*/{group_of(made)}"))
    assert str(place) not in Path("/proc/self/mounts").read_text()
    assert not [one for one in Path("/proc").glob("[0-9]*") if str(place) in command_line(one)]
    assert not (place / "disks").exists()
    assert run("ip", "-o", "link") == links


def group_of(made: Kubernetes) -> str:
    """The name of its control groups."""
    start = (made.place / "n1/start.sh").read_text()
    return start.split("/sys/fs/cgroup/*/", 1)[1].split(";", 1)[0]


def command_line(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.mark.parametrize(("version", "said"), [(None, "there is no program `go`"), ("go1.19.8", "needs Go 1.24, and")])
def test_without_a_go_that_can_build_it_the_remedy_is_named(tmp_path: Path, version: str | None, said: str) -> None:
    if version:
        (tmp_path / "go").write_text(f"#!/bin/sh\necho {version}\n")
        (tmp_path / "go").chmod(0o755)
    made = subprocess.run(
        (sys.executable, "-m", kubernetes_build.__name__),
        env={
            **os.environ,
            "PATH": f"{tmp_path}:/bin" if version else str(tmp_path),
            "XDG_CACHE_HOME": str(tmp_path),
            "PYTHONPATH": "tests",
        },
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 3, made.stderr
    assert said in made.stderr
    assert "next: install Go 1.24 or newer" in made.stderr
