"""Nothing outside a provider's folder knows a provider's name: it asks for capabilities."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vtax
from vtax.providers import BUILT_IN

SOURCE = Path(vtax.__file__).parent
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "providers")
SHOWN_BY_MACHINES = SOURCE / "facts" / "nesting.py"  # a table of what hypervisors and engines show inside of them
WRITTEN_BY_ENGINES = SOURCE / "importing" / "prefixes.py"  # what they write before the lines of a log
SHARED = {"base", "recorded", "tunnel"}  # modules of providers/ that are no provider's
FORMATS = re.compile(r"\bdocker(-archive|://|\.io/| save)")  # of images: their names, whatever runs them
OF_AGENTS = SOURCE / "running" / "existing.py"  # a provider that is made of the agents of others
OF_PODS = SOURCE / "machines" / "host_pod.py"  # a pod as the way to its machine: made as the pods that are nodes
WORDS = {"host", "ssh", "kubernetes", "kubernetes-host"}  # names that are also words, or what a machine belongs to
NAMES = re.compile(rf"\b({'|'.join(name for name in BUILT_IN if name not in WORDS)})\b", re.IGNORECASE)


def constants(node: ast.AST) -> Iterator[object]:
    return (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))


def named(tree: ast.AST) -> Iterator[str]:
    """Where a module knows a provider: a text with its name, a comparison with a word, an import of its folder."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and (found := NAMES.search(FORMATS.sub("", node.value)))
        ):
            yield f"line {node.lineno}: {found[0]}"
        elif isinstance(node, ast.Compare | ast.Call) and WORDS.intersection(constants(node)):
            if "provider" in ast.unparse(node):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vtax.providers."):
            if str(node.module).split(".")[2] not in SHARED:
                yield f"line {node.lineno}: {node.module}"
        elif isinstance(node, ast.ImportFrom) and node.module == "vtax.providers":
            yield from (
                f"line {node.lineno}: {one.name}" for one in node.names if (SOURCE / "providers" / one.name).is_dir()
            )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_knows_a_provider(path: Path) -> None:
    if path not in (SHOWN_BY_MACHINES, WRITTEN_BY_ENGINES, OF_AGENTS, OF_PODS):
        assert list(named(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "line",
    [
        'KNOWN = {"docker"}',
        'help = "for QEMU only"',
        'help = "docker-archive: works without docker"',
        'spec.provider == "host"',
        'spec.provider == "ssh"',
        'one = provider("host", place)',
        "from vtax.providers.qemu import kvm",
        "from vtax.providers import container",
    ],
)
def test_what_would_be_found(line: str) -> None:
    assert list(named(ast.parse(line)))


def test_only_providers_choose_a_launcher() -> None:
    """All other modules know the protocol, and what the package says of a command line."""
    knowing = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.ImportFrom) and node.module == "vtax.launchers.mpirun")
        or (isinstance(node, ast.Name) and node.id == "Mpirun")
    }
    choosing = {f"providers/{name}/provider.py" for name in ("host", "container", "kubernetes", "qemu", "virtualbox")}
    assert knowing - {"launchers/mpirun.py"} == choosing
