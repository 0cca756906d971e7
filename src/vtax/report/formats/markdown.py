"""The report as GitHub Markdown: the same words and tables as the page, without figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from vtax.report.document.findings import Box, Said
from vtax.report.document.links import file_name, raw_file
from vtax.report.document.page import Entry, Page, page_of
from vtax.report.document.tables import Cell, Table
from vtax.report.records import ReportInput

SPECIAL = re.compile(r"([\\`*_\[\]|~#<>$])")
LINE_END = re.compile(r"[\r\n\x0b\x0c\x85\u2028\u2029]+")
FENCE = re.compile(r"`{3,}")


def render(report: ReportInput) -> str:
    """`report/report.md`, as text."""
    return "\n\n".join(_blocks(page_of(report))) + "\n"


def _blocks(page: Page) -> Iterator[str]:
    yield f"# {escape(page.title)}: {escape(page.question)}"
    yield escape(page.subject)
    yield "## The answer in short"
    yield f"**{escape(page.caution)}**"
    lines = (
        f"- **{answer.group}**: "
        + "; ".join(f"{escape(said.name)}: {escape(said.text)}" for said in answer.clauses)
        + "."
        for answer in page.answers
    )
    yield "\n".join(lines)
    yield escape(page.resolution)
    yield from (_finding(box, most=3) for box in page.stopping)
    if page.warned:
        yield f"The audit warns {escape(page.warned)}: see Findings."
    yield escape(page.reading)
    yield "## Overview"
    yield from _table(page.overview, titled=False)
    for table in (page.ladder, page.scores):
        if table.rows:
            yield f"## {escape(table.title)}"
            yield from _table(table, titled=False)
    yield "## Findings"
    yield from map(_finding, page.loud) if page.loud else ["No blocker and no warning."]
    if page.quiet:
        yield "### Notes"
        yield "\n".join(f"- **{escape(item.id)}** {escape(item.message)} {escape(item.remedy)}" for item in page.quiet)
    for section in page.sections:
        yield f"## {section.group}"
        for entry in section.entries:
            yield from _entry(entry, page.environments)
    yield "## Conclusion"
    for paragraph in page.conclusion:
        yield f"### {escape(paragraph.title)}"
        yield escape(" ".join(paragraph.sentences))
    if not page.imported:
        yield "## What happened"
        if page.ended:
            yield f"The campaign ended {escape(page.ended)}."
        yield from _table(page.cells, titled=True)
    yield "## Failures"
    none = "Every run gave a result." if page.imported else "Every recorded trial ran to its end."
    yield from _table(page.failures, titled=False) if page.failures.rows else [none]
    if page.files is not None:
        yield f"## {page.files.title}"
        yield from _table(page.files, titled=False)
    yield f"## {escape(page.matched.title)}"
    yield from _table(page.matched, titled=False) if page.matched.rows else ["No log tells."]
    if page.other_facts.rows:
        yield f"### {escape(page.other_facts.title)}"
        yield from _table(page.other_facts, titled=False)
    if not page.imported:
        yield from _setup(page)
    for table in (page.plan, page.work):
        yield f"## {escape(table.title)}"
        yield from _table(table, titled=False)


def _setup(page: Page) -> Iterator[str]:
    """How it was built: commands, machine, versions."""
    for title, several in (("How each environment was built", page.built), ("What ran in each", page.commands)):
        if several:
            yield f"## {title}"
        for name, commands in several:
            yield f"### {escape(name)}"
            yield fenced(commands)
    for table in (page.peaks, page.image, page.machine, page.other_machine, page.versions, page.other_versions):
        if table.rows:
            yield f"## {escape(table.title)}"
            yield from _table(table, titled=False)


def _finding(box: Box, most: int | None = None) -> str:
    """One row of the audit as a quotation; at `most` so many of its messages."""
    head = f"**{box.severity.capitalize()} {escape(box.id)}**"
    if not box.title:
        lines = [f"{head} {_said(box.lines[0])}"]
    else:
        lines = [f"{head} {escape(box.title)}", "", *(f"- {_said(line)}" for line in box.lines[:most])]
        more = len(box.lines[most:]) if most is not None else 0
        lines += [*([f"- and {more} more, under Findings"] if more else []), ""]
    lines += [f"What to do: {escape(remedy)}" for remedy in box.remedies]
    return "\n".join(f"> {line}".rstrip() for line in _apart(lines))


def _apart(lines: Sequence[str]) -> Iterator[str]:
    """Lines of prose that follow each other as lines of their own."""
    for line, after in zip_longest(lines, lines[1:], fillvalue=""):
        yield f"{line}\\" if line and after and not after.startswith("- ") else line


def _said(line: Said) -> str:
    where = ", ".join(word for word in (*line.environments, line.benchmark) if word)
    return f"({escape(where)}) {escape(line.message)}" if where else escape(line.message)


def _entry(entry: Entry, environments: Sequence[str]) -> Iterator[str]:
    yield f"### {escape(entry.label)}"
    if entry.tally:
        yield f"Findings: {escape(entry.tally)}."
    if entry.table is not None:
        yield from _table(entry.table, titled=False)
    if entry.notes:
        yield "\n".join(f"- {escape(note)}" for note in entry.notes)
    if entry.published is not None:
        yield "**Published figures**"
        yield from _table(entry.published, titled=False)
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
        yield escape(table.note)
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
    badge = f"*{escape(cell.badge)}*" if cell.badge else ""
    note = f"({escape(cell.note)})" if cell.note else ""
    text = f"[{escape(cell.text)}]({_href(cell.file)})" if cell.file else escape(cell.text)
    return " ".join(word for word in (text, badge, note) if word)


def _href(source: str) -> str:
    return raw_file(source).replace("(", "%28").replace(")", "%29")


def html_text(text: str) -> str:
    """Text between HTML tags of Markdown, where a backslash escapes nothing."""
    line = LINE_END.sub(" ", text).replace("&", "&amp;")
    return SPECIAL.sub(lambda found: f"&#{ord(found[1])};" if found[1] != "#" else "#", line)


def escape(text: str) -> str:
    """Text that Markdown shows as it is, on one line: no markup, no HTML, no end of a table cell."""
    line = LINE_END.sub(" ", text).replace("&", "&amp;")
    return SPECIAL.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")


def fenced(text: str) -> str:
    """A code block that the text cannot end."""
    longest = max((len(run) for run in FENCE.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"
