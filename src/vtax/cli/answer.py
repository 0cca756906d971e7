"""The answer of a report in a terminal: the same sentences and lines, without markup."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vtax.report.document.answer.model import Answer, Limit

WIDEST = 110  # columns of a line that is still easy to read
FEW = 5  # conditions that the end of a run names; the report has all


def answer_text(answer: Answer, *, limits: int | None = None) -> Iterator[str]:
    """The lines of text: the title, a table, what would decide, and the first `limits` of what limits the answer."""
    from vtax.cli.console import table

    yield from _wrapped(answer.headline)
    yield from _wrapped(f"{answer.question} {answer.subject}")
    if answer.lines:
        yield ""
        rows = [[cell.text for cell in row.cells] for row in answer.table.rows]
        yield table(rows, [column.title for column in answer.table.columns])
    if answer.emulated_text:
        yield from _wrapped(answer.emulated_text)
    if answer.decide:
        yield ""
    for sentence in answer.decide:
        yield from _wrapped(sentence.replace("`", ""))
    yield ""
    yield "What limits this answer:"
    for one in answer.limits[:limits]:
        yield from _wrapped(_limit(one), "- ")
    if limits is not None and len(answer.limits) > limits:
        yield f"- and {len(answer.limits) - limits} more, in the report"


def _limit(one: Limit) -> str:
    return f"{one.kind} {one.row}: {one.text}" if one.row else one.text


def _wrapped(text: str, bullet: str = "") -> list[str]:
    """Lines of words, which a command to copy is never split by a hyphen."""
    width = min(WIDEST, shutil.get_terminal_size().columns)
    more = " " * len(bullet)
    return textwrap.wrap(
        text, width, initial_indent=bullet, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
    )
