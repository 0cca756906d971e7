"""A pod as the way to its machine, with a `kubectl` that is written here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fakes.kubectl import FakeKubectl, pod
from fakes.kubectl import machine as known
from vtax.errors import EnvironmentMissing
from vtax.machines.host_pod import CAPABILITIES, HostPod
from vtax.model.study import ClusterNodeSpec, MachineSpec
from vtax.providers.kubernetes.checks import RIGHTS
from vtax.store import is_alive

NODE = ClusterNodeSpec(node="n1", context="lab")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKubectl:
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place), prepend=":")
    made = FakeKubectl(place)
    made.answer("version", {"serverVersion": {}})
    made.answer("create .*--output=json", "\n".join(['{"status": {"allowed": true}}'] * len(RIGHTS)))
    made.answer("create")
    made.answer("get nodes", {"items": [known("n1")]})
    made.answer("delete")
    return made


def machine(runtime: Path) -> HostPod:
    return HostPod("host-master", MachineSpec(kubernetes=NODE), NODE, runtime)


def test_commands_begin_in_a_pod_that_enters_the_machine(fake: FakeKubectl, tmp_path: Path) -> None:
    fake.answer("get pods", json.dumps(pod("host")))
    fake.answer("exec")
    one = machine(tmp_path / "run")
    one.connect()
    space, made = (one for one in fake.created() if one["kind"] != "SelfSubjectAccessReview")
    assert space["kind"] == "Namespace"
    spec = made["spec"]
    assert spec["hostPID"]
    assert spec["containers"][0]["securityContext"]["capabilities"]["add"] == list(CAPABILITIES)
    assert "privileged" not in json.dumps(spec)
    command = one.command(("uname", "-r"))
    assert command[:4] == ("kubectl", "--context", "lab", "exec")
    assert command[-2:] == ("uname", "-r")
    assert "nsenter" in command
    label = one.label
    assert is_alive(tmp_path / "run" / label)  # so that `vtax clean` leaves it alone
    fake.answer(
        "get namespaces",
        {"items": [{"metadata": {**space["metadata"], "name": space["metadata"]["name"]}}]},
    )
    one.close()
    assert any(line.startswith(f"--context lab delete namespace {space['metadata']['name']}") for line in fake.calls)
    assert not (tmp_path / "run" / label).exists()
    assert not one.connected


LISTED = """\
REF                                     TYPE   DIGEST       SIZE      PLATFORMS   LABELS
docker.io/library/vtax-rootfs:0123abcd  a/b    sha256:aa    1.0 MiB   linux/amd64 x=y
sha256:0000                             a/b    sha256:aa    1.0 MiB   linux/amd64 x=y
docker.io/library/my-vtax-rootfs:1      a/b    sha256:bb    1.0 MiB   linux/amd64 -
registry:5000/vtax-rootfs:4567          a/b    sha256:cc    1.0 MiB   linux/amd64 -
sha256:1111                             a/b    sha256:bb    1.0 MiB   linux/amd64 -
"""  # containerd 1.7


def test_root_file_systems_in_containerd_are_known_by_name_and_removed_with_all_their_names(
    fake: FakeKubectl, tmp_path: Path
) -> None:
    fake.answer("get pods", json.dumps(pod("host")))
    fake.answer("images list", LISTED)
    fake.answer("exec")
    one = machine(tmp_path / "run")
    one.connect()
    assert one.images() == ["docker.io/library/vtax-rootfs:0123abcd", "sha256:0000", "registry:5000/vtax-rootfs:4567"]
    one.remove_images(one.images()[:2])
    assert fake.calls[-1].endswith("images remove --sync docker.io/library/vtax-rootfs:0123abcd sha256:0000")
    before = len(fake.calls)
    one.remove_images([])
    assert len(fake.calls) == before


def test_without_containerd_there_are_none(fake: FakeKubectl, tmp_path: Path) -> None:
    fake.answer("get pods", json.dumps(pod("host")))
    fake.answer("images list", code=127, err="ctr: not found")
    fake.answer("exec")
    one = machine(tmp_path / "run")
    one.connect()
    assert one.images() == []


def test_a_pod_that_may_not_enter_its_machine_is_removed(fake: FakeKubectl, tmp_path: Path) -> None:
    fake.answer("get pods", json.dumps(pod("host")))
    fake.answer("exec", code=1, err="nsenter: cannot open /proc/1/ns/ipc: Permission denied\n")
    fake.answer("get namespaces", {"items": []})
    with pytest.raises(EnvironmentMissing, match="its pod cannot enter the machine") as caught:
        machine(tmp_path / "run").connect()
    assert "Permission denied" in caught.value.detail
    assert list((tmp_path / "run").iterdir()) == []


def test_a_pod_that_does_not_start_says_why(fake: FakeKubectl, tmp_path: Path) -> None:
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such host"}}
    fake.answer("get pods", json.dumps(pod("host", conditions=[], containerStatuses=[{"state": waiting}])))
    fake.answer("get namespaces", {"items": []})
    with pytest.raises(EnvironmentMissing, match="its image cannot be pulled") as caught:
        machine(tmp_path / "run").connect()
    assert caught.value.message.startswith("machine host-master (n1): pod host does not start")


def test_a_machine_that_the_cluster_does_not_have(fake: FakeKubectl, tmp_path: Path) -> None:
    node = ClusterNodeSpec(node="n9")
    one = HostPod("host-master", MachineSpec(kubernetes=node), node, tmp_path / "run")
    with pytest.raises(EnvironmentMissing, match="the cluster has no machine n9: it has n1"):
        one.connect()
    assert {made["kind"] for made in fake.created()} == {"SelfSubjectAccessReview"}
