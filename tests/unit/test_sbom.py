"""The software bill of materials: what is read from a tree, and the CycloneDX text that is made of it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import OutputFormat
from cyclonedx.validation import make_schemabased_validator

from vtax.errors import ImageError, UsageError
from vtax.image import build
from vtax.image.inventory import File, Package, inventory
from vtax.image.recipe import Recipe, recipe
from vtax.image.sbom import FORMATS, SPECIFICATION, sbom
from vtax.model.cluster import Image
from vtax.model.study import ImageSpec

STATUS = """\
Package: zlib1g
Status: install ok installed
Maintainer: Mark Brown <broonie@debian.org>
Architecture: amd64
Source: zlib (1:1.3.dfsg+really1.3.1-1)
Version: 1:1.3.dfsg+really1.3.1-1+b1
Description: compression library - runtime
 zlib is a library.
 .
 Version: not a field

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: hpcc
Status: install ok installed
Architecture: amd64
Version: 1.5.0-4+b1

Package: prose
Status: install ok installed
Maintainer: A & B <ab@debian.org>
Architecture: all
Version: 2.0

Package: linked
Status: install ok installed
Architecture: all
Source: prose
Version: 2.1
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: zlib
License: Zlib

Files: *
Copyright: 1995-2022 Jean-loup Gailly and Mark Adler
License: Zlib

Files: contrib/amd64/*
License: BSD-3-clause

Files: contrib/x/*
License: GPL-2+
 with a text
 License: this is a line of the text

Files: contrib/y/*
License: a\x1b[2Jb

License: Expat
 a text that no file has
"""
WRITTEN = 1793491200  # 2026-11-01
SOURCE = "5" * 64


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The least that a root file system has."""
    place = tmp_path / "images" / "key" / "rootfs"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "copyright").write_text(COPYRIGHT.replace("Zlib", "Outside"))
    texts = {
        "etc/os-release": 'NAME="Debian GNU/Linux"\nID=debian\nVERSION_CODENAME=trixie\n',
        "var/lib/dpkg/status": STATUS,
        "usr/share/doc/zlib1g/copyright": COPYRIGHT,
        "usr/share/doc/prose/copyright": "It is free software.\n\nLicense: none of this is a field\n",
        "usr/local/bin/xhpl": "compiled from hpcc",
        "usr/local/bin/vtax-rank": "compiled from vtax's own file",
        "usr/local/lib/vtax/sources": f"{SOURCE}  hpcc_1.5.0.orig.tar.gz  stream xhpl\n",
        "usr/local/lib/vtax/packages": "zlib1g 1:1.3.dfsg+really1.3.1-1+b1\n",
    }
    for name, text in texts.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / "usr/share/doc/linked").symlink_to("zlib1g")
    (place / "usr/share/doc/hpcc").symlink_to(outside)
    os.utime(place / "usr/local/lib/vtax/packages", (WRITTEN, WRITTEN))
    return place


@pytest.fixture
def made() -> Recipe:
    return recipe(ImageSpec(snapshot="2026-11-01"), "")


@pytest.fixture
def image(tree: Path) -> Image:
    return Image(recipe="key", digest="d" * 64, directory=str(tree), archive=str(tree.with_name("rootfs.tar")))


def test_what_is_in_a_tree(tree: Path) -> None:
    found = inventory(tree)
    version = "1:1.3.dfsg+really1.3.1-1"
    assert found.packages == (
        Package("hpcc", "1.5.0-4+b1", "amd64", "hpcc", "1.5.0-4+b1", "", ()),  # a link out of the tree
        Package("linked", "2.1", "all", "prose", "2.1", "", ("BSD-3-clause", "GPL-2+", "Zlib")),
        Package("prose", "2.0", "all", "prose", "2.0", "A & B", ()),
        Package("zlib1g", f"{version}+b1", "amd64", "zlib", version, "Mark Brown", ("BSD-3-clause", "GPL-2+", "Zlib")),
    )
    own, compiled = (
        hashlib.sha256(f"compiled from {what}".encode()).hexdigest() for what in ("vtax's own file", "hpcc")
    )
    assert found.programs == (File("vtax-rank", own), File("xhpl", compiled, "hpcc_1.5.0.orig.tar.gz"))
    assert found.sources == (File("hpcc_1.5.0.orig.tar.gz", SOURCE),)
    assert found.written == datetime(2026, 11, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", ["var/lib/dpkg/status", "etc/os-release", "usr/local/lib/vtax/sources"])
@pytest.mark.parametrize("empty", [True, False])
def test_a_tree_of_another_kind_is_an_error(tree: Path, name: str, empty: bool) -> None:
    if empty:
        (tree / name).write_text("")
    else:
        (tree / name).unlink()
    with pytest.raises(ImageError, match="is not a root file system that this version of vtax built"):
        inventory(tree)


@pytest.mark.parametrize("format", list(FORMATS))
def test_the_text_is_valid_and_the_same_every_time(image: Image, made: Recipe, format: str) -> None:
    text = sbom(image, made, format)
    assert make_schemabased_validator(FORMATS[format], SPECIFICATION).validate_str(text) is None
    assert sbom(image, made, format) == text


def test_the_validator_notices(image: Image, made: Recipe) -> None:
    broken = sbom(image, made, "json").replace('"SHA-256"', '"SHA-257"')
    assert make_schemabased_validator(OutputFormat.JSON, SPECIFICATION).validate_str(broken) is not None


def test_every_part_is_named_with_its_version_and_hash(image: Image, made: Recipe) -> None:
    bom: Any = json.loads(sbom(image, made, "json"))
    assert bom["metadata"]["timestamp"] == "2026-11-01T00:00:00+00:00"
    root = bom["metadata"]["component"]
    assert (root["version"], root["hashes"][0]) == (f"sha256:{'d' * 64}", {"alg": "SHA-256", "content": "d" * 64})
    assert {one["name"]: one["value"] for one in root["properties"]} == {
        "vtax:recipe": "key",
        "vtax:snapshot": "20261101T000000Z",
        "vtax:suite": "trixie",
    }
    parts = {one["name"]: one for one in bom["components"]}
    assert sorted(parts) == [
        *("/usr/local/bin/vtax-rank", "/usr/local/bin/xhpl", "hpcc", "hpcc_1.5.0.orig.tar.gz"),
        *("linked", "prose", "zlib1g"),
    ]
    zlib = parts["zlib1g"]
    assert zlib["purl"] == "pkg:deb/debian/zlib1g@1:1.3.dfsg%2Breally1.3.1-1%2Bb1?arch=amd64&distro=trixie"
    assert [one["license"].get("id") or one["license"]["name"] for one in zlib["licenses"]] == [
        *("BSD-3-Clause", "Zlib"),  # of SPDX
        "GPL-2+",  # Debian's name
    ]
    assert {one["name"]: one["value"] for one in zlib["properties"]} == {
        "vtax:source": "zlib",
        "vtax:source-version": "1:1.3.dfsg+really1.3.1-1",
    }
    source = parts["hpcc_1.5.0.orig.tar.gz"]
    assert (source["version"], source["hashes"][0]["content"]) == ("1.5.0", SOURCE)
    edges = {one["ref"]: one.get("dependsOn", []) for one in bom["dependencies"]}
    assert edges["/usr/local/bin/xhpl"] == [source["bom-ref"]]
    assert edges["/usr/local/bin/vtax-rank"] == []
    assert sorted(edges["root-file-system"]) == sorted(one["bom-ref"] for one in bom["components"])


def test_the_serial_number_is_of_the_digest(image: Image, made: Recipe) -> None:
    def serial(one: Image) -> str:
        number: str = json.loads(sbom(one, made, "json"))["serialNumber"]
        return number

    assert serial(image) == serial(image.model_copy(update={"recipe": "other"}))
    assert serial(image) != serial(image.model_copy(update={"digest": "e" * 64}))


Run = Callable[..., tuple[int, str, str]]


def test_an_image_that_is_not_built_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vtax.cli.image import sbom as command

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UsageError, match="is not built") as caught:
        command(None, "json", None)
    assert caught.value.exit_code == 2
    assert "`vtax image build`" in caught.value.remedy
    with pytest.raises(UsageError, match="no format 'spdx'") as other:
        command(None, "spdx", None)
    assert other.value.remedy == "choose one of json, xml"


def test_the_command_writes_the_text(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from vtax.cli.image import sbom as command

    monkeypatch.setattr(build, "cached", lambda *_: image)
    expected = sbom(image, recipe(ImageSpec(), build.find_machine_mirror()), "xml")
    command(None, "xml", tmp_path / "bom.xml")
    assert (tmp_path / "bom.xml").read_text() == expected
    command(None, "xml", None)
    assert capsys.readouterr().out == expected
