"""Words in braces in the commands of a study: a closed list, filled in once, in the plan, from the shape of the nodes.

`{cpus}` is replaced, `{{` and `}}` are braces. Nothing is ever filled in on a node, where it could differ between
environments.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping

from vtax.model.nodes import Scope, Target

PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
NAMES = {
    "cpus": "CPUs of a node; of the smallest one where nodes differ",
    "memory_bytes": "memory of a node, in bytes; of the smallest one where nodes differ",
    "nodes": "nodes that take part",
    "ranks": "CPUs of all nodes that take part: as many ranks as a parallel program should have",
    "threads": "the same as {cpus}",
    "dir": "the directory that the commands run in, on the node's own disk (of scope `shared`, on the shared one)",
    "shared": "the file system that all nodes see",
    "server": "the address of the node with the first service, as seen from the node with the command",
    "client": "the address of the node with the command",
    "seconds": "`seconds` of the run",
    "seed": "the seed of the study",
    "port": "a port that no other entry of the study uses",
}
ONE_NODE = "127.0.0.1"


class Unknown(ValueError):
    """Text with a word in braces that is not in the list, or with a single brace."""


def check(text: str, names: Collection[str]) -> None:
    """Raise Unknown, with the nearest right spelling, unless every word in braces in a text is one of `names`."""
    for _ in _parts(text, names):
        pass


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its words in braces replaced. Raises Unknown for one that is not in `values`."""
    return "".join(_parts(text, values, values))


def _parts(text: str, names: Collection[str], values: Mapping[str, str] | None = None) -> Iterator[str]:
    at = 0
    for found in PART.finditer(text):
        yield text[at : found.start()]
        at = found.end()
        word = found[1]
        if found[0] in ("{{", "}}"):
            yield found[0][0]
        elif word is None:
            raise Unknown(f"{text!r} has a single {found[0]}; write {found[0] * 2} for a brace")
        elif word not in names:
            raise Unknown(_unknown(word, names))
        else:
            yield values[word] if values is not None else ""
    yield text[at:]


def _unknown(word: str, names: Collection[str]) -> str:
    close = difflib.get_close_matches(word, sorted(names), n=1, cutoff=0.6)
    meant = f"did you mean {{{close[0]}}}? " if close else ""
    known = ", ".join(f"{{{name}}}" for name in sorted(names))
    return f"there is no {{{word}}}: {meant}allowed: {known}; write {{{{{word}}}}} for the text itself"


def of_shape(target: Target) -> dict[str, str]:
    """What the words about nodes stand for on a target."""
    smallest = min(node.cpus for node in target.nodes)
    found = {
        "cpus": smallest,
        "memory_bytes": min(node.memory_bytes for node in target.nodes),
        "nodes": len(target.nodes),
        "ranks": sum(node.cpus for node in target.nodes),
        "threads": smallest,
        "dir": target.directory,
    }
    return {name: str(value) for name, value in found.items()}


def address(node: str, target: Target, *, one_machine: bool) -> str:
    """How a node of a target is reached from its nodes: by name, or where all are one by the loopback interface."""
    alone = target.scope in (Scope.NODE, Scope.SHARED)
    return ONE_NODE if alone or one_machine else node


def text_of(value: object) -> str:
    """A value of a study as it appears in a command."""
    return f"{value:g}" if isinstance(value, float) else str(value)
