"""A real campaign of the host, sealed with a real key, checked by others, compared, and planned again."""

from __future__ import annotations

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from .conftest import Vtax, finish

pytestmark = pytest.mark.integration

STUDY = """\
name = "tiny"
seed = 7
rounds = 1
baseline = "host"
[environments.host]
provider = "host"
[environments.bridged]
provider = "host"
network = "bridge"
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = 1
"""


def key(top: Path, name: str) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(top / name)], check=True)
    return top / name


def allowed(top: Path, one: Path) -> Path:
    file = top / f"{one.name}.signers"
    file.write_text(f"{one.name}@example.org {one.with_suffix('.pub').read_text()}")
    return file


def test_a_real_campaign_travels(vtax: Vtax, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(STUDY)
    directory, file = tmp_path / "campaign", tmp_path / "tiny.vtax.zip"

    def ok(*words: str, code: int = 0) -> str:
        ended, said, error = finish(vtax(*words))
        assert ended == code, (said, error)
        return said

    ok("run", str(tmp_path / "tiny.toml"), "--output", str(directory))
    alice, bob = key(tmp_path, "alice"), key(tmp_path, "bob")
    ok("seal", str(directory), "-o", str(file), "--sign", str(alice))
    ok("seal", str(directory), "-o", str(tmp_path / "again.zip"), "--sign", str(alice))
    assert (tmp_path / "again.zip").read_bytes() == file.read_bytes()

    found = json.loads(ok("seal", "--check", str(file), "--signers", str(allowed(tmp_path, alice)), "--json"))
    assert {claim["what"]: claim["state"] for claim in found["claims"]} == {
        "files": "holds",
        "signature": "holds",
        "plan before runs": "holds",
        "numbers": "holds",
        "verdicts": "holds",
    }
    assert "alice@example.org" in next(one["said"] for one in found["claims"] if one["what"] == "signature")
    ok("seal", "--check", str(file), "--signers", str(allowed(tmp_path, bob)), code=1)

    changed = tmp_path / "changed.zip"
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(changed, "w") as new:
        for about in old.infolist():
            content = old.read(about)
            new.writestr(about, content + b" " if about.filename == "seal.json" else content)
    said = ok("seal", "--check", str(changed), code=1)
    assert "the signature is not of this seal" in said

    private = tmp_path / "private.zip"
    ok("seal", str(directory), "-o", str(private), "--redact")
    ok("seal", "--check", str(private))
    with zipfile.ZipFile(private) as read:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        text = "".join(read.read(name).decode("utf-8", "replace") for name in read.namelist())
    assert boot not in text

    compared = json.loads(ok("compare", str(file), str(directory), "--json"))
    assert compared["unlike"] == []
    again = json.loads(ok("plan", "--from", str(file), "--json"))
    assert again["plan"]["study"]["name"] == "tiny"
    assert [one["what"] for one in again["differences"] if one["severity"] == "blocker"] == []
