"""Layers are examined before they are unpacked: nothing of an image may lead out of it."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from builders.oci import CONFIG, LAYER, MANIFEST, configuration, directory, file, hard_link, layer, link, packed, sha256
from builders.oci import Layout as Builder
from vtax.errors import UsageError
from vtax.image.workload import layers
from vtax.image.workload.layers import Layout, climbs, examine

Member = tuple[tarfile.TarInfo, bytes]
GOOD = [directory("etc"), file("etc/hosts", b"1234"), hard_link("hosts", "etc/hosts"), link("h", "/etc/hosts")]


def examined(tmp_path: Path, *contents: bytes) -> int:
    paths = []
    for number, content in enumerate(contents):
        paths.append(tmp_path / f"{number}")
        paths[-1].write_bytes(content)
    return examine(Layout(tmp_path, tuple(paths), ()), "app")


def test_plain_and_packed_layers_count_their_files(tmp_path: Path) -> None:
    assert examined(tmp_path, layer(GOOD), gzip.compress(layer([file("a", b"x" * 100_000)]))) == 100_004


def with_attribute(name: str) -> Member:
    return file("a", pax_headers={f"SCHILY.xattr.{name}": "y"})


@pytest.mark.parametrize(
    ("member", "reason"),
    [
        (file("../etc/passwd"), "a path out of the image: '../etc/passwd'"),
        (file("a/../../b"), "a path out of the image: 'a/../../b'"),
        (file("/../b"), "a path out of the image: '/../b'"),
        (link("../b", "x"), "a path out of the image"),
        (directory("a/../.."), "a path out of the image"),
        (hard_link("shadow", "../../etc/shadow"), "a hard link out of the image: 'shadow' to '../../etc/shadow'"),
        (hard_link("shadow", "/../etc/shadow"), "a hard link out of the image"),
        (file("../\x1b[2J"), r"a path out of the image: '../\\x1b[2J'"),
        (with_attribute("trusted.overlay.opaque"), "the attribute trusted.overlay.opaque on 'a'"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_paths_out_of_the_image_are_refused(member: Member, reason: str, packed: bool, tmp_path: Path) -> None:
    content = layer([*GOOD, member])
    with pytest.raises(UsageError) as raised:
        examined(tmp_path, layer(GOOD), gzip.compress(content) if packed else content)
    assert raised.value.message.startswith(f"app: layer 2 of 2 has {reason}")


@pytest.mark.parametrize(
    "member",
    [file("./a"), file("/ko-app/app"), file("a/../b"), link("x", "/etc/x"), with_attribute("security.capability")],
)
def test_what_stays_inside_is_not_refused(member: Member, tmp_path: Path) -> None:
    assert examined(tmp_path, layer([member])) == 0


def test_a_truncated_layer(tmp_path: Path) -> None:
    content = layer([file("a", b"x" * 5000), file("b", b"y" * 5000)])
    for cut in (300, 3000, 8000):
        for damaged in (content[:cut], gzip.compress(content)[:40], gzip.compress(content[:cut])):
            with pytest.raises(UsageError, match="app: layer 1 of 1 is damaged"):
                examined(tmp_path, damaged)


def test_a_header_that_claims_gigabytes_is_not_read(tmp_path: Path) -> None:
    bomb = tarfile.TarInfo("pax")
    bomb.type, bomb.size = tarfile.XHDTYPE, 3 * 2**30
    with pytest.raises(UsageError, match="a header is larger than any that a layer needs"):
        examined(tmp_path, bomb.tobuf(tarfile.GNU_FORMAT) + bytes(10240))


def test_an_image_larger_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "IMAGE_BYTES", 100)
    with pytest.raises(UsageError, match="has more than 100 B or 2000000 files"):
        examined(tmp_path, layer([file("a", b"x" * 101)]))


def test_what_skopeo_copied_is_named_as_it_is(tmp_path: Path) -> None:
    """skopeo 1.9 calls layers packed that are not; layers packed with zstd are noticed."""
    one, two = layer([]), layer(GOOD)
    layout = Builder(tmp_path / "oci")
    named = layout.blob(packed(one), f"{LAYER}+gzip"), layout.blob(two, f"{LAYER}+gzip")
    manifest = {"config": layout.blob(configuration([one, two]), CONFIG), "layers": named}
    layout.add(layout.blob(json.dumps(manifest).encode(), MANIFEST), "image")
    assert not layers.has_zstd(layout.path)
    found = layers.read(layout.path)
    assert [path.name for path in found.layers] == [sha256(packed(one)), sha256(two)]
    assert found.contents == (f"sha256:{sha256(one)}", f"sha256:{sha256(two)}")
    entry = json.loads((layout.path / "index.json").read_bytes())["manifests"][0]
    written = (layout.path / "blobs/sha256" / entry["digest"].removeprefix("sha256:")).read_bytes()
    assert (f"sha256:{sha256(written)}", len(written)) == (entry["digest"], entry["size"])
    assert [one["mediaType"] for one in json.loads(written)["layers"]] == [f"{LAYER}+gzip", LAYER]
    found.layers[1].write_bytes(layers.ZSTD)
    assert layers.has_zstd(layout.path)


@pytest.mark.parametrize(
    ("path", "start", "out"),
    [
        ("a/b", "", False),
        ("..", "a", False),
        ("../..", "a", True),
        ("../../x", "a/b", False),
        ("../../../x", "a/b", True),
        ("x/../../../a/b", "a", True),  # also when it comes back in
        ("/etc", "a", False),
        ("/..", "a/b/c", True),
        ("./.././b", "./a", False),
    ],
)
def test_climbing(path: str, start: str, out: bool) -> None:
    assert climbs(path, start) is out


def test_the_builder_makes_archives(tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(layer(GOOD))) as archive:
        assert archive.getnames() == ["etc", "etc/hosts", "hosts", "h"]
