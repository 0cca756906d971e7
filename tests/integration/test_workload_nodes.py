"""A study's own image on the nodes of every provider: entered as another user, written to, gone with the cluster.

The image is made by hand and holds one program and nothing else: no shell, no package. It is linked with musl, whose
loader is beside it as in images of Alpine; its copy is static and needs nothing at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vtax.model.cluster import Image, Workload
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.paths import Paths
from vtax.providers import provider
from vtax.providers.base import Cluster, Provider, Site
from vtax.running import leftovers
from vtax.running.provision import Ready, provision

from . import test_clusters, test_qemu
from .conftest import Vtax, finish

pytestmark = pytest.mark.integration
DIGEST = "5e" * 32
APP = r"""
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* app id | app cat FILE | app put FILE TEXT | app sit FILE: keeps FILE open until it is killed */
int main(int count, char **words) {
  char line[4096];
  if (strcmp(words[1], "id") == 0)
    return printf("%d %d %s\n", (int)getuid(), (int)getgid(), getcwd(line, sizeof line)) < 0;
  FILE *file = fopen(words[2], strcmp(words[1], "cat") == 0 ? "r" : "w");
  if (!file) return perror(words[2]), 1;
  if (count > 3) return fputs(words[3], file) < 0 || fclose(file) != 0;
  if (strcmp(words[1], "sit") == 0) return puts("sitting"), fflush(stdout), pause();
  while (fgets(line, sizeof line, file)) fputs(line, stdout);
  return 0;
}
"""
CREATE = """
import sys
from pathlib import Path
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.providers import provider
from vtax.providers.base import Site
kinds = (EnvironmentSpec, ClusterShape, Image)
spec, shape, image = (kind.model_validate_json(word) for kind, word in zip(kinds, sys.argv[1:4]))
top = Path(sys.argv[4])
site = Site(top.name, top / "c", image, top / "keys")
site.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
print("begins", flush=True)
provider(spec.provider, top.parent).create(spec, shape, "/shared", site)
print("created", flush=True)
"""


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    """An unpacked image, as the cache has it."""
    place = tmp_path_factory.mktemp("workloads") / "unpacked"
    root = place / "root"
    for name in ("bin", "data", "etc", "tmp"):
        (root / name).mkdir(parents=True)
    place.chmod(0o700)
    source = place.with_name("app.c")
    source.write_text(APP)
    for name, how in (("app", ()), ("elevated", ("-static",))):
        made = ("musl-gcc", *how, "-O1", "-o", str(root / "bin" / name), str(source))
        subprocess.run(made, check=True, timeout=60)
    (root / "lib").mkdir()
    (loader,) = Path("/lib").glob("ld-musl-*.so.1")
    shutil.copyfile(loader, root / "lib" / loader.name)
    (root / "lib" / loader.name).chmod(0o755)
    (root / "bin/same").hardlink_to(root / "bin/app")
    (root / "bin/elevated").chmod(0o4711)
    (root / "tmp").chmod(0o1777)
    os.chown(root / "data", 1234, 1234)
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/app\nworker:x:1234:1234::/data:/bin/app\n")
    (place / "config").write_bytes(b"--directory\0/data\0--user\0worker\0--set\0PATH=/bin\0")
    (place / "entry").write_bytes(b"app\0id\0")
    found = Workload(
        source="oci:by-hand",
        digest=DIGEST,
        directory=str(place),
        architecture="amd64",
        libc="musl",
        size_bytes=sum(path.stat().st_size for path in root.rglob("*") if path.is_file()),
    )
    (place / "workload.json").write_text(found.model_dump_json())
    return found


def in_image(cluster: Cluster, node: str, *words: str, user: str = "") -> CommandResult:
    options = ("--user", user) if user else ()
    argv = ("vtax-run", "--image", "/workload", *options, "--", *words)
    return cluster.node(node).transport.run(argv, timeout_s=60)


def case(name: str, places: Paths, image: Image) -> tuple[Provider, EnvironmentSpec, ClusterShape, Site]:
    """What makes a cluster of this provider with the image."""
    supplier = provider(name.partition("-")[0], places.runtime)
    assert supplier.unavailable() == "", "integration tests need every provider: scripts/bootstrap test"
    if name == "qemu":
        made = test_qemu.spec(accel="tcg"), test_qemu.shape(workers=1), test_qemu.site_of(places, image, "own-qemu")
        return (supplier, *made)
    options = {"network": "bridge"} if name == "host-bridge" else {}
    spec = test_clusters.spec_for(supplier.name, supplier, **options)
    return supplier, spec, test_clusters.shape_for(supplier.name), test_clusters.site_for(places, image, f"own-{name}")


def mounts_of(site: Site) -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if f" vtax-{site.campaign}." in line]


@pytest.mark.parametrize("name", ["host", "host-bridge", "docker", "podman", "qemu"])
def test_an_image_with_one_program_on_every_node(
    name: str, places: Paths, image: Image, workload: Workload, vtax: Vtax
) -> None:
    """One cluster for all that can be asked; it is removed by its label alone, as if vtax had been killed."""
    with_image = image.model_copy(update={"workload": workload})
    supplier, spec, shape, site = case(name, places, with_image)
    assert supplier.workload_problems(spec) == ()
    before = listed(workload)
    ready = provision(supplier, spec, shape, "/shared", site, [])
    checked(ready, workload)
    cluster, node = ready.cluster, "worker1"
    assert in_image(cluster, node).stdout == "1234 1234 /data\n"
    assert in_image(cluster, node, "same", "id", user="0:0").stdout == "0 0 /data\n"
    assert in_image(cluster, node, "elevated", "id", user="0:0").stdout == "0 0 /data\n", "static"
    assert in_image(cluster, node, "app", "put", "/data/kept", "text\n").exit_code == 0
    assert in_image(cluster, node, "app", "cat", "/data/kept").stdout == "text\n"
    assert in_image(cluster, "master", "app", "cat", "/data/kept").exit_code == 1, "every node has its own layer"
    what_is_the_node_s(cluster, node)
    for path in ("/workload/config", "/workload/entry", "/workload/workload.json"):
        refused = cluster.node(node).transport.run(("sh", "-c", f"echo other >{path}"), timeout_s=60)
        assert refused.exit_code != 0, path
    assert listed(workload) == before
    cluster.close()
    code, out, err = finish(vtax("clean"))
    assert code == 0, err
    assert site.campaign in out
    assert mounts_of(site) == []
    assert not site.directory.exists()
    supplier.destroy(site.campaign)  # twice is fine


def listed(workload: Workload) -> list[tuple[object, ...]]:
    """What the unpacked image contains, with everything but the times of reading."""
    found = ((path, path.lstat()) for path in sorted(workload.root.rglob("*")))
    return [(path, at.st_ino, at.st_mode, at.st_uid, at.st_nlink, at.st_size, at.st_mtime) for path, at in found]


def checked(ready: Ready, workload: Workload) -> None:
    """What was verified, and the facts that are recorded."""
    (line,) = (line for line in ready.checks if line.startswith("/workload is "))
    assert line.startswith(f"/workload is the image oci:by-hand, sha256 {DIGEST[:12]}, on all {len(ready.facts)} nodes")
    for one in ready.facts:
        values = one.values
        assert (values["workload_digest"], values["workload_libc"]) == (workload.digest, "musl")
        assert values["workload_filesystem"] == "overlay"
        assert values["workload_layer"] == "ext4"


def what_is_the_node_s(cluster: Cluster, node: str) -> None:
    """Inside the image are the node's processes, names, devices, disk and shared directory."""
    transport = cluster.node(node).transport

    def stat(what: str, *names: str) -> list[str]:
        words = ("stat", "-c", what, *names)
        return transport.run(words, timeout_s=60, directory="/workload/root/bin").stdout.splitlines()

    files = stat("%n %a %u %g %h", "app", "same", "elevated")
    assert files == ["app 755 0 0 2", "same 755 0 0 2", "elevated 4711 0 0 1"]
    # Without links, which an overlay counts as one of a directory that was written to.
    assert stat("%n %a %u %g", "../data", "../tmp") == ["../data 755 1234 1234", "../tmp 1777 0 0"]
    hostname = transport.run(("cat", "/proc/sys/kernel/hostname"), timeout_s=60).stdout
    assert in_image(cluster, node, "app", "cat", "/proc/sys/kernel/hostname").stdout == hostname
    assert "localhost" in in_image(cluster, node, "app", "cat", "/etc/hosts").stdout
    assert in_image(cluster, node, "app", "put", "/dev/null", "x").exit_code == 0
    assert transport.run(("sh", "-c", "echo seen >/shared/x; echo seen >/scratch/x"), timeout_s=60).exit_code == 0
    for path in ("/shared/x", "/scratch/x"):
        assert in_image(cluster, node, "app", "cat", path).stdout == "seen\n"
    memory = transport.run(("sh", "-c", "grep -c . /proc/meminfo"), timeout_s=60).stdout
    assert len(in_image(cluster, node, "app", "cat", "/proc/meminfo").stdout.splitlines()) == int(memory)
    status = in_image(cluster, node, "app", "cat", "/proc/self/status").stdout
    assert "Uid:\t1234\t1234\t1234\t1234" in status
    assert "CapEff:\t0000000000000000" in status
    assert in_image(cluster, node, "app", "put", "/proc/sys/vm/swappiness", "1").exit_code == 1
    assert in_image(cluster, node, "app", "put", "/bin/app", "x").exit_code == 1


@pytest.mark.parametrize(
    ("name", "delays_s"), [("host", (0.0, 0.01, 0.03, 0.08)), ("docker", (0.05, 0.7)), ("podman", (0.9,))]
)
def test_killed_while_it_is_made(
    name: str, delays_s: tuple[float, ...], places: Paths, image: Image, workload: Workload, vtax: Vtax
) -> None:
    _, spec, shape, site = case(name, places, image)
    words = (spec, shape, image.model_copy(update={"workload": workload}))
    for delay_s in delays_s:
        arguments = [*(word.model_dump_json() for word in words), str(site.directory.parent)]
        child = subprocess.Popen([sys.executable, "-c", CREATE, *arguments], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stdout.readline() == "begins\n"
        time.sleep(delay_s)
        child.kill()
        child.communicate(timeout=30)
        time.sleep(0.3)  # what it had asked an engine for may still be made
        code, _, err = finish(vtax("clean"))
        assert code == 0, err
        assert mounts_of(site) == []
        assert not site.directory.exists()
    assert sorted(path.name for path in workload.root.iterdir()) == ["bin", "data", "etc", "lib", "tmp"]


def test_a_program_that_holds_a_file_does_not_keep_the_image(
    places: Paths, image: Image, workload: Workload, vtax: Vtax
) -> None:
    supplier, spec, shape, site = case("host", places, image.model_copy(update={"workload": workload}))
    ready = provision(supplier, spec, shape, "/shared", site, [])
    argv = ("vtax-run", "--image", "/workload", "--", "app", "sit", "/data/open")
    out = places.runtime / "out"
    running = ready.cluster.node("worker1").transport.start(argv, timeout_s=60, stdout=out, stderr=out)
    deadline = time.monotonic() + 10
    while "sitting" not in out.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert out.read_text() == "sitting\n"
    assert finish(vtax("clean"))[0] == 0
    assert running.stop().exit_code != 0, "it was killed"
    assert mounts_of(site) == []
    assert finish(vtax("clean"))[:2] == (0, "nothing is left behind\n")


def test_where_an_overlay_cannot_write_it_writes_to_memory(
    places: Paths, image: Image, workload: Workload, state: Path
) -> None:
    """An overlay does not write to another overlay: as for a vtax that runs in a container."""
    for name in ("lower", "upper", "work", "vtax"):
        (state / name).mkdir(exist_ok=True)
    layers = "lowerdir=lower,upperdir=upper,workdir=work"
    subprocess.run(["mount", "-t", "overlay", "-o", layers, "none", str(places.state)], cwd=state, check=True)
    try:
        supplier, spec, shape, site = case("host", places, image.model_copy(update={"workload": workload}))
        ready = provision(supplier, spec, shape, "/shared", site, [])
        assert {one.values["workload_layer"] for one in ready.facts} == {"tmpfs"}
        assert in_image(ready.cluster, "worker1", "app", "put", "/data/kept", "x").exit_code == 0
        found = [item for item in leftovers.leftovers(places, everything=True) if item.kind == "mount"]
        assert len(found) == len(mounts_of(site)) == 2 * len(("master", "worker1", "worker2", "workers", "cluster"))
        supplier.destroy(site.campaign)
        supplier.destroy(site.campaign)  # twice is fine
        assert mounts_of(site) == []
        shutil.rmtree(site.directory.parent)
        ready.cluster.close()
    finally:
        subprocess.run(["umount", "--lazy", str(places.state)], check=True)
