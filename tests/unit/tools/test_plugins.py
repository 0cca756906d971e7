"""Plug-ins of others: found by their entry points; one that is broken is reported, and everything else goes on."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fakes.cluster import FakeProvider
from vtax import providers, tools
from vtax.errors import EnvironmentMissing, StudyError
from vtax.facts import node
from vtax.facts.sections import MARK
from vtax.image import recipe
from vtax.importing.sections import cut
from vtax.model.study import ImageSpec
from vtax.planning.schema import json_schema
from vtax.planning.study import parse
from vtax.tools.reading import Line
from vtax.tools.trials import read_section

BENCHMARK = """\
from vtax.tools.ping.benchmark import Ping
from vtax.tools.tool import Tool

class Other(Ping):
    name = "{name}"

Mine = Tool(name="{name}", benchmarks=(Other(),))
"""
PROVIDER = """\
from fakes.cluster import FakeProvider

class Mine(FakeProvider):
    def __init__(self, runtime):
        super().__init__("mine", runtime)
"""
READER = """\
from vtax.tools.reading import Reading, Section
from vtax.tools.tool import LogFormat, Tool

def starts(line):
    return line.startswith("{{" if {json} else "toy ")

def read(section):
    return Reading("toy", facts={{"read": "by the plug-in"}}, ended=True)

Mine = Tool(
    name="toy",
    benchmarks=(),
    logs=(LogFormat("toy", read, starts, first="t{{", together={json}, mark='"toy"' if {json} else ""),),
    commands=("toybench",),
)
"""
BENCHMARKS = list(tools.benchmarks())
BROKEN = {  # what the module holds -> what is said of it
    "import nothing_of_that_name": "ModuleNotFoundError: No module named 'nothing_of_that_name'",
    "from vtax.model import nothing": "ImportError: cannot import name 'nothing'",
    "Other = 1": "AttributeError: module 'plugin_0' has no attribute 'Mine'",
    "class Mine(": "SyntaxError: ",
    "Mine = 7": "",  # TypeError or AttributeError
    "Mine = int('seven')": "ValueError: invalid literal",
    "Mine = nonsense": "NameError: name 'nonsense' is not defined",
    "raise RuntimeError('no licence')": "RuntimeError: no licence",
    "Mine = {}['key']": "KeyError: 'key'",
    "open('/nothing/of/that/name')": "FileNotFoundError: ",
    "Mine = 1 / 0": "ZeroDivisionError: ",
    "assert False, 'not here'": "AssertionError: not here",
    "class Mine:\n    pass": "",  # so has a class with nothing in it
}

Install = Callable[..., None]


@pytest.fixture(params=[tools, providers], ids=["benchmarks", "providers"])
def group(request: pytest.FixtureRequest) -> str:
    return str(request.param.GROUP)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Modules `plugin_0`, `plugin_1`, ... with these texts, each with an entry point to its `Mine` in the group."""

    def with_modules(group: str, *texts: str, names: tuple[str, ...] = ("mine", "other", "third")) -> None:
        points = []
        for number, text in enumerate(texts):
            (tmp_path / f"plugin_{number}.py").write_text(text)
            sys.modules.pop(f"plugin_{number}", None)  # of an earlier call
            points.append(EntryPoint(names[number], f"plugin_{number}:Mine", group))
        importlib.invalidate_caches()

        def entry_points(*, group: str) -> list[EntryPoint]:
            return [point for point in points if point.group == group]

        for registry in (tools, providers):
            monkeypatch.setattr(registry, "entry_points", entry_points)
            registry._found.cache_clear()

    monkeypatch.syspath_prepend(str(tmp_path))
    yield with_modules
    for number in range(3):
        sys.modules.pop(f"plugin_{number}", None)
    for registry in (tools, providers):
        registry._found.cache_clear()


def registry_of(group: str) -> tuple[list[str], tuple[str, ...]]:
    """The names that are known, and what is said of the broken ones."""
    if group == tools.GROUP:
        return list(tools.benchmarks()), tools.broken_plugins()
    return list(providers.provider_names()), providers.broken_plugins()


def test_without_plug_ins_there_are_the_built_in_ones(install: Install) -> None:
    install(tools.GROUP)
    assert list(tools.benchmarks()) == BENCHMARKS
    assert list(providers.provider_names()) == list(providers.BUILT_IN)
    assert tools.broken_plugins() == providers.broken_plugins() == ()


def test_a_benchmark_of_others(install: Install) -> None:
    install(tools.GROUP, BENCHMARK.format(name="pong"))
    assert list(tools.benchmarks()) == [*BENCHMARKS, "pong"]
    study = parse(STUDY.format(environment="host", benchmark="pong"), "mine.toml")
    assert [(entry.name, entry.params["count"]) for entry in study.benchmarks] == [("pong", 100)]
    assert "pong" in str(json_schema()["properties"]["benchmarks"])


def test_logs_of_others_are_cut_and_read_by_their_reader(install: Install) -> None:
    install(tools.GROUP, READER.format(json=False))
    lines = ["toy 1.0", "result 7", "$ ./toybench", "toy 1.0", "PING node2 (10.9.0.2) 56(84) bytes of data."]
    found = list(cut(Line(number, "", text) for number, text in enumerate(lines, start=1)))
    assert [(one.tool, one.first, one.last) for one in found] == [("toy", 1, 2), ("toy", 3, 4), ("ping", 5, 5)]
    assert read_section(found[0]).facts == {"read": "by the plug-in"}


@pytest.mark.parametrize(("key", "found"), [("toy", ["toy"]), ("test_start", ["iperf3 json"]), ("other", [])])
def test_json_of_others_is_told_apart_by_what_is_in_it(install: Install, key: str, found: list[str]) -> None:
    install(tools.GROUP, READER.format(json=True))
    lines = [Line(number, "", text) for number, text in enumerate(("{", f' "{key}": 1', "}"), start=1)]
    assert [one.tool for one in cut(lines)] == found


def test_the_packages_and_programs_of_others_are_installed_and_recorded(install: Install) -> None:
    text = BENCHMARK.format(name="pong").replace(
        "benchmarks=", 'packages=("pong-utils",), programs=("pong",), benchmarks='
    )
    install(tools.GROUP, text)
    assert "pong-utils" in recipe.recipe(ImageSpec(), "").packages
    assert "pong" in recipe.programs()
    assert "pong-utils" in node.script(packages=tools.packages())
    printed = f"\n{MARK} packages\npong-utils 1.2-3\n\n{MARK} end\n"
    assert node.parse("worker1", printed).values["versions"] == {"pong-utils": "1.2-3"}


def test_a_provider_of_others(install: Install, tmp_path: Path) -> None:
    install(providers.GROUP, PROVIDER)
    assert providers.provider_names() == (*providers.BUILT_IN, "mine")
    assert isinstance(providers.provider("mine", tmp_path), FakeProvider)
    study = parse(STUDY.format(environment="mine", benchmark="ping"), "mine.toml")
    assert [(spec.provider, spec.options) for spec in study.environments] == [("mine", {"knob": 1})]
    assert "knob" in str(json_schema())
    with pytest.raises(StudyError, match='"mine" is a plug-in, and vtax sends only itself to machines'):
        parse(STUDY.format(environment="mine", benchmark="ping") + '[machines.a]\nssh = "a"\n', "mine.toml")


STUDY = """\
name = "mine"
baseline = "here"
[environments.here]
provider = "{environment}"
[[benchmarks]]
name = "{benchmark}"
"""


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_plug_in_is_reported_and_the_others_load(install: Install, group: str, text: str) -> None:
    well = BENCHMARK.format(name="other") if group == tools.GROUP else PROVIDER
    built_in = BENCHMARKS if group == tools.GROUP else providers.BUILT_IN
    install(group, text, well)
    names, broken = registry_of(group)
    assert names == [*built_in, "other"]
    (said,) = broken
    assert said.startswith(f"plug-in mine (plugin_0:Mine) is left out: {BROKEN[text]}")
    assert json_schema()["title"] == "vtax study"
    with pytest.raises(StudyError):  # it is not known, and that is all
        environment, benchmark = ("host", "mine") if group == tools.GROUP else ("mine", "ping")
        parse(STUDY.format(environment=environment, benchmark=benchmark), "mine.toml")


def test_a_provider_with_options_of_another_kind(install: Install) -> None:
    install(providers.GROUP, "class Mine:\n    options = dict\n")
    (said,) = providers.broken_plugins()
    assert "TypeError: its options are <class 'dict'>, not a subclass of Options" in said


def test_several_broken_ones_are_all_reported(install: Install, group: str) -> None:
    install(group, "import nothing_of_that_name", "Mine = nonsense", "1 +")
    _, broken = registry_of(group)
    assert [said.split()[1] for said in broken] == ["mine", "other", "third"]


def test_a_plug_in_does_not_take_the_place_of_a_built_in_one(install: Install, tmp_path: Path) -> None:
    install(tools.GROUP, BENCHMARK.format(name="hpl"))
    assert type(tools.benchmarks()["hpl"]).__module__ == "vtax.tools.hpcc.hpl"
    install(providers.GROUP, PROVIDER, names=("host",))
    assert providers.broken_plugins() == ()  # it could have been taken
    assert type(providers.provider("host", tmp_path)).__module__ == "vtax.providers.host.provider"


def test_a_plug_in_does_not_take_the_place_of_a_built_in_reader(install: Install) -> None:
    before = tools.log_formats()["ping"]
    install(tools.GROUP, READER.format(json=False).replace('LogFormat("toy"', 'LogFormat("ping"'))
    assert tools.broken_plugins() == ()
    assert tools.log_formats()["ping"] is before


def test_a_provider_that_is_not_there(install: Install, tmp_path: Path) -> None:
    install(providers.GROUP, "import nothing_of_that_name")
    with pytest.raises(EnvironmentMissing, match="there is no provider 'mine'") as caught:
        providers.provider("mine", tmp_path)
    assert (
        caught.value.remedy == "choose one of host, docker, podman, qemu, virtualbox, kubernetes, ssh, kubernetes-host"
    )
