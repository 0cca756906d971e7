"""What the programs of a trial printed and wrote, as it was."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

from vtax import files
from vtax.errors import DamagedError
from vtax.model.trial import OUTPUT_BYTES, TrialRecord

OUTPUT_LINES = 2_000_000  # of one file


class LargeOutput(DamagedError):
    """A trial printed more than is read."""


def raw(root: Path, record: TrialRecord) -> dict[str, bytes]:
    """Every file that a trial's record names, by name. Raises DamagedError for one that cannot be read, LargeOutput
    for more than is read of one trial."""
    place = root / "trials" / record.id
    names = {
        name for step in (*record.steps, *record.load) for name in (step.stdout, step.stderr, *step.outputs.values())
    }
    held: dict[str, bytes] = {}
    left = OUTPUT_BYTES
    for name in sorted(names):
        try:
            held[name] = files.read(root, f"trials/{record.id}/{name}", left)
            left -= len(held[name])
            if held[name].count(b"\n") > OUTPUT_LINES:
                raise OSError(errno.EFBIG, "too many lines")
        except OSError as error:
            if error.errno == errno.EFBIG:
                raise LargeOutput(
                    f"trials/{record.id}/{name}: a trial may print {OUTPUT_BYTES // 2**20} MiB and "
                    f"{OUTPUT_LINES} lines, and this is more",
                    remedy="the output is kept; nothing was read from it",
                ) from error
            raise DamagedError(
                f"{place / name} cannot be read: {error.strerror}",
                remedy="the campaign is damaged: restore the file, or remove that trial's directory and resume",
            ) from error
    return held


def texts_of(raw: Mapping[str, bytes]) -> dict[str, str]:
    """Raw output as text, with line ends as the tool wrote them."""
    return {name: content.decode("utf-8", "replace") for name, content in raw.items()}
