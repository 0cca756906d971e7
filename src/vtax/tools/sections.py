"""Where in a file one run ends and the next begins, and of which tool it is. Pure; one pass over the lines.

A tool is known by lines that only it prints, never by the name of the file. Ranks of one `mpirun` are one run: a new
run begins when a tool starts while none of those that started before is still going on. A command line with `-np N`
above says how many belong together even when each one's output came in one piece.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from vtax.tools.reading import Line, Section

SECTION_CHARS = 32 * 2**20  # of one run; what is longer is cut there, and its reader says what is missing
PREAMBLE_LINES = 40  # above the first line of a tool: titles, prompts, a login banner

# mpirun --tag-output: Open MPI 5 writes a blank behind it, 4 does not
TAG = re.compile(r"^\[(?:[\w.-]{1,200}@\d{1,6},(\d{1,6})\]<std(?:out|err)>: ?|\d{1,6},(\d{1,6})\]<std(?:out|err)>:)")
PROGRAMS = ("stress-ng", "sysbench", "iozone", "iperf3", "iperf", "ping", "hpcc", "xhpl")
PROMPT = re.compile(
    r"^(?:[^\s]{0,200}[$#%>]|\[[^\]]{1,200}\][$#]) +(?=\S)(?:.{0,2000}[ /])?"
    r"(mpirun|mpiexec|srun|stress-ng|sysbench|iozone|iperf3?|ping|hpcc|xhpl)(?:$| )"
)
RANKS = re.compile(r" -{1,2}(?:np|n|ntasks)[ =](\d{1,5})\b")
ESCAPES = re.compile(r"\x1b\[[0-9;?]{0,30}[A-Za-z]")
IOZONE_ROW = re.compile(r"^[\s,;\"]*\d{2,9}[\s,;\"]+\d{1,6}(?:[\s,;\"]+\d{1,10}){13}[\s,;\"]*$", re.ASCII)
STRESS_START = re.compile(r"^stress-ng: info: {1,3}\[(\d{1,9})\] dispatching hogs: ")
STRESS_END = re.compile(r"^stress-ng: \w{4,5}: {1,3}\[\d{1,9}\] (?:un)?successful run completed")
STRESS_FIRST = re.compile(
    r"^stress-ng: \w{4,5}: {1,3}\[(\d{1,9})\] (?:invoked with|setting to a|defaulting to a|dispatching)"
)
SYSBENCH_START = re.compile(r"^sysbench v? ?\d{1,2}\.\d")
HEADERLESS = "iozone, no header"
FIRST = frozenset('s\t "IT#HCA{P')  # characters with which the first line of a tool begins


def clean(text: str) -> tuple[str, str]:
    """The rank that a tag names, and the line without tag, colours and the carriage return at its end."""
    text = text.rstrip("\r\n")
    if "\x1b" in text:
        text = ESCAPES.sub("", text)
    if text.startswith("[") and (tag := TAG.match(text)):
        return tag[1] or tag[2], text[tag.end() :]
    return "", text


def program_of(prompt: str) -> str:
    """The benchmark that a command line starts; "" when it starts another thing."""
    return next((name for name in PROGRAMS if re.search(rf"(?:^|[ /]){name}(?: |$)", prompt)), "")


def _is_row(text: str) -> bool:
    """Whether a line can only be a row of iozone's table: a file size, a record size, and 13 numbers."""
    if len(text) > 400 or IOZONE_ROW.match(text) is None:
        return False
    file_kb, record_kb = (int(word) for word in re.findall(r"\d+", text)[:2])
    return 0 < record_kb <= file_kb and file_kb & (file_kb - 1) == 0 and record_kb & (record_kb - 1) == 0


@dataclass
class _Open:
    """The section that lines are being added to."""

    tool: str = ""
    lines: list[Line] = field(default_factory=list)
    chars: int = 0
    started: int = 0
    ended: int = 0
    expected: int = 1
    pids: set[str] = field(default_factory=set)

    @property
    def over(self) -> bool:
        """Whether all that started have ended, and as many as the command line promised."""
        return self.started > 0 and self.ended >= self.started and self.started >= self.expected


def _start(text: str) -> str:
    """The tool whose run begins with this line; "" for all other lines. Cheap tests first: files have millions."""
    begins = text[:1]
    if begins == "s":
        if text.startswith("stress-ng: "):
            return "stress-ng"
        return "sysbench" if text.startswith("sysbench ") and SYSBENCH_START.match(text) else ""
    if "ozone:" in text and "Performance" in text:
        return "iozone"
    if "HPC Challenge Benchmark version" in text:
        return "hpcc"
    if text.startswith("HPLinpack ") and "benchmark" in text and "input file" not in text:
        return "hpl"
    if text.startswith(("Connecting to host ", "Accepted connection from ", "Client connecting to ")):
        return "iperf3"
    if text.startswith("{"):
        return "json"
    if text.startswith("PING "):
        return "ping"
    return ""


class Cutter:
    """Lines go in, finished sections come out."""

    def __init__(self) -> None:
        self.open = _Open()
        self.preamble: list[Line] = []
        self.expected = 1

    def sections(self, lines: Iterable[Line]) -> Iterator[Section]:
        for line in lines:
            yield from self.feed(line)
        yield from self.close()

    def feed(self, line: Line) -> Iterator[Section]:
        text, now = line.text, self.open
        if now.tool and now.chars > SECTION_CHARS:
            yield from self.close()
            now = self.open
        if ("$" in text or "#" in text or ">" in text) and PROMPT.match(text) and program_of(text):
            if now.tool:
                yield from self.close()
            ranks = RANKS.search(text)
            self.expected = int(ranks[1]) if (ranks and "mpi" in text) or (ranks and "srun" in text) else 1
            self._above(line)
            return
        tool = _start(text) if text[:1] in FIRST else ""
        if tool == "json" and now.tool == "iperf3 json" and not now.over:
            tool = ""
        elif tool == "json":
            tool = "iperf3 json"
        if not tool and not now.tool and (_is_row(text) or text.strip(' "\t,;').lower() == "writer report"):
            tool = HEADERLESS
        if tool and self._begins(tool, text):
            yield from self.close()
            self._begin(tool)
        elif not self.open.tool:
            self._above(line)
            return
        self._add(line)

    def _above(self, line: Line) -> None:
        self.preamble.append(line)
        del self.preamble[:-PREAMBLE_LINES]

    def _begins(self, tool: str, text: str) -> bool:
        """Whether a line that a tool prints first starts another section."""
        now = self.open
        if now.tool != tool:
            return not (tool == "hpl" and now.tool == "hpcc" and not now.over)
        if tool == "stress-ng":
            return now.over and STRESS_FIRST.match(text) is not None
        if tool in ("sysbench", "iozone"):
            return now.over
        return True  # the others: each start is a run of its own

    def _begin(self, tool: str) -> None:
        self.open = _Open(tool=tool, lines=list(self.preamble), expected=self.expected)
        self.open.chars = sum(len(line.text) for line in self.preamble)
        self.preamble.clear()

    def _add(self, line: Line) -> None:
        now, text = self.open, line.text
        now.lines.append(line)
        now.chars += len(text) + 1
        if now.tool == "stress-ng":
            if text.startswith("stress-ng: "):
                now.started += "dispatching hogs: " in text and STRESS_START.match(text) is not None
                now.ended += "run completed" in text and STRESS_END.match(text) is not None
        elif now.tool == "sysbench":
            now.started += text.startswith("sysbench ") and SYSBENCH_START.match(text) is not None
            now.ended += "execution time (avg/stddev):" in text
            now.ended += "bytes written in " in text or text.startswith("Removing test files")
        elif now.tool == "iozone":
            now.started += "ozone:" in text and "Performance" in text
            now.ended += "zone" in text and "complete." in text
        elif now.tool == "hpcc":
            now.started = 1
            now.ended += "End of HPC Challenge tests." in text
        elif now.tool == "iperf3 json":
            now.started = 1
            now.ended += text.startswith("}")

    def close(self) -> Iterator[Section]:
        """End the section that is open. A prompt or title at its end is left there: it may belong to either."""
        done, self.open = self.open, _Open()
        if done.tool:
            self.expected = 1
            tail: list[Line] = []
            if done.tool == "iperf3":  # titles and "Server listening" above the next session
                while done.lines and (
                    not done.lines[-1].text.strip() or done.lines[-1].text.startswith(("---", "Server"))
                ):
                    tail.insert(0, done.lines.pop())
            self.preamble = tail
            yield Section(done.tool, tuple(done.lines))


def cut(lines: Iterable[Line]) -> Iterator[Section]:
    """The runs in the lines of one file, in order. What is above the first or is no tool's stays out."""
    return Cutter().sections(lines)


def by_rank(lines: Iterable[Line]) -> dict[str, list[Line]]:
    """The lines of every rank that a tag names; all of them under "" when no line has a tag."""
    ranks: dict[str, list[Line]] = {}
    for line in lines:
        ranks.setdefault(line.rank, []).append(line)
    return ranks
