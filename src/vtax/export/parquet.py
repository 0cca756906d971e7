"""A Parquet file as JSON Lines.

A few kilobytes of it may be gigabytes when they are unpacked, and neither its footer nor its pages can be believed
about that. So it is unpacked in a process of its own, which may only take so much memory.
"""

from __future__ import annotations

import io
import resource
import sys

from vtax.transport.process import run

ROWS = 500_000  # of one table that is read: about 1 GB of memory
TEXT_BYTES = 2**16  # of one text, where the same text in every row takes no space
ALL_TEXTS_BYTES = 512 * 2**20
MEMORY_BYTES = 2 * 2**30
TIMEOUT_S = 120.0


def lines(data: bytes) -> str:
    """The rows of a Parquet file, one JSON object each. Raises ValueError for what is not one, or too large."""
    done = run((sys.executable, "-P", "-m", "vtax.export.parquet"), timeout_s=TIMEOUT_S, stdin=data)
    if done.exit_code < 0 or done.timed_out:
        raise ValueError(f"it takes more than {MEMORY_BYTES // 2**30} GiB of memory when it is unpacked")
    if done.exit_code != 0:
        raise ValueError((done.stderr.strip().splitlines() or ["not a Parquet file"])[-1])
    return done.stdout


def unpacked(data: bytes) -> str:
    """The same, in this process."""
    import polars  # only this format needs it, and it takes a while to load

    try:
        rows = polars.scan_parquet(io.BytesIO(data)).select(polars.len()).collect().item()  # from its footer
        if rows > ROWS:
            raise ValueError(f"there are {rows} rows, and at most {ROWS} are read: export it in parts")
        frame = polars.read_parquet(io.BytesIO(data))
        lengths = frame.select(polars.col(polars.String).str.len_bytes().cast(polars.UInt64))
        longest, total = lengths.max().row(0), lengths.sum().row(0)
    except polars.exceptions.PolarsError as error:
        raise ValueError(f"not a Parquet file: {' '.join(str(error).split())}") from error
    if any((size or 0) > TEXT_BYTES for size in longest):
        raise ValueError(f"a text in it is longer than {TEXT_BYTES} bytes")
    if sum(size or 0 for size in total) > ALL_TEXTS_BYTES:
        raise ValueError(f"its texts are longer than {ALL_TEXTS_BYTES // 2**20} MiB: export it in parts")
    return frame.write_ndjson()


def main() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        sys.stdout.write(unpacked(sys.stdin.buffer.read()))
    except (ValueError, MemoryError) as error:
        sys.exit(str(error) or "not enough memory")


if __name__ == "__main__":
    main()
