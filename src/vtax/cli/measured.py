"""What `vtax measure` found: as a table, as JSON, as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from vtax.analysis.records import Analysis, Level

FORMATS = {".csv": "csv", ".jsonl": "jsonl", ".parquet": "parquet", ".xlsx": "xlsx", ".json": "json"}
SHOWN = ("wall", "cpu", "user", "system", "max_rss")  # of what is always measured


def refuse_unknown_format(export: Path | None) -> None:
    """Before anything takes minutes: raise UsageError for a file that could not be written."""
    from vtax.errors import UsageError

    if export is not None and export.suffix not in FORMATS:
        raise UsageError(f"--export {export}: the ending says no format", remedy=f"end it with {', '.join(FORMATS)}")
    if export is not None and not export.absolute().parent.is_dir():
        raise UsageError(f"--export {export}: there is no directory {export.absolute().parent}", remedy="make it first")
    if export is not None and export.exists() and not export.is_file():
        raise UsageError(f"--export {export} is there already, and no file", remedy="choose another name")


def lines_of(analysis: Analysis) -> Iterator[str]:
    """A table of means, and a sentence for every comparison."""
    from vtax.cli.console import table
    from vtax.units import format_quantity

    by_metric = _by_metric(analysis)
    header = ["", *analysis.environments]
    rows = []
    for name, levels in by_metric.items():
        cells = []
        for environment in analysis.environments:
            level = levels.get(environment)
            spread = "" if level is None or level.sd is None else f" ± {format_quantity(level.sd, level.unit)}"
            cells.append("no value" if level is None else f"{format_quantity(level.mean, level.unit)}{spread}")
        rows.append([name, *cells])
    yield table(rows, header)
    if any(one.primary for one in analysis.comparisons):
        yield ""
        yield "Relative performance: above 0 % is better than the baseline, of rates and of times alike."
    for one in analysis.comparisons:
        if one.primary:
            yield ""
            yield f"{one.metric} of {one.environment} against {one.baseline}: {one.sentence}"
            if one.remark:
                yield one.remark
    yield f"{analysis.ended}" if analysis.ended else ""


def _by_metric(analysis: Analysis) -> Mapping[str, Mapping[str, Level]]:
    """The levels of what decides, and of what is always measured, by metric and environment."""
    shown = [level for level in analysis.levels if level.primary]
    shown += [level for name in SHOWN for level in analysis.levels if level.metric == name and not level.primary]
    found: dict[str, dict[str, Level]] = {}
    for level in shown:
        found.setdefault(level.metric, {})[level.environment] = level
    return found


def content_of(analysis: Analysis) -> dict[str, Any]:
    """The result as JSON: every value of every metric by environment, and the comparisons."""
    return {
        "baseline": analysis.baseline,
        "environments": list(analysis.environments),
        "metrics": [
            {
                "metric": level.metric,
                "environment": level.environment,
                "unit": level.unit,
                "primary": level.primary,
                "n": level.n,
                "mean": level.mean,
                "sd": level.sd,
                "median": level.median,
                "minimum": level.minimum,
                "maximum": level.maximum,
                "rounds": {str(cell.round): cell.value for cell in level.cells},
            }
            for level in analysis.levels
        ],
        "comparisons": [
            {
                "metric": one.metric,
                "environment": one.environment,
                "baseline": one.baseline,
                "verdict": one.verdict.value,
                "ratio": one.ratio,
                "low": one.low,
                "high": one.high,
                "sentence": one.sentence,
            }
            for one in analysis.comparisons
            if one.primary
        ],
    }


def write(export: Path, directory: Path, analysis: Analysis) -> None:
    """Write all values to a file, in the format of its ending."""
    import json

    from vtax import pipeline
    from vtax.errors import StoreError
    from vtax.export.tables import export as render

    kind = FORMATS[export.suffix]
    if kind == "json":
        content = (json.dumps(content_of(analysis), indent=2, ensure_ascii=False) + "\n").encode()
    else:
        content = render(pipeline.measurements(directory)[0], kind)
    try:
        export.write_bytes(content)
    except OSError as error:
        raise StoreError(f"{export} cannot be written: {error.strerror}", remedy="choose another place") from error
