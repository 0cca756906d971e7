"""Signatures by OpenSSH: `ssh-keygen -Y`, so that a key which somebody has already says who sealed a campaign."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from vtax.errors import UsageError
from vtax.sealing.archive import SIGNATURE, SealError
from vtax.transport.process import run

NAMESPACE = "vtax"
TIMEOUT_S = 30.0
KEY = re.compile(r"with (\S+ key SHA256:\S+)")


def sign(content: bytes, key: Path) -> bytes:
    """A signature of `content`. The key is a private one, or a public one whose private key an agent has. Raises
    UsageError where ssh-keygen refuses it, EnvironmentMissing where it is not installed."""
    if not key.is_file():
        raise UsageError(f"{key} is not a key", remedy="give an SSH key, such as ~/.ssh/id_ed25519")
    argv = ("ssh-keygen", "-q", "-Y", "sign", "-f", str(key.absolute()), "-n", NAMESPACE)
    result = run(argv, timeout_s=TIMEOUT_S, stdin=content)
    if result.exit_code != 0:
        raise UsageError(
            f"{key} cannot sign",
            detail=result.stderr.strip()[-500:],
            remedy="a key with a passphrase signs through ssh-agent: `ssh-add` it and give its .pub file",
        )
    return result.stdout.encode()


def check(content: bytes, signature: bytes, signers: Path | None) -> str:
    """Who signed `content`, in words. Raises SealError for a signature of something else, or, with a file of allowed
    `signers`, of another key than theirs."""
    if signers is not None and not signers.is_file():
        raise UsageError(f"{signers} does not exist", remedy="give a file of allowed signers: `man ssh-keygen`")
    with tempfile.TemporaryDirectory(prefix="vtax-") as place:
        signed = Path(place, SIGNATURE)
        signed.write_bytes(signature)
        if signers is not None:
            return _allowed(content, signed, signers)
        argv = ("ssh-keygen", "-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signed))
        result = run(argv, timeout_s=TIMEOUT_S, stdin=content)
    if result.exit_code != 0:
        raise SealError("the signature is not of this seal", detail=result.stderr.strip()[-500:])
    return f"{_key(result.stdout)}; whose key it is was not checked: --signers FILE"


def _allowed(content: bytes, signed: Path, signers: Path) -> str:
    file = str(signers.absolute())
    found = run(("ssh-keygen", "-Y", "find-principals", "-s", str(signed), "-f", file), timeout_s=TIMEOUT_S)
    names = found.stdout.split() if found.exit_code == 0 else []
    if not names or names[0].startswith("-"):
        raise SealError(f"the signature is by a key that is not in {signers}", detail=found.stderr.strip()[-500:])
    name = names[0].partition(",")[0]
    argv = ("ssh-keygen", "-Y", "verify", "-f", file, "-I", name, "-n", NAMESPACE, "-s", str(signed))
    result = run(argv, timeout_s=TIMEOUT_S, stdin=content)
    if result.exit_code != 0:
        raise SealError(f"the signature by {name} is not of this seal", detail=result.stderr.strip()[-500:])
    return f"{name}, {_key(result.stdout)}"


def _key(said: str) -> str:
    found = KEY.search(said)
    return found[1] if found else "an unknown key"
