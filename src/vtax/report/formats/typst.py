"""The report as text for typst, which makes a PDF where there is no browser: answers, ratios, findings, tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from vtax.report.document.answer.model import Limit
from vtax.report.document.model import Cell, Document, Entry, Message, Table

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
    answer = document.answer
    yield from (HEAD, text(f"Study {document.title}"), f"= {text(answer.headline)}")
    yield f"#strong[{text(answer.question)}] {text(answer.subject)}"
    if made:
        yield f"#emph[{text(f'About this file: {made}.')}]"
    if answer.lines:
        yield _table(answer.table)
    yield from map(text, (*([answer.emulated_text] if answer.emulated_text else ()), *answer.decide))
    yield "== What limits this answer"
    yield from map(_limit, answer.limits)
    for one in answer.against:
        yield from _titled("==", replace(one.table, title=f"Against {one.baseline} (exploratory)"))
    if answer.emulated is not None:
        yield from _titled("==", answer.emulated)
    yield text(document.reading)
    if figures:
        drawn = "".join(_figure(*one) for one in figures)
        yield f"#page(flipped: false, margin: 1.5cm)[== Ratios\n#columns(2)[{drawn}]]"
    for table in (document.overview, document.machines, document.ladder, document.scores):
        if table.rows:
            yield from _titled("==", table)
    for section in document.sections:
        yield f"== {text(section.group.shown)}"
        for entry in section.entries:
            yield from _entry(entry)
    for title, several in (("Notes", document.quiet), ("Emulated environments: findings", document.aside)):
        if several:
            yield f"== {title} of the audit"
            yield from (f"- {text(f'{one.id}: {one.message}. What to do: {one.remedy}')}" for one in several)
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


def _limit(one: Limit) -> str:
    """One condition with its messages and what to do."""
    head = f"#strong[{text(f'{one.kind.capitalize()} {one.row}:')}] " if one.row else ""
    lines = [] if len(one.messages) == 1 and one.row else [_message(line) for line in one.messages]
    lines += [f"What to do: {remedy}" for remedy in one.remedies]
    return "\n".join((f"- {head}{text(one.text)}", *(f"  - {text(line)}" for line in lines)))


def _message(one: Message) -> str:
    where = ", ".join(filter(None, (*one.environments, one.benchmark)))
    return f"{where}: {one.text}" if where else one.text


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
