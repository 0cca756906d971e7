"""Archives and standard input: read like folders, within limits, and never a path out."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest

from builders.logs import LOGS, SYSBENCH, faster, imported, text_of
from vtax import pipeline
from vtax.importing import archives
from vtax.importing.campaign import import_logs
from vtax.importing.report import Report
from vtax.importing.request import Request

PING = text_of(LOGS["ping"]).encode()


def tar(members: dict[str, bytes], mode: str = "w:gz", links: dict[str, str] | None = None) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in members.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
        for name, to in (links or {}).items():
            about = tarfile.TarInfo(name)
            about.type, about.linkname = tarfile.SYMTYPE, to
            archive.addfile(about)
    return target.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def named(value: object) -> str:
    """A parameter's part of a test's name: never the bytes of an archive, which contain the time."""
    return value.replace(" ", "-") if isinstance(value, str) else "content"


def reasons(report: Report) -> dict[str, str]:
    return {file.file: file.reason for file in report.files if file.reason}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("logs.tar.gz", tar({"vm/a.txt": PING, "vm/b.txt": SYSBENCH.encode()})),
        ("logs.tar", tar({"vm/a.txt": PING, "vm/b.txt": SYSBENCH.encode()}, "w")),
        ("logs.tar.xz", tar({"vm/a.txt": PING, "vm/b.txt": SYSBENCH.encode()}, "w:xz")),
        ("logs.zip", zipped({"vm/a.txt": PING, "vm/b.txt": SYSBENCH.encode()})),
    ],
    ids=named,
)
def test_members_are_files(tmp_path: Path, name: str, content: bytes) -> None:
    report = imported(tmp_path, {name: content}, environment="", layout="**/{environment}/*")
    assert [(file.file, file.environment, file.taken) for file in report.files] == [
        (f"{name}/vm/a.txt", "vm", 5),
        (f"{name}/vm/b.txt", "vm", 6),
    ]
    found, _ = pipeline.measurements(tmp_path / "campaign")
    assert len(found) == 11
    assert {path.name for path in (tmp_path / "campaign").iterdir()} >= {"raw", "trials", "plan.json"}
    assert not (tmp_path / "campaign" / ".import").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.txt.gz", gzip.compress(PING)), ("a.txt.xz", lzma.compress(PING)), ("a.txt.bz2", bz2.compress(PING))],
    ids=named,
)
def test_one_file_that_is_compressed(tmp_path: Path, name: str, content: bytes) -> None:
    report = imported(tmp_path, {name: content})
    assert [(file.file, file.taken) for file in report.files] == [(f"{name}/a.txt", 5)]


def test_no_name_leads_out(tmp_path: Path) -> None:
    bad = {"../out.txt": PING, "/abs.txt": PING, "x/../../y.txt": PING, "good.txt": SYSBENCH.encode()}
    report = imported(tmp_path, {"a.tar.gz": tar(bad, links={"link": "/etc/passwd"}), "b.zip": zipped(bad)})
    out = "its name leads out of the archive"
    found = reasons(report)
    assert sum(reason == out for reason in found.values()) == 6
    assert found["a.tar.gz/link"] == "a link in an archive, which is not followed"
    assert {path.name for path in tmp_path.iterdir()} == {"logs", "campaign"}
    assert sum(file.taken for file in report.files) == 6  # the second good.txt has the bytes of the first


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MEMBERS", 3)
    many = tar({f"{n}.txt": faster(SYSBENCH, f"{n + 1}.00").encode() for n in range(5)})
    bomb = gzip.compress(b"a line\n" * 2_000_000)
    assert len(bomb) * 1000 > 14_000_000 / 2
    monkeypatch.setattr(archives, "RATIO", 100)
    report = imported(tmp_path, {"many.tar.gz": many, "bomb.gz": bomb})
    assert reasons(report) == {
        "bomb.gz": "an archive of which the rest is not read: it is more than 100 times as large when unpacked "
        "(a limit of vtax)",
        "many.tar.gz": "an archive of which the rest is not read: it has more than 3 members (a limit of vtax)",
    }
    assert report.yielded == 3


def test_a_limit_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "BYTES", 2**20)
    report = imported(tmp_path, {"big.gz": gzip.compress(bytes(range(32, 127)) * 20_000), "good.txt": SYSBENCH})
    assert "GiB when unpacked" in reasons(report)["big.gz"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("cut.gz", gzip.compress(PING)[:60], "it is damaged"),
        ("cut.tar.gz", tar({"a": PING * 100})[:200], "it is damaged"),
        ("cut.xz", lzma.compress(PING)[:60], "it is damaged"),
        ("cut.zip", zipped({"a": PING})[:100], "it is damaged"),
        ("in.zip", zipped({"b.zip": zipped({"a": PING})}), "an archive inside an archive"),
        ("book.xlsx", zipped({"[Content_Types].xml": b"<x/>", "a.xml": b"<x/>"}), "workbook"),
    ],
    ids=named,
)
def test_damaged_archives_are_named(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    report = imported(tmp_path, {name: content, "good.txt": SYSBENCH})
    assert any(words in reason for reason in reasons(report).values())
    assert report.yielded == 1


def test_standard_input(tmp_path: Path) -> None:
    request = Request(paths=(Path("-"),), environment="vm", stdin=io.BytesIO(PING))
    report = import_logs(request, tmp_path / "campaign")
    assert [(file.file, file.taken) for file in report.files] == [("standard input", 5)]
    assert len(pipeline.measurements(tmp_path / "campaign")[0]) == 5


@pytest.mark.parametrize("name", ["../above", "vm/a"])
def test_a_member_that_is_passed_over_counts_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is unpacked all the same, where the archive is compressed."""
    monkeypatch.setattr(archives, "RATIO", 10)
    report = imported(tmp_path, {"bomb.tar.gz": tar({"vm/first.txt": PING, name: bytes(2**26)})})
    assert "it is more than 10 times as large when unpacked" in reasons(report)["bomb.tar.gz"]


def test_a_header_that_claims_gigabytes_is_not_read(tmp_path: Path) -> None:
    about = tarfile.TarInfo("name")
    about.type, about.size = tarfile.GNUTYPE_LONGNAME, 20 * 2**30
    report = imported(tmp_path, {"good.txt": PING, "long.tar": about.tobuf(tarfile.GNU_FORMAT) + bytes(2**16)})
    assert "a header is larger than any that is needed" in reasons(report)["long.tar"]
