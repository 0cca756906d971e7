"""Tables for a paper: LaTeX with booktabs and siunitx, for every entry of the study its values and its ratios.

`tables.tex` is made to be read by `\\input`; `report.tex` is a document around it, with the figures, that compiles as
it is. Numbers are those of `analysis.json`, rounded to the digits that their deviation leaves; ratios to three digits.
No table is wider than a page: what all rows share stands in the caption, and columns that do not fit make a table more.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vtax.analysis.records import Analysis, Comparison, Level, Score, Verdict
from vtax.figures.theme import cut, slug
from vtax.model.metric import Kind
from vtax.report.document.naming import in_order, interval, names_of
from vtax.units import scale_of

SEAM = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=_)(?=[^_])")
LONG = 40  # rows from which a table may break over pages
ACROSS = 104  # letters of \\footnotesize in a line of 17 cm, with some room
NAME = 34  # letters of a row's name in a line
HEAD = 18  # letters of an environment above a column
GAP = 2  # letters between columns
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
    "…": r"\dots{}",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "²": r"\texttwosuperior{}",
    "³": r"\textthreesuperior{}",
}
MICRO = r"\micro "
UNIT = re.compile(r"[A-Za-z0-9µ/]{1,14}")
NEEDS = r"% Needs array, amssymb, booktabs, longtable, siunitx and textcomp, and \sisetup{separate-uncertainty}."
MARKS = {  # of verdicts, as in the report
    Verdict.FASTER: r"$\blacktriangle$",
    Verdict.SLOWER: r"$\blacktriangledown$",
    Verdict.EQUIVALENT: r"$\blacksquare$",
    Verdict.TRIVIAL: r"$\blacklozenge$",
    Verdict.UNADJUSTED: r"$\lozenge$",
    Verdict.INCONCLUSIVE: r"$\circ$",
    Verdict.NOT_COMPARABLE: r"$\times$",
}
NO_VERDICT = r"$\cdot$"
PREAMBLE = r"""% Figures are as wide as one column of a paper; tables as wide as a page.
\documentclass[a4paper,10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{textcomp,amssymb,array,booktabs,longtable,siunitx,graphicx,geometry}
\geometry{hmargin=1.5cm,vmargin=1.7cm,columnsep=0.287in}
\sisetup{separate-uncertainty,group-minimum-digits=5}
\setlength{\LTcapwidth}{\linewidth}
\begin{document}
"""
FIGURE = r"""\begin{figure}[htbp]
\centering
\includegraphics[width=\columnwidth]{%s}
\caption{%s}
\label{fig:%s}
\end{figure}"""
FLOATS = 12  # figures that LaTeX gets before it has to set them

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
        kept = {series: levels[series] for series in several if _tells(levels[series].values())}
        left_out = dict.fromkeys(escape(series[1]) for series in several if series not in kept)
        if left_out:
            parts.append(f"% {escape(entry)}, counts, checks and what is zero everywhere: {', '.join(left_out)}")
        if kept:
            parts += _of_entry(entry, kept, ratios, analysis)
    if analysis.scores:
        parts.append(_scores(analysis))
    return "\n\n".join(parts) + "\n"


def document(title: str, figures: Iterable[tuple[str, str]]) -> str:
    """A document with all tables, and the figures of these files with their captions."""
    body = [rf"\section*{{{escape(title)}}}", r"\input{tables.tex}", r"\twocolumn"]
    for number, (place, caption) in enumerate(figures, start=1):
        name = place.rpartition("/")[2].partition(".")[0]
        body.append(FIGURE % (place, escape(caption), name))
        if number % FLOATS == 0:
            body.append(r"\clearpage")
    return PREAMBLE + "\n\n".join(body) + "\n\\end{document}\n"


def _series(item: Level | Comparison) -> Series:
    return item.label, item.metric, item.unit, tuple(sorted(item.labels.items()))


def _tells(levels: Iterable[Level]) -> bool:
    """Whether a series is a result: no count, no check, and not zero in every run."""
    several = list(levels)
    return several[0].kind is not Kind.COUNT and any(level.minimum != 0 or level.maximum != 0 for level in several)


@dataclass(frozen=True)
class Column:
    """A column of cells with what stands above it. `width` is how many letters it prints, about."""

    head: str
    cells: tuple[str, ...]
    wraps: int = 0  # letters in a line of it, where it has lines

    @property
    def width(self) -> int:
        return self.wraps or max(printed(self.head), *map(printed, self.cells))

    @property
    def kind(self) -> str:
        """How LaTeX sets it."""
        return rf">{{\raggedright\arraybackslash}}p{{{0.5 * self.wraps:.1f}em}}" if self.wraps else "l"


def printed(text: str) -> int:
    """How many letters a line of LaTeX prints, about: what it needs to fit a page."""
    text = re.sub(r"\\num\{([^{}]*)\}", lambda found: _grouped(found[1]), text)
    text = re.sub(r"\\si\{([^}]*)\}", r"\1", text)
    text = re.sub(r"\$\\[a-z]+\$|\\(?:text|dots|micro)[a-z]*(?:\{\}| )|\\[{}$&#%_]", "x", text)
    return len(text.replace(r"\allowbreak{}", ""))


def _grouped(number_: str) -> str:
    """A number as siunitx prints it: some room between groups of three digits, and around its sign."""
    digits = max((len(part) for part in re.findall(r"\d+", number_)), default=0)
    return number_.replace("+-", "+/-") + " " * (digits // 4)


def _of_entry(
    entry: str,
    levels: Mapping[Series, Mapping[str, Level]],
    ratios: Mapping[tuple[object, ...], Comparison],
    analysis: Analysis,
) -> list[str]:
    """The tables of one entry: values and ratios in one for two environments, apart for more."""
    first = {id(item): series for series, found in levels.items() for item in [next(iter(found.values()))]}
    items = in_order([next(iter(levels[series].values())) for series in first.values()])
    order = [first[id(item)] for item in items]
    names = names_of(items)
    there = {name for found in levels.values() for name in found}
    there |= {name for series in order for name in analysis.environments if (*series, name) in ratios}
    measured = [name for name in analysis.environments if name in there]
    compared = [one for one in measured if one != analysis.baseline and analysis.baseline in there]
    scales = [scale_of(max(abs(level.mean) for level in levels[series].values()), series[2]) for series in order]
    front = [
        Column(" ", tuple(map(breakable, names.own)), NAME if max(map(len, names.own)) > NAME else 0),
        Column("unit", tuple(_unit(unit) for _, unit in scales)),
    ]
    values = [
        Column(
            escape(cut(name, HEAD)),
            tuple(_value(levels[series].get(name), factor) for series, (factor, _) in zip(order, scales, strict=True)),
        )
        for name in measured
    ]
    found = {name: [ratios.get((*series, name)) for series in order] for name in compared}
    against = [Column(escape(cut(name, HEAD)), tuple(map(_ratio, several))) for name, several in found.items()]
    what = f"{escape(entry)}: {escape(', '.join(names.shared))}" if names.shared else escape(entry)
    rounds = sorted({level.n for several in levels.values() for level in several.values()})
    over = f"{rounds[0]}" if len(rounds) == 1 else f"{rounds[0]} to {rounds[-1]}"
    mean = f"mean and sample standard deviation over {over} rounds"
    known = [item for several in found.values() for item in several if item is not None]
    ratio = (
        f"ratio to {escape(cut(analysis.baseline, HEAD))}, above one is better, "
        f"{escape(interval(analysis))} in brackets; {_legend(known)}"
    )
    label = slug(entry)
    if len(measured) <= 2 and against:
        both = [*values, Column(f"ratio of {against[0].head}", against[0].cells)]
        return _fitting(front, both, f"{what}. {mean.capitalize()}; {ratio}", label)
    made = _fitting(front, values, f"{what}. {mean.capitalize()}", label)
    if known:
        made += _fitting(front[:1], against, f"{what}. {ratio.capitalize()}", f"{label}-ratios")
    return made


def _fitting(front: Sequence[Column], columns: Sequence[Column], caption: str, label: str) -> list[str]:
    """As few tables as hold all columns, each with those in `front` first and no wider than a page."""
    groups: list[list[Column]] = [[]]
    for column in columns:
        if groups[-1] and _width([*front, *groups[-1], column]) > ACROSS:
            groups.append([])
        groups[-1].append(column)
    made = []
    for number, group in enumerate(groups, start=1):
        own = [*front, *group]
        head = " & ".join(column.head for column in own) + r" \\"
        rows = [" & ".join(cells) + r" \\" for cells in zip(*(column.cells for column in own), strict=True)]
        name = label if number == 1 else f"{label}-{number}"
        told = caption if len(groups) == 1 else f"{caption} (part {number} of {len(groups)})"
        made.append(_set("".join(column.kind for column in own), f"{told}.", name, [head], rows))
    return made


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def breakable(text: str) -> str:
    """Escaped text in which a name that is long for a column may go on in the next line."""
    return " ".join(escape(word) if len(word) <= NAME // 2 else _broken(word) for word in re.split(r"\s+", text))


def _broken(word: str) -> str:
    pieces = [piece[i : i + NAME // 2] for piece in SEAM.split(word) for i in range(0, len(piece), NAME // 2)]
    return r"\allowbreak{}".join(map(escape, pieces))


def _legend(items: Sequence[Comparison | Score]) -> str:
    """What each mark of a verdict says, of those that appear."""
    found = {item.verdict: MARKS.get(item.verdict, NO_VERDICT) for item in items}
    return ", ".join(f"{mark} {escape(verdict)}" for verdict, mark in found.items())


def _scores(analysis: Analysis) -> str:
    """The composite scores, with the weights that the study gave them."""
    weights = {
        one.name: ", ".join(f"{name} {weight:g}" for name, weight in one.weights.items()) for one in analysis.scores
    }
    columns = [
        Column("score", tuple(breakable(f"{one.name} ({weights[one.name]})") for one in analysis.scores), NAME),
        Column("environment", tuple(escape(cut(one.environment, HEAD)) for one in analysis.scores)),
        Column(f"ratio to {escape(cut(analysis.baseline, HEAD))}", tuple(map(_ratio, analysis.scores))),
    ]
    caption = (
        "Composite scores: weighted geometric means of ratios, above one is better than the baseline; exploratory. "
        f"Intervals in brackets; {_legend(analysis.scores)}"
    )
    return _fitting(columns[:1], columns[1:], caption, "scores")[0]


def _set(columns: str, caption: str, label: str, head: Sequence[str], rows: Sequence[str]) -> str:
    """A table that floats, or one that breaks over pages when it has many rows."""
    if len(rows) > LONG:
        top = rf"\caption{{{caption}}}\label{{tab:{label}}}\\"
        inner = [top, r"\toprule", *head, r"\midrule", r"\endfirsthead", r"\toprule", *head, r"\midrule", r"\endhead"]
        inner += [r"\bottomrule", r"\endfoot", *rows]
        small = r"\begingroup\footnotesize\setlength{\tabcolsep}{3pt}"
        return "\n".join([small, rf"\begin{{longtable}}{{{columns}}}", *inner, r"\end{longtable}", r"\endgroup"])
    inner = [r"\toprule", *head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join(
        [
            r"\begin{table*}[htbp]",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            r"\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{{columns}}}",
            *inner,
            r"\end{tabular}",
            r"\end{table*}",
        ]
    )


def _unit(unit: str) -> str:
    """A unit as siunitx sets it, or as text what is none that it knows."""
    if not UNIT.fullmatch(unit):
        return escape(cut(unit, 14))
    return rf"\si{{{unit.replace('µ', MICRO)}}}"


def _value(level: Level | None, factor: float) -> str:
    return "--" if level is None else number(level.mean / factor, level.sd and level.sd / factor)


def _ratio(item: Comparison | Score | None) -> str:
    """The ratio with its interval and the mark of its verdict; a difference for a proportion."""
    if item is None:
        return "--"
    mark = MARKS.get(item.verdict, NO_VERDICT)
    if item.ratio is None:
        difference = item.difference if isinstance(item, Comparison) else None
        return f"{'--' if difference is None else f'difference {three(difference)}'} {mark}"
    bounds = "" if item.low is None or item.high is None else f" [{three(item.low)}, {three(item.high)}]"
    return f"{three(item.ratio)}{bounds} {mark}"


def three(value: float) -> str:
    """A number to three significant digits."""
    return rf"\num{{{_plain(value, _decimals(abs(value), 3))}}}"
