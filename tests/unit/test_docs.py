"""The documentation says what is so: the generated page, links, commands, options, presets and studies in it."""

from __future__ import annotations

import functools
import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main

from vtax import errors
from vtax.cli.app import app
from vtax.export.tables import COLUMNS, MACHINE
from vtax.model.nodes import Scope
from vtax.planning.presets import PRESETS
from vtax.planning.study import parse
from vtax.planning.study_tables import BenchmarkTable, EnvironmentTable, MachineTable, SlurmTable, StudyFile
from vtax.providers import option_models
from vtax.tools import benchmarks
from vtax.tools.command.workload import Workload

TOP = Path(__file__).resolve().parents[2]
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", TOP / "CHANGELOG.md", *sorted((TOP / "docs").glob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`]+)`")
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@functools.cache
def generator(name: str = "metrics-reference") -> ModuleType:
    """A script as a module; it leaves no compiled file beside itself."""
    loader = SourceFileLoader(name.replace("-", "_"), str(TOP / "scripts" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def anchors(page: Path) -> set[str]:
    """What `#...` may name in a page, as GitHub makes it of headings."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def quoted(page: Path) -> Iterator[list[str]]:
    """The words of every vtax command that a page quotes, in text or in a block, without `vtax` itself."""
    text = page.read_text()
    lines = [line for _, block in BLOCK.findall(text) for line in block.splitlines()]
    lines += [code.replace("\n", " ") for code in CODE.findall(BLOCK.sub("", text))]
    for line in lines:
        for part in line.removeprefix("$ ").split("&&"):
            words = shlex.split(part.replace("'", ""), comments=True)
            words = words[3:] if words[:2] == ["uvx", "--from"] else words
            if words[:1] == ["vtax"] and len(words) > 1 and not words[1].isdecimal():
                yield words[1:]


def refusal(words: list[str]) -> str:
    """Why the command line that begins with `words` cannot be; "" when it can."""
    command: Any = typer.main.get_command(app)  # click's, or the copy of click that newer Typers carry
    rest = list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts) if name.startswith("-")}
    for word in rest[: rest.index("--") if "--" in rest else None]:
        if word.startswith("-") and word != "-" and word.partition("=")[0] not in {*options, "-h", "--help"}:
            return f"there is no option {word}"
    return ""


def test_the_metrics_page_is_the_generated_one() -> None:
    assert (TOP / "docs" / "metrics.md").read_text() == generator().page(), "run `make docs`"


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(BLOCK.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        there = page.parent / path if path else page
        assert there.exists(), link
        assert not anchor or anchor in anchors(there), link


@pages
def test_quoted_commands_exist_with_their_options(page: Path) -> None:
    for words in quoted(page):
        assert not refusal(words), " ".join(words)


def test_a_command_that_is_not_there_is_noticed() -> None:
    assert refusal(["runn", "quick.toml"]) == "there is no command runn"
    assert refusal(["run", "--rond", "6"]) == "there is no option --rond"
    assert refusal(["image", "bild"]) == "there is no command bild"
    assert refusal(["exec", "docker", "worker1", "--", "ls", "--all"]) == ""
    assert len(list(quoted(TOP / "docs" / "tutorial.md"))) > 20


def test_presets_named_exist() -> None:
    commands = (words for page in PAGES for words in quoted(page))
    named = {words[1] for words in commands if words[:1] == ["init"] and words[1:] and not words[1].startswith("-")}
    assert named
    assert named <= set(PRESETS)
    text = (TOP / "docs" / "study.md").read_text()
    assert all(f"`{preset}`" in text for preset in PRESETS)


def test_the_reference_of_commands_is_current() -> None:
    page = (TOP / "docs" / "commands.md").read_text()
    assert page == generator("command-reference").page(), "run `make docs`"
    assert page.count("\n## vtax ") > 30
    assert all(f"## vtax {name}\n" in page for name in ("seal", "import", "image sbom"))


def test_studies_in_the_documentation_are_valid() -> None:
    blocks = [(page, text) for page in PAGES for kind, text in BLOCK.findall(page.read_text()) if kind == "toml"]
    assert blocks
    for page, text in blocks:
        parse(whole(text), page.name)


FRAME = 'name = "x"\nbaseline = "host"\n[environments.host]\nprovider = "host"\n'
ENTRY = '[[benchmarks]]\nname = "command"\nlabel = "own"\nrun = {{ command = ["true"]{} }}\n'


def whole(text: str) -> str:
    """A study of which `text` is all, or a part: keys or metrics of an entry, entries, or tables besides them."""
    if re.search(r"^baseline = ", text, re.MULTILINE):
        return text
    entry = ENTRY.format(", seconds = 20" if "fixed time" in text else "")
    if text.startswith("[[benchmarks.metrics]]") or not text.startswith("["):
        return FRAME + entry + text
    return FRAME + text if "[[benchmarks]]" in text else FRAME + text + entry


def table_of(text: str, heading: str) -> dict[str, str]:
    """First cell -> second cell of the tables under a heading."""
    part = re.split(rf"^##+ {re.escape(heading)}\n", text, flags=re.MULTILINE)
    assert len(part) == 2, heading
    return dict(ROW.findall(re.split(r"^##", part[1], flags=re.MULTILINE)[0]))


@pytest.mark.parametrize("name", [name for name, one in benchmarks().items() if not isinstance(one, Workload)])
def test_the_study_page_has_every_parameter_with_its_default(name: str) -> None:
    heading = "hpcc, hpl" if name in ("hpcc", "hpl") else name
    shown = table_of((TOP / "docs" / "study.md").read_text(), heading)
    model = benchmarks()[name].params
    properties = model.model_json_schema()["properties"]
    wanted = {key: generator().default_of(model.model_fields[key].default, part) for key, part in properties.items()}
    assert {key: cell.strip("`") for key, cell in shown.items()} == wanted


def test_the_study_page_has_every_key_and_option() -> None:
    text = (TOP / "docs" / "study.md").read_text()
    assert set(table_of(text, "Top level")) == set(StudyFile.model_fields)
    options = {key for model in option_models().values() for key in model.model_fields}
    assert set(table_of(text, "`[environments.NAME]`")) == {"provider", *EnvironmentTable.model_fields, *options}
    assert set(table_of(text, "`[machines.NAME]`")) == set(MachineTable.model_fields)
    assert set(table_of(text, "`machines.NAME.slurm`")) == set(SlurmTable.model_fields)
    keys = set(BenchmarkTable.model_fields)
    assert set(table_of(text, "`[[benchmarks]]`")) - {scope.value for scope in Scope} == keys
    for heading, field in (("`[nodes]`", "nodes"), ("`[shared]`", "shared"), ("`[image]`", "image")):
        model = StudyFile.model_fields[field].annotation
        keys = set(table_of(text, heading)) | (
            {"overrides"} if "`overrides.NODE`" in text and field == "nodes" else set()
        )
        assert model is not None
        assert keys == set(model.model_fields)


def test_the_campaign_page_has_every_column_and_exit_code() -> None:
    text = (TOP / "docs" / "campaign.md").read_text()
    after = COLUMNS.index("trial") + 1
    assert tuple(table_of(text, "Export")) == (*COLUMNS[:after], MACHINE, *COLUMNS[after:])
    codes = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "exit_code")}
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {0, *codes}


def test_the_audit_page_is_the_generated_one() -> None:
    assert (TOP / "docs" / "audit.md").read_text() == generator("audit-reference").page(), "run `make docs`"
