"""A study's own image, unpacked by the real skopeo and umoci; and packages, installed by the real apt."""

from __future__ import annotations

import http.server
import os
import shutil
import ssl
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders import oci
from builders.oci import Layout, configuration, directory, docker_archive, file, hard_link, layer, link, sha256
from vtax.errors import EnvironmentMissing, ImageError, UsageError, VtaxError
from vtax.events import ignore
from vtax.image import build, derived, recipe
from vtax.image.workload import cache as workloads
from vtax.image.workload import layers
from vtax.model.cluster import Image, Workload
from vtax.model.study import ImageSpec, WorkloadSpec
from vtax.transport import process

pytestmark = pytest.mark.integration

CAPABILITY = bytes.fromhex("0100000200200000000000000000000000000000")  # cap_net_raw=ep, as getcap shows it
LOWER = layer(
    [
        directory("./"),
        directory("etc"),
        file("etc/passwd", b"root:x:0:0::/:/bin/sh\napp:x:1234:1234::/:/bin/sh\n"),
        directory("bin"),
        file("bin/app", b"#!/bin/sh\n", mode=0o4755),
        file(
            "bin/raw", b"x", mode=0o755, pax_headers={"SCHILY.xattr.security.capability": CAPABILITY.decode("latin-1")}
        ),
        hard_link("bin/app2", "bin/app"),
        file("secret", b"s", mode=0o600, uid=1234, gid=4321),
        directory("gone"),
        file("gone/a", b"1"),
        directory("opaque"),
        file("opaque/old", b"1"),
        file("removed", b"1"),
        link("lib", "/usr/lib"),
        directory("tmp", mode=0o1777),
    ]
)
UPPER = layer(
    [
        file(".wh.removed"),
        file(".wh.gone"),
        directory("opaque"),
        file("opaque/.wh..wh..opq"),
        file("opaque/new", b"2"),
        directory("usr"),
        directory("usr/lib"),
        file("lib/through", b"3"),  # through the link of the layer below, which is absolute
    ]
)
CONFIG = configuration([LOWER, UPPER], Entrypoint=["/bin/app"], Cmd=["a", ""], User="app", WorkingDir="/srv/app")


def ensure(source: str, base: Path) -> Workload:
    return workloads.ensure(base / "cache", WorkloadSpec(source=source, base=str(base)), ignore)


def remains(base: Path) -> list[str]:
    """What the cache has but locks."""
    place = base / "cache"
    return [one.name for one in place.iterdir() if not one.name.endswith(".lock")] if place.exists() else []


def refused(kind: type[VtaxError], source: str, base: Path) -> str:
    """The message for an image that is refused; nothing of it may be left."""
    with pytest.raises(kind) as raised:
        ensure(source, base)
    assert remains(base) == []
    return str(raised.value)


def check(own: Workload) -> None:
    """Everything of the two layers is in the tree as they say."""
    root = own.root
    assert stat.S_IMODE((root / "bin/app").stat().st_mode) == 0o4755
    assert (root / "bin/app2").stat().st_ino == (root / "bin/app").stat().st_ino
    secret = (root / "secret").stat()
    assert (secret.st_uid, secret.st_gid, stat.S_IMODE(secret.st_mode)) == (1234, 4321, 0o600)
    assert os.getxattr(root / "bin/raw", "security.capability") == CAPABILITY
    assert sorted(path.name for path in (root / "opaque").iterdir()) == ["new"]
    assert not (root / "gone").exists()
    assert not (root / "removed").exists()
    assert (root / "usr/lib/through").read_bytes() == b"3"
    assert not Path("/usr/lib/through").exists()
    assert stat.S_IMODE((root / "tmp").stat().st_mode) == 0o1777
    assert not list(root.rglob(".wh.*"))
    for name in ("dev", "proc", "scratch", "shared", "sys", "srv/app"):
        assert (root / name).is_dir()


def test_an_image_is_unpacked_once_with_all_that_its_layers_say(tmp_path: Path) -> None:
    docker_archive(
        tmp_path / "all.tar", {"app:1": (CONFIG, [LOWER, UPPER]), "other:1": (configuration([LOWER]), [LOWER])}
    )
    own = ensure("docker-archive:all.tar:app:1", tmp_path)
    check(own)
    assert (own.digest, own.libc, own.layers) == (sha256(CONFIG), "none", 2)
    assert (Path(own.directory) / "entry").read_bytes() == b"/bin/app\0a\0\0"
    assert (Path(own.directory) / "config").read_bytes().startswith(b"--directory\0/srv/app\0--user\0app\0--set\0PATH=")
    assert own.unpacked_by.startswith("skopeo ")
    assert stat.S_IMODE((tmp_path / "cache").stat().st_mode) == 0o700
    before = (own.root / "bin").stat().st_mtime_ns
    (tmp_path / "all.tar").rename(tmp_path / "moved.tar")
    again = ensure("docker-archive:moved.tar:app:1", tmp_path)
    assert again.directory == own.directory
    assert (again.root / "bin").stat().st_mtime_ns == before
    workloads.remove(tmp_path / "cache", own.digest)
    assert remains(tmp_path) == []


def test_what_docker_saves(tmp_path: Path) -> None:
    (tmp_path / "layer.tar").write_bytes(LOWER)
    name = f"vtax-test-own-{os.getpid()}:1"
    made = (
        "docker",
        "import",
        "--change",
        'CMD ["/bin/app"]',
        "--change",
        "ENV A=1",
        str(tmp_path / "layer.tar"),
        name,
    )
    process.run(made, timeout_s=60, check=True)
    try:
        inspected = process.run(("docker", "image", "inspect", "--format", "{{.Id}}", name), timeout_s=30, check=True)
        process.run(("docker", "save", "-o", str(tmp_path / "app.tar"), name), timeout_s=60, check=True)
    finally:
        process.run(("docker", "image", "rm", name), timeout_s=60, check=True)
    own = ensure(f"docker-archive:app.tar:{name}", tmp_path)
    assert f"sha256:{own.digest}" == inspected.stdout.strip(), "the id that Docker shows"
    assert (own.entry, own.variables) == (("/bin/app",), ("PATH", "A"))
    assert (own.root / "secret").stat().st_uid == 1234


@pytest.mark.parametrize("form", ["oci", "oci-archive"])
@pytest.mark.parametrize("packed", [True, False])
def test_oci_layouts(form: str, packed: bool, tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    layout.add(layout.image(CONFIG, [LOWER, UPPER], pack=packed), "1.0")
    if form == "oci-archive":
        with tarfile.open(tmp_path / "app.tar", "w") as archive:
            archive.add(tmp_path / "app", ".")
    check(ensure("oci:app:1.0" if form == "oci" else "oci-archive:app.tar", tmp_path))


def test_layers_packed_by_zstd(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    layout.add(layout.image(CONFIG, [LOWER, UPPER]), "1")
    copy = (
        "skopeo",
        "copy",
        "--quiet",
        "--dest-compress-format=zstd",
        f"oci:{tmp_path}/app:1",
        f"oci:{tmp_path}/zstd:1",
    )
    process.run(copy, timeout_s=60, check=True)
    assert layers.has_zstd(tmp_path / "zstd")
    check(ensure("oci:zstd", tmp_path))


HOSTILE = {
    "a name": [file("../../../../escaped", b"x")],
    "a hard link": [hard_link("shadow", "../../../../../etc/shadow")],
    "a link": [directory("a"), link("a/b", "../../etc")],
    "a link where nodes mount": [link("proc", "/etc")],
    "an attribute": [file("a", pax_headers={"SCHILY.xattr.trusted.overlay.redirect": "/etc"})],
}


@pytest.mark.parametrize("members", HOSTILE.values(), ids=HOSTILE)
def test_images_that_lead_out_of_themselves_are_refused(
    members: list[tuple[tarfile.TarInfo, bytes]], tmp_path: Path
) -> None:
    bad = layer([directory("etc"), *members])
    docker_archive(tmp_path / "bad.tar", {"bad:1": (configuration([bad]), [bad])})
    message = refused(UsageError, "docker-archive:bad.tar", tmp_path)
    assert "out of the image" in message or "is not a directory" in message or "the attribute" in message
    assert not list(tmp_path.rglob("escaped"))


def test_writing_through_a_link_stays_in_the_image(tmp_path: Path) -> None:
    """`etc` of the image is a link to a directory of this machine; the next layer writes through it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    first, second = layer([link("here", str(outside))]), layer([file("here/written", b"x")])
    docker_archive(tmp_path / "bad.tar", {"bad:1": (configuration([first, second]), [first, second])})
    own = ensure("docker-archive:bad.tar", tmp_path)
    assert list(outside.iterdir()) == []
    assert (own.root / str(outside).lstrip("/") / "written").read_bytes() == b"x"


def test_damaged_layers_and_archives(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    layout.add(layout.image(CONFIG, [LOWER, UPPER]))
    blob = tmp_path / "app/blobs/sha256" / sha256(oci.packed(LOWER))
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-30] + bytes(30))
    assert "oci:app cannot be copied" in refused(UsageError, "oci:app", tmp_path)
    blob.unlink()
    assert "oci:app cannot be copied" in refused(UsageError, "oci:app", tmp_path)
    other = configuration([UPPER, LOWER])  # names other layers than the archive has
    docker_archive(tmp_path / "app.tar", {"app:1": (other, [LOWER, UPPER])})
    refused(UsageError, "docker-archive:app.tar", tmp_path)
    big = layer([file("a", os.urandom(200_000))])
    content = docker_archive(tmp_path / "big.tar", {"a:1": (configuration([big]), [big])}).read_bytes()
    (tmp_path / "cut.tar").write_bytes(content[:100_000])
    assert "cannot be read as an image" in refused(UsageError, "docker-archive:cut.tar", tmp_path)


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    big = layer([file("a", bytes(30_000_000))])
    docker_archive(tmp_path / "big.tar", {"a:1": (configuration([big]), [big])})
    small = tmp_path / "cache"
    small.mkdir()
    process.run(("mount", "-t", "tmpfs", "-o", "size=80m", "small", str(small)), timeout_s=10, check=True)
    try:
        assert "has 80 MiB free; the image needs 92" in refused(ImageError, "docker-archive:big.tar", tmp_path)
        with pytest.MonkeyPatch.context() as patch:  # what the check before does not foresee
            patch.setattr(workloads, "SPARE_BYTES", -(2**40))
            process.run(("mount", "-o", "remount,size=20m", str(small)), timeout_s=10, check=True)
            assert "no space left on device" in refused(ImageError, "docker-archive:big.tar", tmp_path)
            process.run(("mount", "-o", "remount,size=45m", str(small)), timeout_s=10, check=True)
            assert "cannot be unpacked" in refused(ImageError, "docker-archive:big.tar", tmp_path)
    finally:
        process.run(("umount", str(small)), timeout_s=10, check=True)


def test_programs_that_are_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docker_archive(tmp_path / "app.tar", {"app:1": (CONFIG, [LOWER, UPPER])})
    monkeypatch.setattr(process, "installed", lambda name: name != "umoci")
    message = refused(EnvironmentMissing, "docker-archive:app.tar", tmp_path)
    assert message.splitlines() == [
        "an own image needs umoci, which is not installed",
        "  next: as root: apt-get install umoci",
    ]


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, Layout], str]]:
    """A registry on loopback with TLS; the function that comes out puts an image under a tag. Returns its address."""
    key = tmp_path / "key.pem"
    command = (
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-keyout", str(key), "-out", str(tmp_path / "ca.pem"), "-subj", "/CN=localhost", "-days", "2"),
        *("-addext", "subjectAltName=DNS:localhost"),
    )
    process.run(command, timeout_s=30, check=True)
    tags: dict[str, bytes] = {}
    blobs: dict[str, bytes] = {}

    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, kind, name = self.path.rpartition("/v2/app/")[2].rpartition("/")[0], *self.path.split("/")[-2:]
            content = (
                b"{}" if self.path == "/v2/" else (tags if kind == "manifests" else {}).get(name) or blobs.get(name)
            )
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.pem", key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

    def push(tag: str, layout: Layout) -> str:
        blobs.update({f"sha256:{one.name}": one.read_bytes() for one in (layout.path / "blobs/sha256").iterdir()})
        tags[tag] = blobs[layout.entries[-1]["digest"]]
        return f"docker://localhost:{server.server_port}/app"

    yield push
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_tag_of_a_registry_is_resolved_once(registry: Callable[[str, Layout], str], tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    layout.add(layout.image(CONFIG, [LOWER, UPPER]))
    address = registry("1", layout)
    spec = workloads.frozen(tmp_path / "cache", WorkloadSpec(source=f"{address}:1"))
    assert (spec.source, spec.digest) == (f"{address}@{layout.entries[0]['digest']}", sha256(CONFIG))
    layout.add(layout.image(configuration([LOWER]), [LOWER]))
    registry("1", layout)  # the tag moves, the campaign's image does not
    own = workloads.ensure(tmp_path / "cache", spec, ignore)
    check(own)
    assert own.source == spec.source
    message = refused_by_registry(f"{address}:2", tmp_path)
    assert message.startswith(f"{address}:2 cannot be fetched\n")
    assert workloads.cached(tmp_path / "cache", WorkloadSpec(source=spec.source)) == own  # without asking


def refused_by_registry(source: str, base: Path) -> str:
    with pytest.raises(EnvironmentMissing) as raised:
        workloads.frozen(base / "cache", WorkloadSpec(source=source))
    return str(raised.value)


def test_a_registry_with_an_unknown_certificate(
    registry: Callable[[str, Layout], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(tmp_path / "app")
    layout.add(layout.image(CONFIG, [LOWER, UPPER]))
    address = registry("1", layout)
    monkeypatch.delenv("SSL_CERT_FILE")
    assert "x509" in refused_by_registry(f"{address}:1", tmp_path)


def test_packages_are_added_to_a_copy_of_the_root_file_system(cache: Path, image: Image) -> None:
    """A small package; the root file system that it starts from stays as it is."""
    made = recipe.recipe(ImageSpec(), build.find_machine_mirror())
    images = cache / "vtax/images"
    name = derived.key(made, ("netcat-openbsd",))
    if (images / name).exists():
        build.remove(images, name)
    listing = {path.name for path in images.iterdir()}
    for ask in (derived.check, derived.ensure):  # before anything is copied, and where that was not asked
        with pytest.raises(UsageError) as raised:
            ask(images, made, ("netcat-openbsd", "no-such-package"), ignore)
        assert raised.value.message.startswith("the package no-such-package does not exist")
    derived.check(images, made, ("netcat-openbsd",), ignore)
    assert {path.name for path in images.iterdir() if not path.name.endswith(".lock")} <= listing
    more = derived.ensure(images, made, ("netcat-openbsd",), ignore)
    try:
        tree = Path(more.directory)
        assert (tree / "usr/bin/nc.openbsd").exists()
        assert not (Path(image.directory) / "usr/bin/nc.openbsd").exists()
        assert "netcat-openbsd" in more.versions.keys() - image.versions.keys()
        assert more.enter_digest == image.enter_digest == build.sha256(Path(more.enter))
        assert Path(more.kernel).exists()
        assert not list((tree / "var/lib/apt/lists").glob("*_dists_*"))
        assert not (tree / "usr/sbin/policy-rc.d").exists()
        assert list((tree / "dev").iterdir()) == []
        with tarfile.open(more.archive) as archive:
            names = archive.getnames()
        assert "./usr/bin/nc.openbsd" in names
        assert not [one for one in names if one.startswith(("./boot", "./usr/lib/modules"))]
    finally:
        shutil.rmtree(images / name)
        (images / f"{name}.lock").unlink()
