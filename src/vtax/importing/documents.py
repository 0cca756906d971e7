"""JSON objects in the lines of a file: one over many lines, one a line (NDJSON), several on a line, or in a list."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from vtax.tools.reading import Line

BEGIN = re.compile(r"^[\s,]{0,40}\[?\s{0,40}\{\s{0,40}(?:$|[\"}])")
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]')
SAME = 9  # characters with which objects of one kind begin, each on its line
BETWEEN = " \t,]"  # what may be between two objects


def begins_document(text: str) -> bool:
    """Whether an object may begin on this line."""
    return "{" in text and BEGIN.match(text) is not None


@dataclass
class Open:
    """An object whose lines are being collected. `lines` begin and end with its braces; `whole` are as in the file."""

    lines: list[Line] = field(default_factory=list)
    whole: list[Line] = field(default_factory=list)
    depth: int = 0
    chars: int = 0

    def resembles(self, text: str) -> bool:
        """Whether a line can only begin another object: none inside of this one begins at the start of a line, unless
        this one's first line has more than a brace, and then other objects begin like it."""
        first = self.lines[0].text.strip() if self.lines else ""
        return first == "{" or text[:SAME] == first[:SAME]

    def holds(self, line: Line) -> bool:
        """Add a line that can only be inside of this object, as nearly all are; False for one that `add` must take."""
        text = line.text
        if text[:1] not in " \t" or "{" in text or "}" in text or not self.lines:
            return False
        self.whole.append(line)
        self.lines.append(line)
        self.chars += len(text) + 1
        return True

    def add(self, line: Line) -> str | None:
        """Take a line. What is behind the end of the object, if it ends here; None while it goes on."""
        text = line.text
        self.whole.append(line)
        if not self.lines:
            text = text[text.index("{") :]
            line = line._replace(text=text)
        self.chars += len(text) + 1
        if "{" in text or "}" in text:
            for token in TOKENS.finditer(text):
                if token[0] == "{":
                    self.depth += 1
                elif token[0] == "}":
                    self.depth -= 1
                    if self.depth <= 0:
                        self.lines.append(line._replace(text=text[: token.end()]))
                        return text[token.end() :].strip(BETWEEN)
        self.lines.append(line)
        return None
