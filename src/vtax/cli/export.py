"""vtax export: measurements as a table for other tools."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer


def export(
    directory: Annotated[Path, typer.Argument(help="A campaign's directory.", show_default=False)],
    format: Annotated[str, typer.Option("--format", "-f", help="csv, jsonl, parquet, xlsx or openmetrics.")] = "csv",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write [standard output].")] = None,
) -> None:
    """Write one row per measurement, in base units, with the file that it was read from.

    csv, jsonl and parquet are lossless: `vtax import` reads them back. xlsx has a sheet for every benchmark.

    \b
    Example:  vtax export campaigns/quick-20260101-120000 --format parquet -o quick.parquet
    """
    from vtax import pipeline
    from vtax.errors import StoreError, UsageError
    from vtax.export.tables import check
    from vtax.export.tables import export as render

    check(format)
    content = render(pipeline.measurements(directory)[0], format)
    if output is None:
        if sys.stdout.isatty() and b"\0" in content:
            raise UsageError(f"{format} is binary, which a terminal cannot show", remedy="--output FILE")
        sys.stdout.buffer.write(content)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise StoreError(f"{output} cannot be written: {error.strerror}", remedy="choose another place") from error
