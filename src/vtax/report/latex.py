"""Tables for a paper: LaTeX with booktabs and siunitx, one table for every entry of the study.

`tables.tex` is made to be read by `\\input`; `report.tex` is a document around it, with the figures, that compiles as
it is. Numbers are those of `analysis.json`, rounded to the digits that their deviation leaves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from vtax.analysis.records import Analysis, Comparison, Level, Score
from vtax.report.numbers import labels_text, natural
from vtax.units import scale_of

LONG = 40  # rows from which a table may break over pages
SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "→": r"\textrightarrow{}",
    "µ": r"\textmu{}",
    "×": r"\texttimes{}",
    "±": r"\textpm{}",
    "–": "--",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "²": r"\texttwosuperior{}",
    "³": r"\textthreesuperior{}",
}
NEEDS = r"% Needs the packages booktabs, longtable, siunitx and textcomp, and \sisetup{separate-uncertainty}."
PREAMBLE = r"""% Needs the packages booktabs, longtable, siunitx, textcomp and graphicx.
\documentclass[a4paper,10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp,booktabs,longtable,siunitx,graphicx,geometry}
\geometry{margin=2cm}
\sisetup{separate-uncertainty,group-minimum-digits=4}
\begin{document}
"""

Series = tuple[str, str, str, tuple[tuple[str, str], ...]]  # entry, metric, unit, labels


def escape(text: str) -> str:
    """Text that LaTeX prints as it is; what its fonts lack is written as a code point."""
    words = []
    for character in re.sub(r"\s+", " ", text):
        if character in SPECIAL:
            words.append(SPECIAL[character])
        elif " " <= character <= "~" or "\u00a1" <= character <= "\u017f":
            words.append(character)
        else:
            words.append(f"U+{ord(character):04X}")
    return "".join(words)


def number(value: float, sd: float | None = None) -> str:
    """siunitx's `\\num` of a value, with its deviation to two significant digits and the same decimals."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number for a table")
    if not sd and value == int(value) and abs(value) < 1e15:
        return rf"\num{{{int(value)}}}"
    if not sd:
        return rf"\num{{{_plain(value, _decimals(abs(value), 4))}}}"
    decimals = max(0, 1 - math.floor(math.log10(sd)))
    return rf"\num{{{_plain(value, decimals)} +- {_plain(sd, decimals)}}}"


def _decimals(size: float, digits: int) -> int:
    return max(0, digits - 1 - math.floor(math.log10(size))) if size > 0 else 0


def _plain(value: float, decimals: int) -> str:
    if decimals > 12 or abs(value) >= 1e15:
        return f"{value:.3e}"
    return f"{value:.{decimals}f}"


def tables(analysis: Analysis) -> str:
    """Every table, one after another."""
    levels: dict[Series, dict[str, Level]] = {}
    for level in analysis.levels:
        levels.setdefault(_series(level), {})[level.environment] = level
    ratios: dict[tuple[object, ...], Comparison] = {
        (*_series(item), item.environment): item for item in analysis.comparisons
    }
    entries: dict[str, list[Series]] = {}
    for series in levels:
        entries.setdefault(series[0], []).append(series)
    parts = [NEEDS]
    for entry, several in entries.items():
        order = sorted(several, key=lambda series: (not _first(levels[series]).primary, natural(series[1])))
        parts.append(_table(entry, order, levels, ratios, analysis))
    if analysis.scores:
        parts.append(_scores(analysis))
    return "\n\n".join(parts) + "\n"


def document(title: str, figures: Iterable[str]) -> str:
    """A document with all tables and the figures of these file names."""
    body = [rf"\section*{{{escape(title)}}}", r"\input{tables.tex}"]
    body += [
        rf"\begin{{figure}}\centering\includegraphics[width=0.62\linewidth]{{{name}}}\end{{figure}}" for name in figures
    ]
    return PREAMBLE + "\n\n".join(body) + "\n\\end{document}\n"


def _series(item: Level | Comparison) -> Series:
    return item.label, item.metric, item.unit, tuple(sorted(item.labels.items()))


def _first(found: Mapping[str, Level]) -> Level:
    return next(iter(found.values()))


def _table(
    entry: str,
    several: Sequence[Series],
    levels: Mapping[Series, Mapping[str, Level]],
    ratios: Mapping[tuple[object, ...], Comparison],
    analysis: Analysis,
) -> str:
    others = [name for name in analysis.environments if name != analysis.baseline]
    there = {name for series in several for name in levels[series]}
    there |= {name for series in several for name in others if (*series, name) in ratios}
    measured = [name for name in analysis.environments if name in there]
    compared = [name for name in others if name in there and analysis.baseline in there]
    head = ["metric", "unit", *measured, *(f"{name} / {analysis.baseline}" for name in compared)]
    lines = [" & ".join(map(escape, head)) + r" \\"]
    rows = [_row(series, levels[series], measured, compared, ratios) for series in several]
    counts = sorted({level.n for series in several for level in levels[series].values()})
    rounds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    caption = (
        f"{escape(entry)}: mean and sample standard deviation over {rounds} rounds; ratios with their intervals, "
        r"above one is better than the baseline"
    )
    columns = "ll" + "r" * len(measured) + "l" * len(compared)
    label = re.sub(r"[^a-z0-9-]", "-", entry.lower())
    return _set(columns, caption, label, lines, rows)


def _scores(analysis: Analysis) -> str:
    """The composite scores, with the weights that the study gave them."""
    rows = []
    for one in analysis.scores:
        weights = ", ".join(f"{metric} {weight:g}" for metric, weight in one.weights.items())
        words = (escape(f"{one.name} ({weights})"), escape(f"{one.environment} / {one.baseline}"), _ratio(one))
        rows.append(" & ".join(words) + r" \\")
    caption = "Composite scores: weighted geometric means of ratios, above one is better than the baseline; exploratory"
    return _set("lll", caption, "scores", [r"score & environments & ratio \\"], rows)


def _set(columns: str, caption: str, label: str, head: Sequence[str], rows: Sequence[str]) -> str:
    """A table that floats, or one that breaks over pages when it has many rows."""
    if len(rows) > LONG:
        top = rf"\caption{{{caption}}}\label{{tab:{label}}}\\"
        inner = [top, r"\toprule", *head, r"\midrule", r"\endfirsthead", r"\toprule", *head, r"\midrule", r"\endhead"]
        inner += [r"\bottomrule", r"\endfoot", *rows]
        return "\n".join([rf"\begin{{longtable}}{{{columns}}}", *inner, r"\end{longtable}"])
    inner = [r"\toprule", *head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            *inner,
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _row(
    series: Series,
    found: Mapping[str, Level],
    measured: Sequence[str],
    compared: Sequence[str],
    ratios: Mapping[tuple[object, ...], Comparison],
) -> str:
    factor, unit = scale_of(max(abs(level.mean) for level in found.values()), series[2])
    where = labels_text(dict(series[3]))
    cells = [escape(series[1] + (f" ({where})" if where else "")), rf"\si{{{escape(unit)}}}" if unit else ""]
    for name in measured:
        level = found.get(name)
        cells.append("--" if level is None else number(level.mean / factor, level.sd and level.sd / factor))
    cells += [_ratio(ratios.get((*series, name))) for name in compared]
    return " & ".join(cells) + r" \\"


def _ratio(item: Comparison | Score | None) -> str:
    """The ratio with its interval and the verdict; a difference for a proportion."""
    if item is None:
        return "--"
    if item.ratio is None:
        difference = item.difference if isinstance(item, Comparison) else None
        return f"{'--' if difference is None else number(difference)}, {escape(item.verdict)}"
    bounds = "" if item.low is None or item.high is None else rf" [{number(item.low)}, {number(item.high)}]"
    return f"{number(item.ratio)}{bounds}, {escape(item.verdict)}"
