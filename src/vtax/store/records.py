"""Files of JSON in a campaign, each written whole or not at all, and read within limits."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pydantic import ValidationError

from vtax import files
from vtax.errors import DamagedError, StoreError
from vtax.model.record import Record

R = TypeVar("R", bound=Record)
JSON_BYTES = 256 * 2**20  # of one file of JSON
JSON_VALUES = 10_000_000  # in it: each takes 50 to 100 bytes of memory


def write_atomic(path: Path, content: bytes) -> None:
    """Write under a temporary name, flush to the disk, rename. Raises StoreError; the old file is then untouched."""
    try:
        files.write(path.parent, path.name, content)
    except OSError as error:
        raise unwritable(path, error) from error


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What is written below `path` in this block. Raises StoreError instead of OSError."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path} cannot be written: {error.strerror or error}",
        remedy="everything recorded so far is safe; free some space and give the same command again; a campaign that "
        "was running continues with `vtax run --resume`",
    )


def plan_digest(content: Mapping[str, Any]) -> str:
    """The hash of a plan's file: of all but the hash that it names, as canonical JSON."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def written(content: Record | Mapping[str, Any]) -> bytes:
    """A record as its file contains it."""
    data = content.model_dump(mode="json") if isinstance(content, Record) else content
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()


def json_bytes(root: Path, name: str) -> bytes:
    """A file of JSON, which may be somebody's to use up the memory. Raises OSError."""
    data = files.read(root, name, JSON_BYTES)
    if sum(map(data.count, (b",", b"[", b"{"))) > JSON_VALUES:
        raise OSError(errno.EFBIG, f"it has more than {JSON_VALUES} values", str(root / name))
    return data


def read(kind: type[R], root: Path, name: str) -> R:
    """A record from its file. Raises DamagedError when it cannot be read or is not a valid record."""
    path = root / name
    try:
        data = json_bytes(root, name)
        found = kind.model_validate_json(data)
        if b"NaN" in data or b"Infinity" in data:  # facts and parameters may be any JSON, which knows neither
            json.loads(data, parse_constant=refuse_constant)
    except OSError as error:
        raise DamagedError(
            f"{path} cannot be read: {error.strerror}", remedy="is this the campaign's directory?"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise DamagedError(
            f"{path} is damaged, or of another version: {where}: {first['msg']}",
            remedy="restore the file, or read it with the version of vtax that wrote it",
        ) from error
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: {error}", remedy="restore the file") from error
    return found


def refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")
