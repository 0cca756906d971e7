"""Tables for a paper: the tables of the report in LaTeX, with booktabs and siunitx.

`tables.tex` is made to be read by `\\input`; `report.tex` is a document around it, with the figures, that compiles as
it is. Numbers are those of the page. No table is wider than a page: columns that do not fit make a table more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from vtax.figures.theme import cut, mark_of, slug
from vtax.report.document.answer.lines import RULE
from vtax.report.document.cells import span
from vtax.report.document.model import Cell, Document, Entry, Number, Ratio, Row, Table
from vtax.report.document.numbers import ABSENT
from vtax.report.formats import Made

SEAM = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=_)(?=[^_])")
DIGITS = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
LONG = 40  # rows from which a table may break over pages
ACROSS = 104  # letters of \\footnotesize in a line of 17 cm, with some room
NAME = 34  # letters of a row's name in a line
WORDS = 24  # letters of a sentence in a line
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
    "“": "``",
    "”": "''",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "²": r"\texttwosuperior{}",
    "³": r"\textthreesuperior{}",
    "▲": r"$\blacktriangle$",  # marks of verdicts
    "▼": r"$\blacktriangledown$",
    "■": r"$\blacksquare$",
    "◆": r"$\blacklozenge$",
    "◇": r"$\lozenge$",
    "○": r"$\circ$",
    "✕": r"$\times$",
    "·": r"$\cdot$",
}
NEEDS = r"% Needs array, amssymb, booktabs, longtable, siunitx and textcomp, and \sisetup{separate-uncertainty}."
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


def files(document: Document, made: Made) -> Mapping[str, bytes]:
    """`latex/tables.tex`, and `latex/report.tex` around it and the figures that were made as PDF."""
    figures = [(f"../{place}", caption) for place, caption in made.captions.items() if place.endswith(".pdf")]
    report = whole(document.answer.headline, figures)
    return {"latex/tables.tex": tables(document).encode(), "latex/report.tex": report.encode()}


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


def tables(document: Document) -> str:
    """Every table of results, one after another: the answer, scores, steps of a ladder, then those of each entry."""
    return "\n\n".join((NEEDS, *_tables(document))) + "\n"


def whole(title: str, figures: Iterable[tuple[str, str]]) -> str:
    """A document with all tables, and the figures of these files with their captions."""
    body = [rf"\section*{{{escape(title)}}}", r"\input{tables.tex}", r"\twocolumn"]
    for number, (place, caption) in enumerate(figures, start=1):
        name = place.rpartition("/")[2].partition(".")[0]
        body.append(FIGURE % (place, escape(caption), name))
        if number % FLOATS == 0:
            body.append(r"\clearpage")
    return PREAMBLE + "\n\n".join(body) + "\n\\end{document}\n"


def _tables(document: Document) -> Iterator[str]:
    taken: set[str] = set()
    if document.answer.lines:
        yield from fitting(document.answer.table, f"{document.answer.headline}. {RULE}", _free("answer", taken))
    for table, name in ((document.scores, "scores"), (document.ladder, "ladder"), (document.machines, "machines")):
        if table.rows:
            yield from fitting(table, f"{table.title}. {table.note}", _free(name, taken))
    for section in document.sections:
        for entry in section.entries:
            yield from _of_entry(document, entry, taken)


def _of_entry(document: Document, entry: Entry, taken: set[str]) -> Iterator[str]:
    """The tables of an entry without counts, checks and what is zero everywhere, which a comment names."""
    rows = entry.table.rows if entry.table is not None else ()
    kept = _without_lone_headings([row for row in rows if row.heading or not _zero(row)])
    zero = [(metric, row) for metric, row in _by_metric(rows) if _zero(row)]
    shown = {metric for metric, row in _by_metric(rows) if not _zero(row)}
    names = [metric for metric, _ in _by_metric(entry.counts.rows if entry.counts else ())]
    names += [metric for metric, _ in zero if metric not in shown]
    if names:
        listed = ", ".join(escape(name) for name in dict.fromkeys(names))
        yield f"% {escape(entry.label)}, counts, checks and what is zero everywhere: {listed}"
    if entry.table is not None and kept:
        table = Table(entry.table.title, entry.table.columns, tuple(kept), entry.table.note)
        what = (
            f"{entry.label}. {table.note} Mean ± standard deviation over {_counted(document, entry)}; relative to "
            f"{document.baseline}, above one is better, {document.intervals} in brackets; {_legend(table)}"
        )
        yield from fitting(table, what, _free(entry.label, taken))
    for matrix in entry.matrices:
        yield from fitting(matrix, f"{entry.label}: {matrix.title}. {matrix.note}", _free(entry.label, taken))


def _counted(document: Document, entry: Entry) -> str:
    """`3 rounds`, or `2 to 3 rounds` where they differ."""
    counts = [level.n for series in entry.series for level in document.results.levels[series].values()]
    return f"{span(counts, str)} {'runs' if document.imported else 'rounds'}"


def _free(name: str, taken: set[str]) -> str:
    """A label that no other table has."""
    label, number = slug(name), 1
    while label in taken:
        number += 1
        label = f"{slug(name)}-{number}"
    taken.add(label)
    return label


def _by_metric(rows: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    """The rows with numbers, each with the name of its metric: its own, or that of the heading above it."""
    heading: Row | None = None
    for row in rows:
        if row.heading:
            heading = row
        else:
            yield (heading if heading is not None and row.inside else row).cells[0].text, row


def _zero(row: Row) -> bool:
    """Whether every value of a row is zero, in every run."""
    numbers = [cell.value for cell in row.cells if isinstance(cell.value, Number)]
    return bool(numbers) and all(one.value == 0 and not one.sd for one in numbers)


def _without_lone_headings(rows: Sequence[Row]) -> list[Row]:
    """Rows without the headings that no row follows."""
    return [
        row
        for row, following in zip_longest(rows, rows[1:])
        if not row.heading or (following is not None and not following.heading)
    ]


def _legend(table: Table) -> str:
    """What each mark of a verdict says, of those that appear."""
    words = dict.fromkeys(cell.verdict for row in table.rows for cell in row.cells if cell.verdict)
    return ", ".join(f"{mark_of(word).glyph} {word}" for word in words)


@dataclass(frozen=True)
class Column:
    """A column of cells with what is above it. `width` is how many letters it prints, about."""

    head: str
    cells: tuple[str, ...]
    wraps: int = 0  # letters in a line of it, where it has lines

    @property
    def width(self) -> int:
        return self.wraps or max(map(printed, (self.head, *self.cells)))

    @property
    def kind(self) -> str:
        """How LaTeX sets it."""
        return rf">{{\raggedright\arraybackslash}}p{{{0.5 * self.wraps:.1f}em}}" if self.wraps else "l"


def printed(text: str) -> int:
    """How many letters a line of LaTeX prints, about: what it needs to fit a page."""
    text = re.sub(r"\\num\{([^{}]*)\}", lambda found: _grouped(found[1]), text)
    text = re.sub(r"\$\\[a-z]+\$|\\(?:text|dots)[a-z]*(?:\{\}| )|\\[{}$&#%_]", "x", text)
    return len(text.replace(r"\allowbreak{}", ""))


def _grouped(number: str) -> str:
    """A number as siunitx prints it: some room between groups of three digits, and around its sign."""
    digits = max((len(part) for part in re.findall(r"\d+", number)), default=0)
    return number.replace("+-", "+/-") + " " * (digits // 4)


def fitting(table: Table, caption: str, label: str) -> Iterator[str]:
    """One table, or where that is wider than a page one of values and one of ratios, in as many parts as they need."""
    lines = [line for row in table.rows for line in _lines(row, len(table.columns))]
    columns = [
        Column(escape(cut(column.title, HEAD + 3)) or " ", cells)
        for column, cells in zip(table.columns, zip(*lines, strict=True), strict=True)
    ]
    limits = [NAME, *([WORDS] * len(columns))]
    wide = [
        Column(one.head, one.cells, limit if one.width > NAME else 0)
        for one, limit in zip(columns, limits, strict=False)
    ]
    body = [row.cells for row in table.rows if not row.heading]
    compared = [any(isinstance(cells[at].value, Ratio) for cells in body) for at in range(1, len(wide))]
    marked = list(zip(wide[1:], compared, strict=True))
    parts = [wide[1:]]
    if _width(wide) > ACROSS:
        parts = [[column for column, ratio in marked if ratio is wanted] for wanted in (False, True)]
    groups = [group for part in parts for group in _grouped_to_fit(wide[0], part)]
    for number, group in enumerate(groups, start=1):
        part = "" if len(groups) == 1 else f" (part {number} of {len(groups)})"
        name = label if number == 1 else f"{label}-part{number}"
        yield _set([wide[0], *group], escape(caption.rstrip(".") + part + "."), name)


def _grouped_to_fit(first: Column, columns: Sequence[Column]) -> list[list[Column]]:
    """The columns in groups that fit a page with the first one."""
    groups: list[list[Column]] = []
    for column in columns:
        if not groups or _width([first, *groups[-1], column]) > ACROSS:
            groups.append([])
        groups[-1].append(column)
    return groups


def _width(columns: Sequence[Column]) -> int:
    return sum(column.width + GAP for column in columns)


def _lines(row: Row, width: int) -> Iterator[tuple[str, ...]]:
    """The lines of a row: its cells, and below numbers of a matrix their ratios."""
    if row.heading:
        yield (rf"\textbf{{{breakable(row.cells[0].text)}}}", *([""] * (width - 1)))
        return
    name = row.cells[0]
    yield (
        breakable(f"{name.text} ({name.note})" if name.note else name.text),
        *(_cell(cell) for cell in row.cells[1:]),
    )
    below = [_ratio(cell.note) if _in_matrix(cell) else "" for cell in row.cells]
    if any(below):
        yield tuple(below)


def _in_matrix(cell: Cell) -> bool:
    """Whether a number has its ratio below it, as those of matrices have: it has no other place for raw files."""
    return isinstance(cell.value, Number) and not cell.raw


def _cell(cell: Cell) -> str:
    mark = f" {escape(mark_of(cell.verdict).glyph)}" if cell.verdict else ""
    if isinstance(cell.value, Number):
        return number(cell.text) + mark
    if isinstance(cell.value, Ratio):
        against = f" vs {breakable(cell.value.against)}" if cell.value.against else ""
        return _ratio(cell.text) + mark + against
    note = f" ({cell.note})" if cell.note and cell.text != ABSENT else ""
    return breakable(cut(f"{cell.text}{note}", 2 * NAME)) + mark


def number(text: str) -> str:
    """siunitx's `\\num` of a number as the page has it, with its deviation. Raises ValueError for what is not one."""
    if not all(DIGITS.fullmatch(part) for part in text.split(" ± ")):
        raise ValueError(f"{text} is not a number for a table")
    return rf"\num{{{text.replace(',', '').replace('±', '+-')}}}"


def _ratio(text: str) -> str:
    """A ratio and the ends of its interval, each as `\\num`."""
    words = escape(text.replace("\u00a0", " "))
    return DIGITS.sub(lambda found: rf"\num{{{found[0].rstrip(',')}}}" + "," * found[0].endswith(","), words)


def breakable(text: str) -> str:
    """Escaped text in which a name that is long for a column may go on in the next line."""
    return " ".join(escape(word) if len(word) <= NAME // 2 else _broken(word) for word in re.split(r"\s+", text))


def _broken(word: str) -> str:
    pieces = [piece[i : i + NAME // 2] for piece in SEAM.split(word) for i in range(0, len(piece), NAME // 2)]
    return r"\allowbreak{}".join(map(escape, pieces))


def _set(columns: Sequence[Column], caption: str, label: str) -> str:
    """A table that floats, or one that breaks over pages when it has many rows."""
    kinds = "".join(column.kind for column in columns)
    head = " & ".join(column.head for column in columns) + r" \\"
    rows = [" & ".join(cells) + r" \\" for cells in zip(*(column.cells for column in columns), strict=True)]
    if len(rows) > LONG:
        top = rf"\caption{{{caption}}}\label{{tab:{label}}}\\"
        inner = [top, r"\toprule", head, r"\midrule", r"\endfirsthead", r"\toprule", head, r"\midrule", r"\endhead"]
        inner += [r"\bottomrule", r"\endfoot", *rows]
        small = r"\begingroup\footnotesize\setlength{\tabcolsep}{3pt}"
        return "\n".join([small, rf"\begin{{longtable}}{{{kinds}}}", *inner, r"\end{longtable}", r"\endgroup"])
    return "\n".join(
        [
            r"\begin{table*}[htbp]",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{label}}}",
            r"\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table*}",
        ]
    )
