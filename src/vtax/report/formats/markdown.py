"""The report as GitHub Markdown: the same words and tables as the page, without figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from vtax.report.document.answer.model import Answer, Limit
from vtax.report.document.links import file_name, raw_file
from vtax.report.document.model import Cell, Document, Entry, Message, Table
from vtax.report.formats import Made
from vtax.wording import printable

SPECIAL = re.compile(r"([\\`*_\[\]|~#<>$])")
LINE_END = re.compile(r"[\r\n\x0b\x0c\x85\u2028\u2029]+")
# A command of vtax's. Backticks may also be in names that others gave, and what is between two of these is no code.
CODE = re.compile(r"[\w ./=,:;+'\"{}()-]{1,500}")
FENCE = re.compile(r"`{3,}")


def files(document: Document, _made: Made) -> Mapping[str, bytes]:
    """`report.md`."""
    return {"report.md": render(document).encode()}


def render(document: Document) -> str:
    """The report as text."""
    return "\n\n".join(_blocks(document)) + "\n"


def _blocks(document: Document) -> Iterator[str]:
    yield from _answer(document.answer)
    yield "## Overview"
    yield escape(document.reading)
    yield from _table(document.overview, titled=False)
    for table in (document.machines, document.ladder, document.scores, document.machine_cost):
        if table.rows:
            yield f"## {escape(table.title)}"
            yield from _table(table, titled=False)
    for section in document.sections:
        yield f"## {section.group.shown}"
        for entry in section.entries:
            yield from _entry(entry, document.environments)
    if document.conclusion:
        yield "## Conclusion"
    for paragraph in document.conclusion:
        yield f"### {escape(paragraph.title)}"
        yield with_code(" ".join(paragraph.sentences))
    for title, several in (("Notes", document.quiet), ("Emulated environments: findings", document.aside)):
        if several:
            yield f"## {title} of the audit"
            yield "\n".join(
                f"- **{escape(one.id)}** {with_code(one.message)}. What to do: {with_code(one.remedy)}"
                for one in several
            )
    if not document.imported:
        yield "## What happened"
        if document.ended:
            yield f"The campaign ended {escape(document.ended)}."
        yield from _table(document.cells, titled=True)
    yield "## Failures"
    yield from _table(document.failures, titled=False) if document.failures.rows else [document.none_failed]
    if document.claims is not None:
        yield f"## {document.claims.title}"
        yield from _table(document.claims, titled=False)
    if document.files is not None:
        yield f"## {document.files.title}"
        yield from _table(document.files, titled=False)
    yield f"## {escape(document.matched.title)}"
    yield from _table(document.matched, titled=False) if document.matched.rows else ["Not recorded in any log."]
    if document.other_facts.rows:
        yield f"### {escape(document.other_facts.title)}"
        yield from _table(document.other_facts, titled=False)
    if not document.imported:
        yield from _setup(document)
    for table in (document.plan, document.work):
        yield f"## {escape(table.title)}"
        yield from _table(table, titled=False)


def _setup(document: Document) -> Iterator[str]:
    """How it was built: commands, machine, versions."""
    for title, several in (("How each environment was built", document.built), ("What ran in each", document.commands)):
        if several:
            yield f"## {title}"
        for name, commands in several:
            yield f"### {escape(name)}"
            yield fenced(commands)
    tables = (document.peaks, document.image, document.machine, document.other_machine)
    for table in (*tables, document.versions, document.other_versions):
        if table.rows:
            yield f"## {escape(table.title)}"
            yield from _table(table, titled=False)


def _answer(answer: Answer) -> Iterator[str]:
    """What a reader sees first: the answer, its lines, what would decide, what limits it."""
    yield f"# {escape(answer.headline)}"
    yield f"**{escape(answer.question)}** {escape(answer.subject)}"
    if answer.lines:
        yield from _table(answer.table, titled=False)
    if answer.emulated_text:
        yield escape(answer.emulated_text)
    yield from (with_code(sentence) for sentence in answer.decide)
    yield "## What limits this answer"
    yield "\n".join(map(_limit, answer.limits))
    for one in answer.against:
        yield f"## Against {escape(one.baseline)} (exploratory)"
        yield from _table(one.table, titled=False)
    if answer.emulated is not None:
        yield f"## {escape(answer.emulated.title)}"
        yield from _table(answer.emulated, titled=False)


def _limit(one: Limit) -> str:
    """One condition as an item of a list, with its messages and what to do below it."""
    head = f"**{escape(one.kind)} {escape(one.row)}** " if one.row else ""
    alone = len(one.messages) == 1 and one.row
    lines = [] if alone else [f"  - {_message(line)}" for line in one.messages]
    lines += [f"  - What to do: {with_code(remedy)}" for remedy in one.remedies]
    return "\n".join((f"- {head}{escape(one.text)}", *lines))


def _message(one: Message) -> str:
    where = ", ".join(word for word in (*one.environments, one.benchmark) if word)
    return f"({escape(where)}) {escape(one.text)}" if where else escape(one.text)


def _entry(entry: Entry, environments: Sequence[str]) -> Iterator[str]:
    yield f"### {escape(entry.label)}"
    if entry.tally:
        yield f"Findings: {escape(entry.tally)}."
    if entry.table is not None:
        yield from _table(entry.table, titled=False)
    if entry.notes:
        yield "\n".join(f"- {escape(note)}" for note in entry.notes)
    if entry.published is not None:
        yield from _table(entry.published, titled=True)
    if entry.counts is not None:
        yield from _table(entry.counts, titled=False)
    for matrix in entry.matrices:
        yield from _table(matrix, titled=True)
    links = (
        f"- {escape(source.target or 'all')}, {escape(environment)}: "
        + ", ".join(f"[{number} {escape(file_name(file))}]({_href(file)})" for number, file in several)
        for source in entry.sources
        for environment, several in zip(environments, source.files, strict=True)
        if several
    )
    yield f"<details><summary>Raw files of {html_text(entry.label)}</summary>\n\n" + "\n".join(links) + "\n\n</details>"


def _table(table: Table, *, titled: bool) -> Iterator[str]:
    if titled:
        yield f"**{escape(table.title)}**"
    if table.note:
        yield with_code(table.note)
    width = len(table.columns)
    lines = [
        "| " + " | ".join(escape(column.title) for column in table.columns) + " |",
        "|" + " --- |" * width,
    ]
    for row in table.rows:
        cells = [_cell(cell) for cell in row.cells]
        if row.heading:
            cells = [f"**{cells[0]}**"] + [""] * (width - 1)
        lines.append("| " + " | ".join(cells) + " |")
    yield "\n".join(lines)


def _cell(cell: Cell) -> str:
    verdict = f"*{escape(cell.verdict)}*" if cell.verdict else ""
    note = f"({escape(cell.smaller)})" if cell.smaller else ""
    text = f"[{escape(cell.text)}]({_href(cell.file)})" if cell.file else escape(cell.text)
    return " ".join(word for word in (text, verdict, note) if word)


def _href(source: str) -> str:
    return raw_file(source).replace("(", "%28").replace(")", "%29")


def _line(text: str) -> str:
    """Text on one line, without what a terminal would obey."""
    return printable(LINE_END.sub(" ", text))


def html_text(text: str) -> str:
    """Text between HTML tags of Markdown, where a backslash escapes nothing."""
    line = _line(text).replace("&", "&amp;")
    return SPECIAL.sub(lambda found: f"&#{ord(found[1])};" if found[1] != "#" else "#", line)


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line: no markup, no HTML, no end of a table cell."""
    line = _line(text).replace("&", "&amp;")
    return SPECIAL.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")


def with_code(text: str) -> str:
    """The same, in which what is between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0 or not all(CODE.fullmatch(part) for part in parts[1::2]):
        return escape(text)
    return "".join(f"`{part}`" if place % 2 else escape(part) for place, part in enumerate(parts))


def fenced(text: str) -> str:
    """A code block that the text cannot end."""
    text = printable(text)
    longest = max((len(run) for run in FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
