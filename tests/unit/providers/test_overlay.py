"""A study's own image on the nodes of this machine: what is mounted, where it cannot be, how it is found again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fakes.cluster import node_shape, result_of
from vtax.errors import CommandError, ProvisionError, UsageError
from vtax.model.cluster import Image, Workload
from vtax.model.nodes import ClusterShape
from vtax.model.study import EnvironmentSpec
from vtax.model.trial import CommandResult
from vtax.providers import overlay
from vtax.providers.base import UNKNOWN, Site
from vtax.providers.docker.provider import Docker
from vtax.providers.host import own_image
from vtax.providers.host.provider import Host, HostOptions
from vtax.providers.podman.provider import Podman
from vtax.providers.qemu.provider import Qemu
from vtax.providers.virtualbox.provider import VirtualBox
from vtax.transport import process

LABEL = "c1c1c1c1"
LAYERS = "lowerdir=lower,upperdir=layer/upper,workdir=layer/work,index=off,metacopy=off,redirect_dir=nofollow"
Answer = Callable[[tuple[str, ...]], int]
SHAPE = ClusterShape(nodes=(node_shape("master", (0,)), node_shape("worker1", (1,))))


@pytest.fixture
def image(tmp_path: Path) -> Workload:
    """An unpacked image."""
    place = tmp_path / "workloads" / ("5e" * 32)
    (place / "root").mkdir(parents=True)
    (place / "root").chmod(0o751)
    for name in overlay.FILES:
        (place / name).write_text(name)
    made = {"architecture": "amd64", "libc": "none", "size_bytes": 1}
    return Workload(source="oci:app", digest="5e" * 32, directory=str(place), **made)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], list[tuple[str, ...]]]]:
    """Commands are answered by a function, and collected."""

    def answered_by(answer: Answer) -> list[tuple[str, ...]]:
        seen: list[tuple[str, ...]] = []

        def run(argv: tuple[str, ...], **_: object) -> CommandResult:
            seen.append(tuple(argv))
            return result_of(argv, (answer(tuple(argv)), "", "wrong fs type"))

        monkeypatch.setattr(process, "run", run)
        return seen

    yield answered_by


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the mount table."""
    path = tmp_path / "mountinfo"
    monkeypatch.setattr(overlay, "TABLE", path)

    def write(text: str) -> None:
        path.write_text(text)

    return write


def mount(point: Path | str, source: str, kind: str = "overlay") -> str:
    return f"45 27 0:39 / {point} rw,nodev,relatime shared:7 - {kind} {source} rw,lowerdir=lower,uuid=on\n"


def test_the_mount_of_a_node() -> None:
    assert overlay.command(Path("/run/c,1:2/host/worker1"), LABEL, "host") == (
        *("env", "--chdir=/run/c,1:2/host/worker1", "mount", "-t", "overlay", "-o", f"nodev,{LAYERS}"),
        *("vtax-c1c1c1c1.host", "workload/root"),
    )


def test_what_a_node_gets(tmp_path: Path, image: Workload, runs: Callable[[Answer], list[tuple[str, ...]]]) -> None:
    seen = runs(lambda argv: 0)
    place = tmp_path / "site/worker1"
    overlay.make(place, LABEL, "host", image, "/data")
    assert seen == [overlay.command(place, LABEL, "host")]
    assert (place / "lower").readlink() == image.root
    assert (place / "layer/upper").stat().st_mode & 0o7777 == 0o751, "it is the image's root directory to a user in it"
    assert {path.name: path.read_text() for path in (place / "workload").iterdir() if path.is_file()} == {
        name: name for name in overlay.FILES
    }
    tree = place / "workload/root"
    assert {str(path.relative_to(tree)) for path in tree.rglob("*")} == {
        *("proc", "sys", "dev", "scratch", "data", "etc", "etc/hosts")
    }
    assert list(image.root.iterdir()) == []


def test_an_upper_layer_that_is_refused_is_in_memory(
    tmp_path: Path, image: Workload, runs: Callable[[Answer], list[tuple[str, ...]]]
) -> None:
    codes = iter((32, 0, 0))

    def answer(argv: tuple[str, ...]) -> int:
        for name in ("upper", "work") if "tmpfs" in argv else ():
            (place / "layer" / name).rmdir()  # an empty file system covers them
        return next(codes)

    place = tmp_path / "worker1"
    seen = runs(answer)
    overlay.make(place, LABEL, "docker", image, "/shared")
    wanted = overlay.command(place, LABEL, "docker")
    in_memory = ("mount", "-t", "tmpfs", "-o", "mode=0700", "vtax-c1c1c1c1.docker", str(place / "layer"))
    assert seen == [wanted, in_memory, wanted]


def test_a_machine_without_overlays(
    tmp_path: Path, image: Workload, runs: Callable[[Answer], list[tuple[str, ...]]]
) -> None:
    def answer(argv: tuple[str, ...]) -> int:
        for name in ("upper", "work") if "tmpfs" in argv else ():
            (tmp_path / "worker1/layer" / name).rmdir()
        return 0 if "tmpfs" in argv else 32

    runs(answer)
    with pytest.raises(ProvisionError, match="the image cannot be mounted for worker1") as raised:
        overlay.make(tmp_path / "worker1", LABEL, "host", image, "/shared")
    assert raised.value.detail == "wrong fs type"
    assert "modprobe overlay" in raised.value.remedy


@pytest.mark.parametrize("name", ["proc", "dev", "scratch", "data", "etc", "etc/hosts"])
def test_a_link_where_a_node_mounts_its_own(tmp_path: Path, image: Workload, name: str) -> None:
    """`mount` follows links, and from outside these lead to files of this machine."""
    at = image.root / name
    at.parent.mkdir(exist_ok=True)
    at.symlink_to("/etc")
    kind = "file" if name == "etc/hosts" else "directory"
    with pytest.raises(UsageError, match=f"/{name} in the image oci:app is not a {kind}"):
        overlay.make(tmp_path / "worker1", LABEL, "host", image, "/data")
    assert not (tmp_path / "worker1").exists()


def test_an_image_with_what_nodes_have_is_fit(image: Workload) -> None:
    for name in ("proc", "sys", "dev", "etc"):
        (image.root / name).mkdir()
    (image.root / "etc/hosts").touch()
    overlay.refuse_unfit(image, "/shared")


def test_what_is_mounted_inside_is_the_node_s() -> None:
    words = overlay.bind_inside(4711, "/data")
    assert words[:6] == ("nsenter", "--target=4711", "--mount", "--", "sh", "-ec")
    assert words[6] == 'for place; do mount --rbind "$place" "/workload/root$place"; done'
    assert words[7:] == ("sh", "/proc", "/sys", "/dev", "/scratch", "/data", "/etc/hosts")


def test_mounts_are_found_by_their_label(tmp_path: Path, table: Callable[[str], None]) -> None:
    runtime, other = tmp_path / "run", tmp_path / "other/run"
    mine = runtime / LABEL / "host a/worker1/workload/root"
    escaped = str(mine).replace(" ", r"\040")
    theirs = other / "d2d2d2d2/host/worker1/workload/root"
    table(
        mount(escaped, f"vtax-{LABEL}.host")
        + mount(theirs, "vtax-d2d2d2d2.host")
        + mount("/mnt", "vtax-anything.host")
        + mount(runtime / LABEL / "docker/worker1/layer", f"vtax-{LABEL}.docker", "tmpfs")
        + mount("/", "overlay")
        + mount("/data", "/dev/vda", "ext4")
    )
    found = {item.name: item for item in overlay.leftovers("host", runtime)}
    assert set(found) == {str(mine), str(theirs), "/mnt"}
    assert (found[str(mine)].kind, found[str(mine)].campaign, found[str(mine)].elsewhere) == ("mount", LABEL, "")
    assert found[str(theirs)].elsewhere == str(other)
    assert found["/mnt"].elsewhere == UNKNOWN
    assert [item.name for item in overlay.leftovers("docker", runtime)] == [f"{runtime}/{LABEL}/docker/worker1/layer"]


def test_what_was_mounted_last_is_unmounted_first(
    tmp_path: Path, table: Callable[[str], None], runs: Callable[[Answer], list[tuple[str, ...]]]
) -> None:
    place = tmp_path / "run" / LABEL / "host/worker1"
    table(
        mount(place / "layer", f"vtax-{LABEL}.host", "tmpfs")
        + mount(place / "workload/root", f"vtax-{LABEL}.host")
        + mount(tmp_path / "other/run" / LABEL / "host/worker1/workload/root", f"vtax-{LABEL}.host")
        + mount(tmp_path / "run/d2d2d2d2/host/worker1/workload/root", "vtax-d2d2d2d2.host")
    )
    seen = runs(lambda argv: 0)
    overlay.remove(tmp_path / "run", LABEL)
    assert seen == [
        ("umount", "--lazy", "--", str(place / "workload/root")),
        ("umount", "--lazy", "--", str(place / "layer")),
    ]


def test_a_mount_that_stays_is_an_error(
    tmp_path: Path, table: Callable[[str], None], runs: Callable[[Answer], list[tuple[str, ...]]]
) -> None:
    place = tmp_path / "run" / LABEL / "host/worker1/workload/root"
    table(mount(place, f"vtax-{LABEL}.host"))
    runs(lambda argv: 32)
    with pytest.raises(CommandError, match="umount"):
        overlay.remove(tmp_path / "run", LABEL)

    def gone_meanwhile(argv: tuple[str, ...]) -> int:
        table("")
        return 32

    runs(gone_meanwhile)
    overlay.remove(tmp_path / "run", LABEL)
    overlay.remove(tmp_path / "run", LABEL)


def test_where_nodes_write_is_a_fact(tmp_path: Path, image: Workload, table: Callable[[str], None]) -> None:
    root = Image(recipe="key", digest="0" * 64, directory="/rootfs", archive="/rootfs.tar")
    site = Site(LABEL, tmp_path / "run", root.model_copy(update={"workload": image}), tmp_path / "keys")
    in_memory = mount(tmp_path / "run/worker2/layer", f"vtax-{LABEL}.host", "tmpfs")
    table(mount("/", "/dev/vda", "ext4") + in_memory)
    names = ["worker1", "worker2"]
    assert overlay.facts(site, names) == {"worker1": {"workload_layer": "ext4"}, "worker2": {"workload_layer": "tmpfs"}}
    assert overlay.facts(Site(LABEL, tmp_path, root, tmp_path), names) == {}


# --- who can have it -------------------------------------------------------------------------------------------------


def spec(**options: object) -> EnvironmentSpec:
    return EnvironmentSpec.model_validate({"name": "box", "provider": "any", "options": options})


@pytest.mark.parametrize("kind", [Docker, Podman])
def test_mounting_on_this_machine_needs_root(
    kind: type[Docker | Podman], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (problem,) = kind(tmp_path).workload_problems(spec())
    assert "needs root" in problem.message
    assert problem.remedy.startswith("run vtax as root")
    assert Qemu(tmp_path).workload_problems(spec()) == ()


def test_the_host_of_an_ordinary_user_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    asked: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], **_: object) -> CommandResult:
        asked.append(argv)
        return result_of(argv, (code, "", "mount: /tmp/root: permission denied.\nmore\n"))

    monkeypatch.setattr(process, "run", run)
    code = 0
    assert Host(tmp_path).workload_problems(spec()) == ()
    assert asked[0][:5] == ("unshare", "--user", "--map-root-user", "--map-auto", "--mount")
    assert asked[0][-1] == f"userxattr,nodev,{LAYERS}"
    code = 32
    (problem,) = Host(tmp_path).workload_problems(spec())
    assert problem.message.endswith("(Linux 5.11 or later is required): mount: /tmp/root: permission denied.")
    assert problem.remedy.startswith("run vtax as root")


@pytest.fixture
def held(tmp_path: Path, image: Workload, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site of an ordinary user's cluster with an image."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    root = Image(recipe="key", digest="0" * 64, directory="/cache/key/rootfs", archive="/a", workload=image)
    (tmp_path / "site").mkdir()
    return Site(LABEL, tmp_path / "site", root, tmp_path / "keys")


def test_what_holds_the_mounts_of_an_ordinary_user(held: Site) -> None:
    """It is found by the same words as all processes in host environments: label, root, directory of the cluster."""
    (line,) = own_image.commands(held, "host", ["master", "worker1"], "/data")
    namespaces = ("--user", "--map-root-user", "--map-auto", "--mount", "--propagation", "private")
    assert line[:12] == ("setsid", "--fork", "unshare", *namespaces, "sh", "-ec", own_image.SCRIPT)
    known = ("/cache/key/vtax-enter", f"vtax.campaign={LABEL}", "/cache/key/rootfs", str(held.directory))
    assert line[12:] == (*known, f"userxattr,nodev,{LAYERS}", "/data", "master", "worker1")
    assert own_image.entered(4711)[-1] == "--target=4711"
    assert own_image.entered(None)[-1] == "--target=PID"


@pytest.mark.parametrize(("said", "there"), [("mounted\n", True), ("mount: permission denied\n", False)])
def test_the_mounts_of_an_ordinary_user(held: Site, monkeypatch: pytest.MonkeyPatch, said: str, there: bool) -> None:
    image = held.image.workload
    assert image is not None

    def run(argv: tuple[str, ...], *, stdout: Path, **_: object) -> CommandResult:
        stdout.write_text(said)
        return result_of(argv, (0, "", ""))

    monkeypatch.setattr(process, "run", run)
    holder = (lambda site: 4711) if there else (lambda site: None)
    if there:
        own_image.make(held, image, "host", ["master", "worker1"], "/data", holder)
    else:
        with pytest.raises(ProvisionError, match="the image cannot be mounted for master") as raised:
            own_image.make(held, image, "host", ["master", "worker1"], "/data", holder)
        assert (raised.value.message[-6:], raised.value.detail) == ("master", "mount: permission denied")
    assert (held.directory / "hold").is_fifo()
    assert (held.directory / "worker1/lower").readlink() == image.root
    assert (held.directory / "worker1/layer/upper").is_dir()


def test_files_of_other_users_are_removed_by_root_of_the_namespaces(
    held: Site, runs: Callable[[Answer], list[tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = runs(lambda argv: 0)
    own_image.remove_files(held.directory, LABEL)
    for name in ("master", "worker1"):
        (held.directory / LABEL / "host" / name / "layer").mkdir(parents=True)
    own_image.remove_files(held.directory, LABEL)
    top = held.directory / LABEL / "host"
    namespaces = ("unshare", "--user", "--map-root-user", "--map-auto")
    assert seen == [(*namespaces, "rm", "-rf", "--", f"{top}/master", f"{top}/worker1", f"{top}/shared")]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    own_image.remove_files(held.directory, LABEL)
    assert len(seen) == 1


def test_an_engine_that_hides_mounts_or_renames_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: Callable[[Answer], list[tuple[str, ...]]]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    runs(lambda argv: 0)
    assert Docker(tmp_path).workload_problems(spec()) == ()
    assert Docker(tmp_path).workload_problems(spec(runtime="crun")) == ()
    (problem,) = Docker(tmp_path).workload_problems(spec(runtime="runsc"))
    assert "docker cannot show an image of the study's own to nodes under runsc" in problem.message
    monkeypatch.setattr(process, "run", lambda argv, **_: result_of(argv, (0, '["name=seccomp","name=userns"]', "")))
    (problem,) = Docker(tmp_path).workload_problems(spec())
    assert "its daemon maps users to others (it runs with userns)" in problem.message


def test_a_provider_that_does_not_know_of_it_refuses_by_name(tmp_path: Path) -> None:
    (problem,) = VirtualBox(tmp_path).workload_problems(spec())
    assert problem.message == "nodes of provider 'virtualbox' cannot have an image of the study's own"


def test_the_plan_of_the_host_shows_the_mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    options = HostOptions(network="bridge").model_dump(mode="json")
    commands = Host(tmp_path).commands(spec(**options), SHAPE, "/shared", "cloud", workload=True)
    mounts = [line for line in commands if "overlay" in line]
    assert mounts == [overlay.command(Path("CAMPAIGN") / name, "CAMPAIGN", "host") for name in ("master", "worker1")]
