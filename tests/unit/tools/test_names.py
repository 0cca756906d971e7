"""Nothing outside a tool's folder knows the tool's name, or that of one of its benchmarks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vtax
from vtax.tools import tools

SOURCE = Path(vtax.__file__).parent
WORDS = {"command"}  # names that are English words too: every other message contains them
KNOWN = {name for tool in tools() for name in (tool.name, *(one.name for one in tool.benchmarks))}
NAMES = sorted(KNOWN - WORDS, key=len)
NAMED = re.compile(rf"(?<![\w-])(?:{'|'.join(reversed(NAMES))})(?![\w-])")
MODULES = re.compile(r"^vtax\.tools\.(\w+)")
ALLOWED = {  # file -> why it may
    "tools/stated.py": "states metrics of tables as own commands do",
    "tools/__init__.py": "lists the folders of the built-in tools",
    "cli/tune.py": "the command that works out the parameters of HPL",
    "cli/gating.py": "an example in --help",
    "cli/import_.py": "examples in --help",
    "importing/layout.py": "an example in an error message",
    "analysis/gates.py": "an example in an error message",
    "selftest/objects.py": "the campaign with an injected difference runs one benchmark",
    "sealing/names.py": "knows where outputs name a host",
    "providers/qemu/command.py": "a kind of network device of QEMU has the name of a benchmark",
    "running/crossing.py": "verifies with a program of the root file system what crosses machines",
    "running/startup.py": "writes the file that this tool reads",
    "selftest/inject.py": "the campaign with an injected difference runs one benchmark",
}


def files() -> list[str]:
    every = (path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    folders = {one.parent.name for one in (SOURCE / "tools").glob("*/__init__.py")}
    return sorted(name for name in every if not (name.startswith("tools/") and name.split("/")[1] in folders))


def docstrings(tree: ast.Module) -> set[int]:
    """Prose about the code, of which examples are a part."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)))
    firsts = (body[0].value for body in bodies if body and isinstance(body[0], ast.Expr))
    return {id(first) for first in firsts if isinstance(first, ast.Constant)}


def named(file: str) -> Iterator[str]:
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    prose = docstrings(tree)
    folders = {one.parent.name for one in (SOURCE / "tools").glob("*/__init__.py")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            if found := NAMED.search(node.value):
                yield f"{file}:{node.lineno}: {found[0]!r} in {node.value[:60]!r}"
        elif isinstance(node, ast.ImportFrom) and (found := MODULES.match(node.module or "")) and found[1] in folders:
            yield f"{file}:{node.lineno}: imports {node.module}"


@pytest.mark.parametrize("file", files())
def test_no_tool_is_known_by_its_name(file: str) -> None:
    if file in ALLOWED:
        assert list(named(file)), f"{file} needs no exception any more"
    else:
        assert list(named(file)) == []
