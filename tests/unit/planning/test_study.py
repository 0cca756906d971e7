"""A study with mistakes: every one is reported at once, where it stands, with what is allowed."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vtax.errors import StudyError, UsageError
from vtax.model.nodes import Scope
from vtax.model.study import Selection, Study
from vtax.planning.presets import PRESETS, preset
from vtax.planning.schema import json_schema
from vtax.planning.study import check, load, parse, with_control
from vtax.planning.study_tables import StudyFile
from vtax.providers import option_models

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.toml"))

PLAIN = """\
name = "plain"
baseline = "host"
[environments.host]
provider = "host"
[environments.box]
provider = "docker"
[[benchmarks]]
name = "ping"
"""


def with_machine(line: str) -> str:
    return PLAIN.replace('"docker"', f'"qemu"\n{line}')


def test_every_card_goes_with_the_generic_kernel() -> None:
    study = parse(with_machine('nic = "e1000"') + '[image]\nkernel = "generic"', "(test)")
    assert study.image.kernel == "generic"
    assert study.environments[1].options["nic"] == "e1000"


def mistakes_of(text: str) -> dict[str, str]:
    """Path -> what is said about it."""
    with pytest.raises(StudyError) as caught:
        parse(text, "test.toml")
    assert caught.value.exit_code == 2
    assert len({mistake.path for mistake in caught.value.mistakes}) == len(caught.value.mistakes)
    return {mistake.path: str(mistake).removeprefix(f"{mistake.path}: ") for mistake in caught.value.mistakes}


def with_top(line: str) -> str:
    return f"{line}\n{PLAIN}"


def with_nodes(lines: str) -> str:
    return f"{PLAIN}[nodes]\n{lines}\n"


def with_box(lines: str) -> str:
    return PLAIN.replace('provider = "docker"\n', f'provider = "docker"\n{lines}\n')


def with_vm(lines: str) -> str:
    return with_box(lines).replace('"docker"', '"qemu"')


def with_ping(lines: str) -> str:
    return f"{PLAIN}{lines}\n"


# --- what is right -------------------------------------------------------------------------------------------------


def test_the_least_study_gets_every_default() -> None:
    study = parse(PLAIN, "test.toml")
    assert (study.rounds, study.seed, study.margin, study.settle_s, study.workers) == (6, 1, 0.02, 0.0, 2)
    assert (study.cpus, study.memory_bytes, study.disk_bytes, study.shared_path) == (None, None, None, "/shared")
    assert [(spec.name, spec.provider) for spec in study.environments] == [("host", "host"), ("box", "docker")]
    assert study.environments[1].options == {
        "cpu_limit": "cpuset",
        "runtime": None,
        "shm": 268_435_456,
        "mpi_transport": "auto",
        "network": "bridge",
        "cpu_share": None,
    }
    (ping,) = study.benchmarks
    assert (ping.label, ping.scopes, ping.nodes, ping.warmup, ping.iterations) == ("ping", (Scope.PAIRS,), (), 0, 1)
    assert ping.params == {"count": 100, "interval_s": 0.02}


def test_everything_that_can_be_set() -> None:
    study = parse(
        """\
name = "full"
seed = 7
rounds = 12
baseline = "box"
margin = 0.05
settle = "1.5 min"
[environments.box]
provider = "docker"
shm = "64 MiB"
cpu_limit = "quota"
[nodes]
workers = 3
cpus = 2
memory = "1.5 GiB"
disk = 8_000_000_000
[nodes.overrides.worker3]
memory = "1 GiB"
cpus = 1
[shared]
path = "/data"
[image]
suite = "sid"
mirror = "http://mirror.example/debian"
snapshot = "2026-11-01"
components = ["main"]
extra_packages = ["vim", "gdb"]
[[benchmarks]]
name = "hpl"
label = "small"
scopes = ["node", "workers", "node"]
nodes = ["worker3"]
warmup = 1
iterations = 3
n = [1000, 2000]
""",
        "test.toml",
    )
    assert (study.seed, study.rounds, study.margin, study.settle_s) == (7, 12, 0.05, 90.0)
    assert study.environments[0].options["shm"] == 67_108_864
    assert (study.workers, study.cpus, study.memory_bytes, study.disk_bytes) == (3, 2, 1_610_612_736, 8_000_000_000)
    assert study.overrides == {"worker3": {"cpus": 1, "memory_bytes": 1_073_741_824}}
    assert study.shared_path == "/data"
    assert (study.image.suite, study.image.components, study.image.extra_packages) == ("sid", ("main",), ("gdb", "vim"))
    assert study.image.snapshot == "2026-11-01"
    (hpl,) = study.benchmarks
    assert (hpl.label, hpl.scopes, hpl.warmup, hpl.iterations) == ("small", (Scope.NODE, Scope.WORKERS), 1, 3)
    assert hpl.params["n"] == [1000, 2000]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_loads(name: str) -> None:
    study = parse(preset(name), name)
    assert study.name == name
    assert study.baseline == "host"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_loads(path: Path) -> None:
    assert load(path).benchmarks


def test_looks_end_with_the_last_round_and_a_budget_is_in_seconds() -> None:
    study = parse(with_top('looks = [6, 10, 16]\nbudget = "2h"\norder_adjust = false'), "test.toml")
    assert (study.rounds, study.looks, study.budget_s, study.order_adjust) == (16, (6, 10, 16), 7200.0, False)


def test_a_fixed_number_of_rounds_is_one_look() -> None:
    study = parse(with_top("rounds = 12"), "test.toml")
    assert (study.rounds, study.looks, study.budget_s, study.control) == (12, (12,), None, False)
    assert (study.fixed(9).rounds, study.fixed(9).looks) == (9, (9,))


def test_anytime_looks_after_every_round_from_six_on() -> None:
    study = parse(with_top("anytime = true\nrounds = 60"), "test.toml")
    assert (study.anytime, study.rounds, study.looks) == (True, 60, tuple(range(6, 61)))


def test_a_study_written_before_there_were_looks_has_one() -> None:
    written = parse(PLAIN, "test.toml").model_dump(mode="json")
    del written["looks"]
    assert Study.model_validate(written).looks == (6,)


def test_the_control_arm_is_the_baseline_again() -> None:
    study = parse(with_top("control = true"), "test.toml")
    assert study.control_name == "control"
    arm, baseline = study.environments[-1], study.environments[0]
    assert (arm.provider, arm.options, arm.control_of) == (baseline.provider, baseline.options, "host")
    assert with_control(study) == study
    plain = parse(PLAIN, "test.toml")
    assert (plain.control_name, with_control(plain).environments) == (None, study.environments)


def test_the_name_of_the_control_arm_is_taken() -> None:
    text = PLAIN.replace("environments.box", "environments.control")
    assert "environments.control" in mistakes_of(f"control = true\n{text}")
    with pytest.raises(UsageError, match="control"):
        with_control(parse(text, "test.toml"))


def test_the_quick_example_is_the_quick_preset() -> None:
    quick = next(path for path in EXAMPLES if path.name == "quick.toml")
    assert quick.read_text() == preset("quick")


def test_an_environment_may_take_part_in_less() -> None:
    text = with_vm('only = ["ping"]\nrounds = 4\n[environments.box.emulated]\nskip = ["hpl"]\nrounds = 1')
    box = parse(f'{text}[[benchmarks]]\nname = "hpl"\nexploratory = true\n', "test.toml")
    spec = box.environments[1]
    assert spec.selection == Selection(only=("ping",), rounds=4)
    assert spec.emulated == Selection(skip=("hpl",), rounds=1)
    assert box.environments[0].selection == Selection()
    assert box.environments[0].emulated is None
    assert [one.exploratory for one in box.benchmarks] == [False, True]
    assert not {"only", "skip", "rounds", "emulated"} & set(spec.options)


def test_only_environments_that_may_be_emulated_have_a_table_for_it() -> None:
    alternatives = json_schema()["properties"]["environments"]["additionalProperties"]["oneOf"]
    having = {one["properties"]["provider"]["const"] for one in alternatives if "emulated" in one["properties"]}
    assert having == {"qemu", "virtualbox"}
    assert all({"only", "skip", "rounds"} <= set(one["properties"]) for one in alternatives)


def test_trials_are_interleaved_unless_the_study_says_cell() -> None:
    assert parse(PLAIN, "test.toml").interleave == "trial"
    assert parse(with_ping("iterations = 4"), "test.toml").interleave == "trial"
    study = parse(f'interleave = "cell"\n{with_ping("iterations = 3")}', "test.toml")
    assert (study.interleave, study.benchmarks[0].iterations) == ("cell", 3)


def test_odd_iterations_are_fine_where_nothing_alternates() -> None:
    alone = PLAIN.replace('[environments.box]\nprovider = "docker"\n', "") + "iterations = 3\n"
    assert parse(alone, "test.toml").benchmarks[0].iterations == 3


# --- what is wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path", "said"),
    [
        # unknown keys, at every level
        (with_top("round = 3"), "round", 'unknown key "round" (did you mean "rounds"? allowed: anytime, baseline,'),
        (with_top("int = 3"), "int", 'unknown key "int" (allowed: anytime, baseline,'),
        (
            with_nodes("worker = 2"),
            "nodes.worker",
            'unknown key "worker" (did you mean "workers"? allowed: cpus, disk,',
        ),
        (
            with_nodes("[nodes.overrides.worker1]\nmemroy = 1"),
            "nodes.overrides.worker1.memroy",
            'unknown key "memroy" (did you mean "memory"? allowed: cpus, disk, memory)',
        ),
        (PLAIN + "[shared]\npaht = 1", "shared.paht", 'unknown key "paht" (did you mean "path"? allowed: nfs, path)'),
        (PLAIN + "[image]\nsuit = 1", "image.suit", 'unknown key "suit" (did you mean "suite"? allowed: components,'),
        (
            with_box('cpu_limits = "quota"'),
            "environments.box.cpu_limits",
            'unknown key "cpu_limits" (did you mean "cpu_limit"? allowed: cpu_limit, cpu_share, mpi_transport, ',
        ),
        (
            with_ping("counts = 3"),
            "benchmarks[0].counts",
            'unknown key "counts" (did you mean "count"? allowed: all_pairs, alone, count, exploratory, interval_s,',
        ),
        # what environments take part in
        (
            with_box('only = ["pin"]'),
            "environments.box.only",
            "there is no entry with the label 'pin' (did you mean \"pi",
        ),
        (
            with_box('skip = ["pin"]'),
            "environments.box.skip",
            "there is no entry with the label 'pin' (did you mean \"pi",
        ),
        (with_box("only = []"), "environments.box.only", "the list is empty"),
        (with_box('only = "ping"'), "environments.box.only", "'ping': input should be a valid array"),
        (with_box('only = ["ping"]\nskip = ["ping"]'), "environments.box.skip", "it cannot be combined with `only`"),
        (with_box('skip = ["ping"]'), "environments.box.skip", "nothing is left to run"),
        (with_box("rounds = 0"), "environments.box.rounds", "0: input should be greater than or equal to 1"),
        (with_box("rounds = 99999"), "environments.box.rounds", "99999: input should be less than or equal to 1000"),
        (with_top("looks = [true]"), "looks[0]", "True: input should be a valid integer"),
        (
            with_box("rounds = 1").replace('baseline = "host"', 'baseline = "host"\nrounds = 0'),
            "rounds",
            "0: input should be greater than or equal to 1",
        ),
        (
            with_ping("one_way = true").replace('"ping"', '"startup"'),
            "benchmarks[0].one_way",
            'only scope "pairs" has two directions',
        ),
        (with_box("rounds = 7"), "environments.box.rounds", "7 is more than the 6 rounds of the study (6 at most)"),
        (
            f"looks = [6, 10]\n{with_box('rounds = 11')}",
            "environments.box.rounds",
            "11 is more than the 10 rounds of the study",
        ),
        (
            with_box("[environments.box.emulated]\nrounds = 1"),
            "environments.box.emulated",
            'provider "docker" emulates nothing (only for qemu, virtualbox)',
        ),
        (with_vm("emulated = 1"), "environments.box.emulated", "1 is not a table"),
        (
            with_vm("[environments.box.emulated]\nround = 1"),
            "environments.box.emulated.round",
            'unknown key "round" (did you mean "rounds"? allowed: iterations, only, rounds, skip)',
        ),
        (
            with_vm('[environments.box.emulated]\nonly = ["pong"]'),
            "environments.box.emulated.only",
            "there is no entry with the label 'pong' (did you mean \"ping\"?",
        ),
        (
            with_vm("[environments.box.emulated]\nrounds = 9"),
            "environments.box.emulated.rounds",
            "9 is more than the 6 rounds of the study",
        ),
        (
            PLAIN.replace('provider = "host"\n', 'provider = "host"\nrounds = 3\n'),
            "environments.host.rounds",
            "the baseline takes part in every round",
        ),
        (
            with_vm("[environments.box.emulated]\nrounds = 2").replace('baseline = "host"', 'baseline = "box"'),
            "environments.box.emulated",
            "the baseline takes part in every round",
        ),
        # interleaving
        (
            with_top('interleave = "trials"'),
            "interleave",
            "'trials' is not allowed (did you mean \"trial\"? allowed: cell",
        ),
        (with_ping("iterations = 3"), "benchmarks.ping.iterations", "3 is odd: interleaved iterations run in mirrored"),
        (
            with_ping('exploratory = "yes"'),
            "benchmarks[0].exploratory",
            "it is neither true, false nor a list of metrics",
        ),
        (with_ping("exploratory = []"), "benchmarks[0].exploratory", "it is neither true, false nor a list of metrics"),
        (with_ping('exploratory = ["rtt_mean"]'), "benchmarks[0].exploratory", "there is no primary metric 'rtt_mean'"),
        # loads
        (with_ping('load = "noise"'), "benchmarks.ping.load", "there is no entry without a load 'noise'"),
        (with_ping('load = "ping"'), "benchmarks.ping.load", "there is no entry without a load 'ping'"),
        (with_ping("alone = false"), "benchmarks.ping.alone", "no entry uses it as its load (name it as the `load`"),
        # missing keys
        (PLAIN.replace('name = "plain"\n', ""), "name", "is missing"),
        (PLAIN.replace('baseline = "host"\n', ""), "baseline", "is missing"),
        (PLAIN.replace('provider = "docker"\n', ""), "environments.box.provider", "is missing (allowed: container, do"),
        (PLAIN.replace('name = "ping"\n', ""), "benchmarks[0].name", "is missing (allowed: command, "),
        # wrong types: no number is made of a text, none of true
        (with_top("rounds = true"), "rounds", "True: input should be a valid integer"),
        (with_top('rounds = "3"'), "rounds", "'3': input should be a valid integer"),
        (with_top("settle = true"), "settle", "True: input should be a valid number"),
        (with_top("margin = nan"), "margin", "nan: input should be a finite number"),
        (with_top("settle = inf"), "settle", "inf: input should be a finite number"),
        (with_top("rounds = 1979-05-27"), "rounds", "dates and times are not used in a study"),
        (with_top(f"seed = {2**63}"), "seed", "the number is too large"),
        (with_nodes("workers = true"), "nodes.workers", "True: input should be a valid integer"),
        (
            with_nodes("memory = true"),
            "nodes.memory",
            "has none of the allowed forms (allowed: auto; or True: input sh",
        ),
        (with_nodes('cpus = "4"'), "nodes.cpus", "has none of the allowed forms (allowed: auto; or '4': input should"),
        (with_nodes("[nodes.overrides]\nworker1 = 1"), "nodes.overrides.worker1", "1 is not a table"),
        (with_box("shm = true"), "environments.box.shm", "True: input should be a valid integer"),
        (with_ping("count = true"), "benchmarks[0].count", "True: input should be a valid integer"),
        (with_ping('nodes = "worker1"'), "benchmarks[0].nodes", "'worker1': input should be a valid array"),
        # sizes, durations and ranges
        (with_nodes("memory = -5"), "nodes.memory", "a size is larger than zero"),
        (with_nodes("memory = 0"), "nodes.memory", "a size is larger than zero"),
        (with_nodes('disk = "-5 MiB"'), "nodes.disk", '"-5 MiB" is not a size; write a number and one of B, KiB, MiB'),
        (with_nodes('disk = "5 Mib"'), "nodes.disk", '"5 Mib" is not a size; write a number and one of B, KiB, MiB'),
        (with_nodes(f'memory = "{10**29}"'), "nodes.memory", f'"{10**29}" is not a whole number of bytes above zero'),
        (with_nodes("workers = 0"), "nodes.workers", "0: input should be greater than or equal to 1"),
        (with_nodes("cpus = 0"), "nodes.cpus", "has none of the allowed forms (allowed: auto; or 0: input should be"),
        (with_top('settle = "5 years"'), "settle", '"5 years" is not a duration; write a number and one of s, ms,'),
        (with_top("settle = -1"), "settle", "-1: input should be greater than or equal to 0"),
        (with_top("margin = 1.0"), "margin", "1.0: input should be less than 1"),
        (with_top("rounds = 0"), "rounds", "0: input should be greater than or equal to 1"),
        (
            with_box('shm = "1 KiB"'),
            "environments.box.shm",
            "'1 KiB': input should be greater than or equal to 1048576",
        ),
        (with_ping("count = 0"), "benchmarks[0].count", "0: input should be greater than or equal to 1"),
        (with_ping("warmup = -1"), "benchmarks[0].warmup", "-1: input should be greater than or equal to 0"),
        # looks
        (with_top("looks = []"), "looks", "the list is empty"),
        (
            with_top("anytime = true\nlooks = [6, 10]"),
            "anytime",
            "it already analyses after every round; it cannot be combined with `looks`",
        ),
        (with_top("anytime = true"), "rounds", "6 rounds leave no interim analysis before the end"),
        (with_top('anytime = "yes"'), "anytime", "'yes': input should be a valid boolean"),
        (with_top("looks = [10, 6]"), "looks", "[10, 6] does not increase"),
        (with_top("looks = [6, 6]"), "looks", "[6, 6] does not increase"),
        (with_top("looks = [3, 6]"), "looks", "the first analysis is after 3 rounds (start at 6 or later"),
        (with_top("looks = 6"), "looks", "6: input should be a valid array"),
        (with_top("looks = [6, 10]\nrounds = 12"), "rounds", "12 is not the last of `looks`"),
        (with_top("budget = 0"), "budget", "0: input should be greater than 0"),
        (with_top('budget = "-1 h"'), "budget", '"-1 h" is not a duration'),
        # names that are not there
        (
            PLAIN.replace('"docker"', '"dokcer"'),
            "environments.box.provider",
            "there is no provider 'dokcer' (did you me",
        ),
        (PLAIN.replace('"docker"', "3"), "environments.box.provider", "there is no provider 3 (allowed: container,"),
        (
            PLAIN.replace('"ping"', '"pong"'),
            "benchmarks[0].name",
            "there is no benchmark 'pong' (did you mean \"ping\"?",
        ),
        (
            with_box('cpu_limit = "quot"'),
            "environments.box.cpu_limit",
            "'quot' is not allowed (did you mean \"quota\"?",
        ),
        (
            PLAIN.replace('baseline = "host"', 'baseline = "hots"'),
            "baseline",
            "there is no environment 'hots' (did you mean \"host\"? allowed: box, host)",
        ),
        (
            with_ping('scopes = ["pair"]'),
            "benchmarks[0].scopes[0]",
            "'pair' is not allowed (did you mean \"pairs\"? allowed: cluster, node, pairs, provisioning, ",
        ),
        (with_ping('scopes = ["node"]'), "benchmarks[0].scopes", "there is no scope 'node' (allowed: pairs)"),
        (
            with_ping('nodes = ["worker1", "worker3"]'),
            "benchmarks[0].nodes",
            "there is no node 'worker3' (did you mean \"worker2\"? allowed: master, worker1, worker2)",
        ),
        (
            with_nodes("[nodes.overrides.worker9]"),
            "nodes.overrides.worker9",
            "there is no node 'worker9' (did you mean",
        ),
        (with_nodes("workers = 1\n[nodes.overrides.worker2]"), "nodes.overrides.worker2", "there is no node 'worker2'"),
        # virtual machines
        (
            with_machine('accel = "xen"'),
            "environments.box.accel",
            "'xen' is not allowed (allowed: auto, kvm, tcg)",
        ),
        (with_machine('network = "tab"'), "environments.box.network", "'tab' is not allowed (did you mean \"tap\"?"),
        (with_machine('vhost = "yes"'), "environments.box.vhost", "'yes' is not allowed (allowed: auto, off, on)"),
        (
            with_machine('nic = "e100"'),
            "environments.box.nic",
            "'e100' is not allowed (did you mean \"e1000\"? allowed: e1000, virtio, vmxnet3)",
        ),
        (
            with_machine('nic = "e1000"'),
            "environments.box.nic",
            'the "cloud" kernel has no driver for "e1000" (set kernel = "generic" in [image])',
        ),
        (with_machine('disk = "ide"'), "environments.box.disk", "'ide' is not allowed (allowed: nvme, virtio-blk)"),
        (with_machine('cache = "writback"'), "environments.box.cache", "'writback' is not allowed (did you mean"),
        (with_machine('format = "vmdk"'), "environments.box.format", "'vmdk' is not allowed (allowed: qcow2, raw)"),
        (with_machine('hugepages = "yes"'), "environments.box.hugepages", "'yes': input should be a valid boolean"),
        (PLAIN + '[image]\nkernel = "small"', "image.kernel", "'small' is not allowed (allowed: cloud, generic)"),
        # names that may not be
        (with_top("").replace('"plain"', '"Plain Text"'), "name", "'Plain Text' is not allowed (must match ^[a-z]"),
        (PLAIN.replace("environments.box", "environments.Box"), "environments.Box", "'Box' is not allowed (must match"),
        (PLAIN + '[shared]\npath = "/../etc"', "shared.path", "'/../etc' is not allowed (must match"),
        (PLAIN + '[image]\nextra_packages = ["vim", "a;b"]', "image.extra_packages[1]", "'a;b' is not allowed"),
        (PLAIN + '[image]\nmirror = "--setup-hook=id"', "image.mirror", "'--setup-hook=id' is not allowed (must match"),
        (
            PLAIN + '[image]\nmirror = "deb [trusted=yes] http://x/ y z"',
            "image.mirror",
            "'deb [trusted=yes] http://x/ y z' is not allowed",
        ),
        (
            PLAIN + '[image]\ncomponents = ["main", "a\\nb"]',
            "image.components[1]",
            "'a\\nb' is not allowed (must match",
        ),
        (PLAIN + '[image]\nsnapshot = "today"', "image.snapshot", "'today' is not allowed (must match"),
        (PLAIN + '[image]\nsnapshot = "2026-02-30"', "image.snapshot", "there is no such day or time: 2026-02-30"),
        (
            PLAIN + "[image]\nsnapshot = 2026-11-01",
            "image.snapshot",
            "dates and times are not used in a study (put strings",
        ),
        (
            PLAIN + '[image]\nmirror = "https://x/{snapshot}/y"',
            "image",
            "the mirror has {snapshot} in its address, but there is no `snapshot`",
        ),
        # what would never run, or run under one name
        (with_ping('nodes = ["worker1"]'), "benchmarks[0].nodes", 'scope "pairs" needs two nodes'),
        (
            PLAIN + '[[benchmarks]]\nname = "iozone"\nscopes = ["shared"]\nnodes = ["master"]',
            "benchmarks[1].nodes",
            'scope "shared" runs on workers only',
        ),
        (
            PLAIN + '[[benchmarks]]\nname = "ping"',
            "benchmarks",
            'two entries have the label "ping" (give one of them another label',
        ),
        # shapes
        (
            PLAIN.replace('[[benchmarks]]\nname = "ping"\n', "benchmarks = []\n"),
            "environments.box.benchmarks",
            "unknown",
        ),
        ("benchmarks = []\n" + PLAIN.replace('[[benchmarks]]\nname = "ping"\n', ""), "benchmarks", "[]: list should"),
        (
            "benchmarks = [1]\n" + PLAIN.replace('[[benchmarks]]\nname = "ping"\n', ""),
            "benchmarks[0]",
            "1 is not a table",
        ),
        (
            with_top("").replace("[environments.box]\n", "[environments]\nbox = 1\n[image]\n"),
            "environments.box",
            "1 is not",
        ),
    ],
)
def test_a_mistake_is_named_where_it_stands(text: str, path: str, said: str) -> None:
    found = mistakes_of(text)
    assert path in found
    assert found[path].startswith(said)


def test_all_mistakes_are_reported_at_once() -> None:
    text = """\
nam = "x"
rounds = 0
baseline = "hsot"
[environments.host]
provider = "host"
knob = 1
[environments.box]
provider = "dcker"
[nodes]
workers = 2
memory = "much"
[nodes.overrides.worker3]
cpu = 1
[[benchmarks]]
name = "ping"
count = 0
scopes = ["node"]
nodes = ["worker4"]
[[benchmarks]]
name = "hpll"
"""
    assert sorted(mistakes_of(text)) == [
        "baseline",
        "benchmarks[0].count",
        "benchmarks[0].nodes",
        "benchmarks[0].scopes",
        "benchmarks[1].name",
        "environments.box.provider",
        "environments.host.knob",
        "nam",
        "name",
        "nodes.memory",
        "nodes.overrides.worker3",
        "nodes.overrides.worker3.cpu",
        "rounds",
    ]


@pytest.mark.parametrize("text", ["name = ", "a = 1\na = 2", "[x", "x = [" * 5000, "x = " + "9" * 5000, "\0"])
def test_what_is_not_toml(text: str) -> None:
    assert mistakes_of(text)["(file)"].startswith("not valid TOML: ")


def test_a_study_has_limits() -> None:
    """A file of some kilobytes may take hours, or all memory: keys with many parts, lists with many values."""
    keys = f"{'a.' * 100_000}a = 1"
    with pytest.raises(StudyError, match="line 2 has more than 100 dots"):
        parse(f"[environments]\n{keys}\n", "keys.toml")
    with pytest.raises(StudyError, match="it has more than 10000 values"):
        parse(f"ladder = [{'1,' * 10_001}]\n", "values.toml")
    with pytest.raises(StudyError, match="it has more than 10000 values"):
        parse('[[benchmarks]]\nname = "ping"\n' * 6000, "entries.toml")


def test_a_study_file_is_bounded_and_regular(tmp_path: Path) -> None:
    (tmp_path / "large.toml").write_bytes(b"#" * (2**19 + 1))
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "link.toml").symlink_to("/etc/passwd")
    for name, said in (
        ("large.toml", "it is larger than 0.5 MiB"),
        ("pipe.toml", "it is not a regular file"),
        ("link.toml", "it is a symbolic link out of its folder, to /etc/passwd"),
    ):
        with pytest.raises(UsageError) as caught:
            load(tmp_path / name)
        assert said in caught.value.message
        assert caught.value.exit_code == 2
        assert caught.value.remedy


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml cannot be read: No such file or directory"):
        load(tmp_path / "none.toml")


def test_a_file_that_is_a_directory(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: Is a directory"):
        load(tmp_path)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "latin.toml"
    file.write_bytes('name = "größe"'.encode("latin-1"))
    with pytest.raises(UsageError, match="is not UTF-8 text"):
        load(file)


def test_the_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("")
    with pytest.raises(StudyError, match=rf"study {file}: 4 mistakes"):
        load(file)


# --- the schema ----------------------------------------------------------------------------------------------------


SCHEMA = jsonschema.Draft202012Validator(json_schema())


def refused(text: str) -> bool:
    return not SCHEMA.is_valid(tomllib.loads(text))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("text", [*map(preset, PRESETS), PLAIN], ids=[*PRESETS, "plain"])
def test_the_schema_takes_what_loads(text: str) -> None:
    SCHEMA.validate(tomllib.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        with_top('settle = "5 s"'),
        with_top("settle = 5"),
        with_nodes('memory = "2 GiB"'),
        with_nodes("memory = 2147483648"),
        with_nodes('[nodes.overrides.worker1]\ndisk = "1 GiB"'),
        with_box('shm = "64 MiB"'),
        with_box('cpu_limit = "quota"'),
        with_ping('nodes = ["worker1", "worker2"]'),
    ],
)
def test_the_schema_and_the_parser_take_the_same(text: str) -> None:
    parse(text, "test.toml")
    assert not refused(text)


@pytest.mark.parametrize(
    "text",
    [
        with_top("round = 3"),
        with_top("rounds = true"),
        with_top('rounds = "3"'),
        with_nodes("worker = 2"),
        with_nodes("memory = true"),
        with_nodes("memory = 0"),
        with_nodes("[nodes.overrides.worker1]\ncpu = 1"),
        with_box("shm = true"),
        with_box("cpu_limits = 1"),
        with_ping("counts = 1"),
        with_ping("count = true"),
        with_ping('scopes = ["pair"]'),
        PLAIN.replace('"docker"', '"dokcer"'),
        PLAIN.replace('"ping"', '"pong"'),
        PLAIN.replace('provider = "docker"\n', ""),
        PLAIN.replace('name = "plain"\n', ""),
    ],
)
def test_the_schema_and_the_parser_refuse_the_same(text: str) -> None:
    assert mistakes_of(text)
    assert refused(text)


def test_the_schema_knows_every_provider() -> None:
    alternatives = json_schema()["properties"]["environments"]["additionalProperties"]["oneOf"]
    assert {one["properties"]["provider"]["const"] for one in alternatives} == set(option_models())


# --- anything at all -----------------------------------------------------------------------------------------------

WORDS = [*StudyFile.model_fields, "provider", "workers", "overrides", "worker1", "host", "ping", "auto", "int", "[key]"]
KEYS = st.one_of(st.sampled_from(WORDS), st.text(max_size=5))
SCALARS = st.one_of(
    st.booleans(),
    st.integers(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from(WORDS),
    st.text(max_size=5),
    st.datetimes(),
    st.dates(),
    st.times(),
)
VALUES = st.recursive(
    SCALARS, lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(KEYS, inside, max_size=4))
)
RIGHT: dict[str, Any] = tomllib.loads(PLAIN + "[nodes]\nworkers = 2\n[nodes.overrides.worker1]\ncpus = 1\n")
PLACES: tuple[tuple[str | int, ...], ...] = (
    ("name",),
    ("settle",),
    ("environments",),
    ("environments", "box"),
    ("environments", "box", "shm"),
    ("nodes",),
    ("nodes", "overrides"),
    ("nodes", "overrides", "worker1"),
    ("nodes", "overrides", "worker1", "memory"),
    ("benchmarks",),
    ("benchmarks", 0),
    ("benchmarks", 0, "scopes"),
    ("benchmarks", 0, "count"),
)


def study_or_mistakes(raw: dict[str, Any]) -> Study | None:
    try:
        return check(raw, "test.toml")
    except StudyError as error:
        assert error.mistakes
        assert all(mistake.message for mistake in error.mistakes)
        return None


@given(st.dictionaries(KEYS, VALUES, max_size=6))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_table_is_a_study_or_has_mistakes(raw: dict[str, Any]) -> None:
    study_or_mistakes(raw)


def replaced(raw: Any, place: tuple[str | int, ...], value: Any) -> Any:
    if not place:
        return value
    if isinstance(raw, list):
        return [replaced(one, place[1:], value) if index == place[0] else one for index, one in enumerate(raw)]
    return {**raw, place[0]: replaced(raw.get(place[0]), place[1:], value)}


@given(st.sampled_from(PLACES), VALUES)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_value_anywhere_is_taken_or_is_a_mistake(place: tuple[str | int, ...], value: Any) -> None:
    study = study_or_mistakes(replaced(RIGHT, place, value))
    if study is not None:
        assert Study.model_validate_json(study.model_dump_json()) == study


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_study_or_has_mistakes(text: str) -> None:
    with pytest.raises(StudyError):
        parse(text, "test.toml")


@pytest.mark.parametrize("name", ["a/b", "..", "Big Box", "-x", "x" * 40, ""])
def test_a_name_that_could_be_a_path_is_one_mistake(name: str) -> None:
    text = PLAIN.replace("[environments.box]", f'[environments."{name}"]')
    with pytest.raises(StudyError) as caught:
        parse(text, "study.toml")
    assert [one.path for one in caught.value.mistakes if "environments" in one.path]
