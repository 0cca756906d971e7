"""docs/security.md: every clause names tests that are there and can fail; and what only the whole package shows."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import vtax
from fakes.cluster import result_of
from vtax.model.trial import CommandResult
from vtax.publishing import pdf
from vtax.transport import process

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "security.md"
PACKAGE = Path(vtax.__file__).parent
CLAUSE = re.compile(r"^\| (?P<clause>[^|]+) \| (?P<tests>`(?:unit|integration|contract)/[^|]+) \|$", re.MULTILINE)
FINDING = re.compile(r"^\| (?P<number>\d+) \| (?P<what>[^|]+) \| (?P<fix>[^|]+) \| (?P<tests>[^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(\w+(?:/\w+)*\.py)::(\w+)`")
CODE = ("pickle", "marshal", "shelve", "code")  # what they read may be code
OWN_PIPES = ("importing/workers.py",)  # between vtax and processes that it started
READING = ("analysis", "audit", "evidence", "export", "figures", "publishing", "report", "store", "tools")
OPENING = ("open", "read_text", "read_bytes", "write_text", "write_bytes", "touch")
OWN_FILES = {  # opened by name although they are in what reads campaigns: vtax's own, or in the user's cache
    "analysis/sequential/group_sequential.py",
    "figures/drawings.py",
    "figures/render.py",
    "publishing/pdf.py",
    "report/formats/html.py",
}
EXCUSED = ("skip", "skipif", "xfail")


def clauses() -> dict[str, list[tuple[str, str]]]:
    """Clause -> file and name of each of its tests."""
    text = PAGE.read_text(encoding="utf-8").partition("## Where it is tested")[2].partition("\n## ")[0]
    return {found["clause"]: TEST.findall(found["tests"]) for found in CLAUSE.finditer(text)}


@functools.cache
def functions(path: Path) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


def demands(node: ast.AST, helpers: frozenset[str] = frozenset()) -> bool:
    """Whether a function can fail by itself: it asserts, expects an error, or calls a helper that does."""
    for one in ast.walk(node):
        if isinstance(one, ast.Assert):
            return True
        if isinstance(one, ast.Call):
            name = getattr(one.func, "attr", getattr(one.func, "id", ""))
            if name == "raises" or name in helpers:
                return True
    return False


def helpers_of_tests() -> frozenset[str]:
    """Functions of the tests that assert something and are no tests themselves."""
    files = [path for path in TESTS.rglob("*.py") if "data" not in path.parts]
    found = (pair for path in files for pair in functions(path).items())
    return frozenset(name for name, node in found if not name.startswith("test_") and demands(node))


def findings() -> dict[str, list[tuple[str, str]]]:
    """Number of a finding of the review -> file and name of each of its tests."""
    text = PAGE.read_text(encoding="utf-8").partition("## What the first review found")[2].partition("\n## ")[0]
    return {found["number"]: TEST.findall(found["tests"]) for found in FINDING.finditer(text)}


def test_every_clause_has_tests_that_are_there_and_can_fail() -> None:
    helpers, found = helpers_of_tests(), {**clauses(), **findings()}
    assert list(findings()) == [str(number) for number in range(1, 21)]
    assert len(found) > 50
    for clause, tests in found.items():
        assert tests, clause
        for file, name in tests:
            node = functions(TESTS / file).get(name)
            assert node is not None, f"{clause}: {file} has no {name}"
            assert demands(node, helpers), f"{clause}: {name} demands nothing"
            marks = ast.unparse(ast.Tuple(elts=node.decorator_list, ctx=ast.Load())) if node.decorator_list else ""
            assert not re.search(rf"mark\.({'|'.join(EXCUSED)})\b", marks), f"{clause}: {name} may be left out"


def test_no_row_of_the_page_is_overlooked() -> None:
    """A row whose tests are written differently would not be checked."""
    text = PAGE.read_text(encoding="utf-8").partition("## Where it is tested")[2].partition("\n## ")[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    heads = [line for line in rows if line.startswith(("| Clause", "| ---"))]
    assert len(rows) - len(heads) == len(clauses())
    assert sum(len(tests) for tests in clauses().values()) == text.count(".py")


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def test_programs_are_started_by_one_module_and_never_by_a_shell() -> None:
    """`exec` replaces this process by a program given as words: SSH for a person, QEMU for its wrappers."""
    starting, replacing, forbidden = set(), set(), []
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                known = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
                starting |= {name} if {"subprocess", "pty"} & set(known) else set()
                forbidden += [f"{name}: {one}" for one in known if one in CODE and name not in OWN_PIPES]
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                replacing |= {name} if called.startswith(("os.exec", "os.spawn", "os.posix_spawn")) else set()
                if called in ("os.system", "os.popen", "eval", "exec") or any(k.arg == "shell" for k in node.keywords):
                    forbidden.append(f"{name}: {called}")
    assert starting == {"transport/process.py"}
    assert replacing == {"cli/cluster.py", "providers/qemu/confined.py", "providers/qemu/tap.py"}
    assert forbidden == []


def test_what_reads_campaigns_opens_files_by_one_module() -> None:
    """By vtax.files, which follows no link, waits for no pipe and has a limit; `Campaign.open` opens no file itself."""
    found = set()
    for name, tree in modules():
        for node in ast.walk(tree):
            if name.partition("/")[0] in READING and isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called.rpartition(".")[2] in OPENING and called not in ("Campaign.open", "cls.open", "files.open"):
                    found.add(name)
    assert found == OWN_FILES


@pytest.mark.parametrize("uid", [0, 1000])
def test_root_prints_a_page_as_nobody(uid: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[str, ...]] = []
    owners: list[tuple[int, int]] = []

    def run(argv: tuple[str, ...], **more: object) -> CommandResult:
        given.append(argv)
        output = next(word.partition("=")[2] for word in argv if word.startswith("--print-to-pdf="))
        Path(output).write_bytes(b"%PDF")
        return result_of(argv, (0, "", ""))

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr("os.geteuid", lambda: uid)
    monkeypatch.setattr("os.chown", lambda path, user, group: owners.append((user, group)))
    assert pdf.from_page("<script>x</script><p>page", "/usr/bin/chromium") == b"%PDF"
    ((first, *rest),) = given
    assert ("--no-sandbox" in rest) is (uid == 0)
    if uid == 0:
        assert [first, *rest[:6]] == [
            *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", "--"),
            "/usr/bin/chromium",
        ]
        assert set(owners) == {(65534, 65534)}
    else:
        assert (first, owners) == ("/usr/bin/chromium", [])
