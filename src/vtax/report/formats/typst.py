"""The report as text for typst, which makes a PDF where there is no browser: answers, ratios, findings, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vtax.report.document.model import Box, Cell, Document, Entry, Table

HEAD = """\
#set page(paper: "a4", flipped: true, margin: 1.6cm, numbering: "1 / 1")
#set figure.caption(position: bottom)
#show figure.caption: set text(size: 8pt)
#show figure: set align(left)
#set text(size: 9pt)
#set table(stroke: (x, y) => if y <= 1 { (top: 0.6pt) } else { none }, inset: (x: 4pt, y: 2.5pt))
#show table: set text(size: 7.5pt)
#show table.cell.where(y: 0): strong
"""


def text(content: str) -> str:
    """A string literal of typst as content: nothing in it is markup."""
    return f"#text({_literal(' '.join(content.splitlines()))})"


def _literal(content: str) -> str:
    escaped = content.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def source(document: Document, figures: Sequence[tuple[bytes, str]] = (), made: str = "") -> str:
    """The whole document: `figures` are SVG with their captions, `made` says how and what it lacks."""
    return "\n\n".join(_blocks(document, figures, made)) + "\n"


def _blocks(document: Document, figures: Sequence[tuple[bytes, str]], made: str) -> Iterator[str]:
    yield from (HEAD, text(f"Study {document.title}"), f"= {text(document.question)}", text(document.subject))
    if made:
        yield f"#emph[{text(f'About this file: {made}.')}]"
    yield "== The answer in short"
    for answer in document.answers:
        clauses = (f"- #strong[{text(clause.name)}] {text(f'{clause.text}.')}" for clause in answer.clauses)
        yield "\n".join((f"#strong[{text(answer.group)}]", "", *clauses))
    first, stop, rest = document.caution.partition(". ")
    yield f"#strong[{text(first + stop)}]{text(rest)}"
    yield from (text(document.resolution), text(document.reading))
    if figures:
        drawn = "".join(_figure(*one) for one in figures)
        yield f"#page(flipped: false, margin: 1.5cm)[== Ratios\n#columns(2)[{drawn}]]"
    if document.loud or document.quiet:
        yield "== Findings"
        yield from map(_finding, document.loud)
        yield from (f"- {text(f'{one.severity} {one.id}: {one.message} {one.remedy}')}" for one in document.quiet)
    for table in (document.overview, document.ladder, document.scores):
        if table.rows:
            yield from _titled("==", table)
    for section in document.sections:
        yield f"== {text(section.group)}"
        for entry in section.entries:
            yield from _entry(entry)
    if document.failures.rows:
        yield from _titled("==", document.failures)


def _entry(entry: Entry) -> Iterator[str]:
    yield f"=== {text(entry.label)}"
    for table in (entry.table, entry.counts):
        if table is not None:
            yield from _note(table)
            yield _table(table)
    for table in (*entry.matrices, *([entry.published] if entry.published else [])):
        yield from _titled("====", table)


def _titled(level: str, table: Table) -> Iterator[str]:
    yield f"{level} {text(table.title)}"
    yield from _note(table)
    yield _table(table)


def _note(table: Table) -> Iterator[str]:
    if table.note:
        yield text(table.note)


def _figure(svg: bytes, caption: str) -> str:
    """A figure as wide as its column, inside the document."""
    drawn = _literal(svg.decode())
    return f'#figure(image(bytes({drawn}), format: "svg", width: 8.6cm), caption: [{text(caption)}])\n\n'


def _finding(box: Box) -> str:
    """One row of the audit with its messages and what to do."""
    head = f"#strong[{text(f'{box.severity.capitalize()} {box.id}')}] {text(box.title)}"
    lines = [text(", ".join((*one.environments, one.benchmark)).strip(", ") + f": {one.text}") for one in box.messages]
    if not box.title:
        return " ".join((head, *lines, *(text(f"What to do: {one}") for one in box.remedies)))
    return "\n".join((head, "", *(f"- {line}" for line in (*lines, *(text(f"What to do: {o}") for o in box.remedies)))))


def _table(table: Table) -> str:
    width = len(table.columns)
    rows = [", ".join(f"[{text(column.title)}]" for column in table.columns)]
    for row in table.rows:
        if row.heading:
            rows.append(f"table.cell(colspan: {width})[#strong[{_cell(row.cells[0])}]]")
        else:
            rows.append(", ".join(f"[{_cell(cell)}]" for cell in row.cells))
    cells = ",\n  ".join(rows)
    return f"#table(\n  columns: {width},\n  {cells},\n)"


def _cell(cell: Cell) -> str:
    words = [text(cell.text), f"#emph[{text(cell.verdict)}]" if cell.verdict else ""]
    words.append(f"#text(size: 6pt)[{text(cell.smaller)}]" if cell.smaller else "")
    return " ".join(filter(None, words))
