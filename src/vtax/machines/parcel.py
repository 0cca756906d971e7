"""What vtax sends to a machine: its own package and the libraries that this needs there, as one archive.

Two of the libraries are compiled, so the machine must have the same architecture and the same minor version of Python.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import platform
import sys
import tarfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = ("annotated_types", "pydantic", "pydantic_core", "re2", "typing_extensions", "typing_inspection")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
ARCHITECTURE = platform.machine()


def contents() -> Iterator[tuple[str, bytes]]:
    """Name and content of every file, in order."""
    for name in sorted(("vtax", *LIBRARIES)):
        found = find_spec(name)
        assert found is not None and found.origin is not None, f"{name} is not installed"
        origin = Path(found.origin)
        if origin.name != "__init__.py":
            yield origin.name, origin.read_bytes()
            continue
        for path in sorted(origin.parent.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield str(path.relative_to(origin.parent.parent)), path.read_bytes()


@cache
def digest() -> str:
    """The name of the archive: a hash of what is in it."""
    total = hashlib.sha256()
    for name, content in contents():
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()


def archive() -> bytes:
    """The compressed archive: the same bytes for the same content."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, content in contents():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    return gzip.compress(made.getvalue(), compresslevel=6, mtime=0)
