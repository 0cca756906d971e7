"""The command line: what it prints, what it writes, and with which code it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from builders import oci
from builders.pages import whole
from fakes.kubectl import FakeKubectl
from vtax import __version__
from vtax.analysis.records import Note
from vtax.cli import main
from vtax.cli.analyse import lines_of
from vtax.cli.app import app
from vtax.model.cluster import Workload
from vtax.model.noise import NoiseReading, Probe
from vtax.model.plan import Plan
from vtax.planning.plan import digest
from vtax.planning.presets import PRESETS, preset
from vtax.planning.study import parse
from vtax.providers.host.provider import Host
from vtax.providers.kubernetes.checks import RIGHTS
from vtax.running import noise

HOST_ONLY = """\
name = "mine"
seed = 5
rounds = 2
baseline = "host"
[environments.host]
provider = "host"
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = 2
[[benchmarks]]
name = "ping"
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """`vtax` with these arguments in an empty directory: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(Host, "unavailable", lambda self: "")  # without asking the machine
    before = {number: signal.getsignal(number) for number in main.ENDING}

    def vtax(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["vtax", *arguments])
        code = 0
        try:
            main.main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield vtax
    for number, handler in before.items():
        signal.signal(number, handler)


def study(tmp_path: Path, text: str = HOST_ONLY) -> str:
    (tmp_path / "mine.toml").write_text(text)
    return "mine.toml"


def commands(group: Any = None, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The words of every command, and of every group of commands."""
    inside = getattr(typer.main.get_command(app) if group is None else group, "commands", {})
    return [path, *(words for name, one in inside.items() for words in commands(one, (*path, name)))]


# --- help and version ----------------------------------------------------------------------------------------------


def test_an_option_of_measure_without_a_value_is_not_one_left_out(run: Run) -> None:
    """Such as "$IMAGE" of a shell in which it is not set."""
    for option, said in (("--image", "--image is empty"), ("--in", "--in names no environment")):
        code, _, err = run("measure", option, "", "--", "true")
        assert (code, said in err) == (2, True)


def test_an_export_that_cannot_be_written_is_refused_before_anything_runs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "all.csv").mkdir()
    for name, said in (("all.csv", "is there already, and no file"), ("x.pdf", "the ending says no format")):
        code, _, err = run("measure", "--export", str(tmp_path / name), "--in", "host,docker", "--", "true")
        assert (code, said in err) == (2, True)


def test_all_commands_are_there() -> None:
    top = {path[0] for path in commands() if path}
    assert top == {
        *(
            "init",
            "schema",
            "workloads",
            "plan",
            "run",
            "measure",
            "analyse",
            "audit",
            "compare",
            "seal",
            "report",
            "export",
            "import",
            "compose",
        ),
        *("up", "status", "ssh", "exec", "down", "doctor", "clean", "image", "selftest"),
        *("watch", "serve", "peak", "reference", "tune"),
    }


@pytest.mark.parametrize("path", [path for path in commands() if path not in (("image",), ("selftest",))], ids=" ".join)
def test_every_command_shows_an_example(path: tuple[str, ...]) -> None:
    for flag in ("--help", "-h"):
        result = CliRunner().invoke(app, [*path, flag])
        assert result.exit_code == 0
        assert "Example:  vtax" in result.output


@pytest.mark.parametrize("arguments", [("--version",), ("--version", "plan")])
def test_the_version(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments) == (0, f"vtax {__version__}\n", "")


def test_no_command_is_a_usage_error_with_the_help(run: Run) -> None:
    code, out, err = run()
    assert code == 2
    assert "What does virtualization cost" in out + err


@pytest.mark.parametrize(
    "arguments", [("paln",), ("analyse",), ("plan", "--nonsense", "x.toml"), ("exec", "host"), ("run", "--rounds", "0")]
)
def test_a_wrong_command_line(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert "Usage: vtax" in err


# --- init and schema -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_init_writes_a_preset(run: Run, tmp_path: Path, name: str) -> None:
    code, out, err = run("init", name)
    assert (code, err) == (0, "")
    assert (
        out == f"{name}.toml is written; `vtax plan {name}.toml` shows what it does, `vtax run {name}.toml` does it\n"
    )
    assert (tmp_path / f"{name}.toml").read_text() == preset(name)
    assert parse((tmp_path / f"{name}.toml").read_text(), name).name == name


def test_init_prints(run: Run, tmp_path: Path) -> None:
    assert run("init", "-o", "-") == (0, preset("quick"), "")
    assert list(tmp_path.iterdir()) == []


def test_init_does_not_overwrite_unless_forced(run: Run, tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text("mine")
    code, out, err = run("init")
    assert (code, out) == (2, "")
    assert err == ("error: quick.toml exists already\n  next: --output FILE for another name, --force to replace it\n")
    assert (tmp_path / "quick.toml").read_text() == "mine"
    assert run("init", "--force")[0] == 0
    assert (tmp_path / "quick.toml").read_text() == preset("quick")


def test_init_knows_its_presets(run: Run) -> None:
    assert run("init", "quik") == (
        2,
        "",
        f"error: there is no preset 'quik'\n  next: did you mean \"quick\"? choose one of {', '.join(PRESETS)}\n",
    )


def test_init_where_nothing_can_be_written(run: Run) -> None:
    code, _, err = run("init", "-o", "nowhere/x.toml")
    assert code == 2
    assert err == "error: nowhere/x.toml cannot be written: No such file or directory\n  next: choose another place\n"


def test_the_schema_is_printed(run: Run) -> None:
    code, out, err = run("schema")
    assert (code, err) == (0, "")
    jsonschema.Draft202012Validator.check_schema(json.loads(out))


# --- plan ----------------------------------------------------------------------------------------------------------


def test_plan_shows_work_order_and_commands(run: Run, tmp_path: Path) -> None:
    code, out, err = run("plan", "--commands", study(tmp_path))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("study mine: 2 rounds, 2 cells, 2 trials, about ")
    assert lines[0].endswith("; seed 5")
    assert lines[1].startswith("plan sha256 ")
    assert re.search(r"^  worker1: CPUs \d+, memory 256 MiB, disk 4 GiB$", out, re.MULTILINE)
    assert "    worker1:/scratch/sysbench-cpu.worker1$ sysbench cpu --threads=1 --time=2 --events=0" in out
    assert "  round 1: host: sysbench-cpu.worker1" in lines
    assert "  ping between nodes is not run on host: its nodes share one network stack" in lines
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.toml"]  # nothing was started or written


def test_plan_shows_in_which_order_trials_alternate(run: Run, tmp_path: Path) -> None:
    text = SUMMARY.replace('interleave = "cell"', 'interleave = "trial"').replace(
        "time_s = 2", "warmup = 1\niterations = 4"
    )
    code, out, _ = run("plan", "--commands", study(tmp_path, text))
    assert code == 0
    (line,) = [one for one in out.splitlines() if one.startswith("  round 1: sysbench-cpu.worker1: ")]
    first, second = line.split(" (warm-up) ")[0].split()[-1], line.split(" (warm-up) ")[1].removesuffix(" (warm-up)")
    assert {first, second} == {"host", "again"}
    turns = f"{first} {second} {second} {first}"
    assert line.endswith(f": {first} (warm-up) {second} (warm-up) {turns} {turns}")
    assert "  round 1: memory.worker1: host" in out.splitlines()
    assert next(one for one in out.splitlines() if one.startswith("  round 9: ")).endswith(": host")


SUMMARY = """\
name = "mine"
looks = [6, 10]
baseline = "host"
margin = 0.05
interleave = "cell"
[environments.host]
provider = "host"
[environments.again]
provider = "host"
mpi_transport = "tcp"
skip = ["memory"]
rounds = 8
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = 2
exploratory = ["events_rate"]
[[benchmarks]]
name = "sysbench-memory"
label = "memory"
nodes = ["worker1"]
exploratory = true
[[benchmarks]]
name = "ping"
"""


def test_plan_is_a_summary(run: Run, tmp_path: Path) -> None:
    code, out, err = run("plan", study(tmp_path, SUMMARY))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "compares     again against host; equivalent is within 5 %"
    assert lines[1] == "rounds       10, 28 trials, one cluster after the other"
    # 18 cells of 1 s, 18 trials of 2.1 s, 10 of 10.1 s, 0.1 s more for each; of the first six rounds 12, 12 and 6
    assert lines[2].startswith(
        "time         about 2 min 40 s; about 1 min 40 s if all verdicts are clear after round 6, "
    )
    assert "to build the root file system" in out
    assert re.search(r"^nodes        master \(CPU \d+, 256 MiB\) and worker1 \(CPU \d+, 256 MiB\)$", out, re.MULTILINE)
    assert "decides      sysbench-cpu" in lines
    assert "exploratory  events_rate of sysbench-cpu, memory" in lines
    assert "left out     ping between nodes is not run on host: its nodes share one network stack" in lines
    assert "             again runs all but memory, in 8 of 10 rounds" in lines
    assert lines[-1] == "`vtax run mine.toml` does it; --commands shows every command in order"
    assert "$ " not in out
    assert all(len(line) <= 100 for line in lines)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_planned_by_its_name(run: Run, tmp_path: Path, name: str) -> None:
    code, out, _ = run("plan", "--json", name)
    assert code == 0
    assert Plan.model_validate_json(out).study.name == name
    (tmp_path / name).write_text(HOST_ONLY)  # a file of that name wins
    assert Plan.model_validate_json(run("plan", "--json", name)[1]).study.name == "mine"


@pytest.mark.parametrize("given", ["quik", "quik.toml"])
def test_a_preset_that_is_not_there(run: Run, given: str) -> None:
    code, out, err = run("run", given)
    assert (code, out) == (2, "")
    assert err == (
        f"error: the study {given} cannot be read: No such file or directory\n"
        f'  next: did you mean "quick"? give a file, which `vtax init` writes, or a preset: {", ".join(PRESETS)}\n'
    )


def test_plan_shows_looks_budget_control_and_ladder(run: Run, tmp_path: Path) -> None:
    text = HOST_ONLY.replace("rounds = 2", 'looks = [6, 10]\nbudget = "2 min"\ncontrol = true')
    code, out, _ = run("plan", "--commands", study(tmp_path, text))
    assert code == 0
    lines = out.splitlines()
    assert re.fullmatch(
        r"interim analyses after rounds 6 \(about .*\), 10 \(about .*\); ends at the first at which all primary "
        "metrics have a verdict",
        lines[1],
    )
    assert re.fullmatch(r"budget 2 min 0 s: about \d+ rounds", lines[2])
    assert "  control (control: repeats host): host mpi_transport=auto network=none" in lines


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--rounds", "3"], r"study mine: 3 rounds, 3 cells, 3 trials, "),
        (
            ["--rounds", "9", "--anytime"],
            r"interim analyses after every round from 6 to 9|interim analyses after rounds? 6.*9",
        ),
        (["--budget", "90 s"], r"budget 1 min 30 s: about \d+ rounds"),
    ],
)
def test_plan_shows_what_the_options_of_run_would_change(
    run: Run, tmp_path: Path, options: list[str], found: str
) -> None:
    code, out, err = run("plan", "--commands", study(tmp_path), *options)
    assert (code, err) == (0, "")
    assert re.search(found, out), out
    assert not re.search(found, run("plan", "--commands", "mine.toml")[1])


def test_plan_as_json_is_the_plan(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("plan", "--json", study(tmp_path))
    plan = Plan.model_validate_json(out)
    assert code == 0
    assert digest(plan) == plan.sha256
    assert run("plan", "--json", "mine.toml")[1] == out


def test_plan_of_more_than_there_is(run: Run, tmp_path: Path) -> None:
    code, out, err = run("plan", "--commands", study(tmp_path, HOST_ONLY.replace("cpus = 1\n", "cpus = 1000\n")))
    assert code == 0
    assert "  blocker: worker1 needs 1000 CPUs, but this machine offers " in out
    assert 'or to "auto"' in out
    assert "note: `vtax run` would refuse this study on this machine: worker1 needs 1000 CPUs" in err
    code, _, err = run("plan", "--check", "mine.toml")
    assert code == 2
    assert "error: the study asks for more than this machine has\n" in err


def test_run_refuses_more_than_there_is(run: Run, tmp_path: Path) -> None:
    code, out, err = run("run", study(tmp_path, HOST_ONLY.replace("cpus = 1\n", "cpus = 1000\n")))
    assert (code, out) == (2, "")
    assert err.startswith(
        "error: the study asks for more than this machine has\n  master needs 1000 CPUs, but this mach"
    )
    assert not (tmp_path / "campaigns").exists()


def test_plan_where_the_environment_does_not_work(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Host, "unavailable", lambda self: "unshare is not installed")
    code, out, err = run("plan", study(tmp_path))
    assert code == 0
    assert out.startswith("compares ")
    assert err == f"note: host is not available here now: unshare is not installed; {Host.install_hint}\n"
    code, _, err = run("plan", "--available", "mine.toml")
    assert code == 3
    assert "  environment host is left out: unshare is not installed\n" in err


PODS = """\
name = "mine"
baseline = "host"
[environments.host]
provider = "kubernetes-host"
nodes = { master = "n1", worker1 = "n2" }
[environments.pods]
provider = "kubernetes"
nodes = { master = "n1", worker1 = "n2" }
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
[[benchmarks]]
name = "ping"
"""


def test_rights_that_are_missing_in_a_cluster_are_named_before_anything_is_created(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    fake = FakeKubectl(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(fake.place), prepend=":")
    fake.answer("^version", {"serverVersion": {}})
    refused = ["create pods", "list nodes"]
    allowed = [f"{verb} {resource}" not in refused for verb, resource in RIGHTS]
    fake.answer(
        "^create --filename=- --output=json", "\n".join(json.dumps({"status": {"allowed": a}}) for a in allowed)
    )
    missing = "this user of the cluster may not create pods and list nodes"
    code, out, err = run("plan", study(tmp_path, PODS))
    assert (code, out.startswith("compares ")) == (0, True)
    assert f"note: pods is not available here now: {missing}; " in err
    assert f"note: host is not available here now: machine host-master (n1): {missing}; " in err
    assert "kubectl apply -f rbac.yaml" in err
    for words in (("plan", "--check"), ("run",)):
        code, _, err = run(*words, "mine.toml")
        assert (code, f"pods: {missing}\n" in err) == (3, True)
    assert {one["kind"] for one in fake.created()} == {"SelfSubjectAccessReview"}
    assert not (tmp_path / "campaigns").exists()


@pytest.mark.parametrize("command", ["plan", "run"])
def test_a_wrong_study_is_told_all_its_mistakes(run: Run, tmp_path: Path, command: str) -> None:
    wrong = (
        HOST_ONLY.replace("rounds = 2", "rounds = 0")
        .replace("time_s = 2", "times = 2")
        .replace('"host"\n[env', '"h"\n[env')
    )
    code, out, err = run(command, study(tmp_path, wrong))
    assert (code, out) == (2, "")
    assert err == (
        "error: study mine.toml: 3 mistakes\n"
        "  baseline: there is no environment 'h' (allowed: host)\n"
        '  benchmarks[0].times: unknown key "times" (did you mean "time_s"? allowed: all_pairs, alone, '
        "exploratory, iterations, label, load, matrix, max_prime, name, nodes, one_way, scopes, threads, time_s, "
        "warmup, workload)\n"
        "  rounds: 0: input should be greater than or equal to 1\n"
        "  next: fix the lines above; `vtax schema` prints every key, `vtax init` a commented example\n"
    )


@pytest.mark.parametrize("command", [("plan",), ("run",), ("image", "build"), ("up", "host", "--study")])
def test_a_study_that_is_not_there(run: Run, command: tuple[str, ...]) -> None:
    code, out, err = run(*command, "none.toml")
    assert (code, out) == (2, "")
    assert err == (
        "error: the study none.toml cannot be read: No such file or directory\n"
        f"  next: give a file, which `vtax init` writes, or a preset: {', '.join(PRESETS)}\n"
    )


@pytest.mark.parametrize("command", [("plan",), ("run",), ("image", "build"), ("up", "host", "--study")])
def test_a_mirror_is_no_option_of_mmdebstrap(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    owned = tmp_path / "owned"
    name = study(tmp_path)
    with Path(name).open("a", encoding="utf-8") as stream:
        stream.write(f'[image]\nmirror = "--setup-hook=touch {owned}; exit 1"\n')
    code, _, err = run(*command, name)
    assert code == 2
    assert "image.mirror: '--setup-hook=touch " in err
    assert not owned.exists()


def test_a_plan_shows_where_the_root_file_system_comes_from(run: Run, tmp_path: Path) -> None:
    name = study(tmp_path)
    with Path(name).open("a", encoding="utf-8") as stream:
        stream.write('[image]\nmirror = "http://mirror.example/debian"\nextra_packages = ["gdb", "vim"]\n')
    code, out, _ = run("plan", "--commands", name)
    assert code == 0
    assert "  Debian trixie (main non-free) from http://mirror.example/debian, cloud kernel\n" in out
    assert "  extra packages: gdb vim\n" in out
    code, out, _ = run("plan", name)
    assert code == 0
    words = " ".join(out.split())
    assert "packages Debian trixie (main non-free) from http://mirror.example/debian, cloud kernel; extra" in words


def test_a_plan_shows_of_which_day_the_root_file_system_is(run: Run, tmp_path: Path) -> None:
    name = study(tmp_path)
    with Path(name).open("a", encoding="utf-8") as stream:
        stream.write('[image]\nsnapshot = "2026-11-01"\n')
    code, out, _ = run("plan", name)
    assert code == 0
    words = "Debian trixie of 2026-11-01 (main non-free) from Debian's archive of snapshots, cloud kernel"
    assert words in " ".join(out.split())


def test_a_bill_of_materials_needs_a_root_file_system(run: Run, tmp_path: Path) -> None:
    code, out, err = run("image", "sbom", study(tmp_path), "--format", "xml")
    assert (code, out) == (2, "")
    assert "is not built" in err
    assert "next: run `vtax image build mine.toml` first\n" in err


def test_a_short_plan_leaves_out_the_packages_that_vtax_chose(run: Run, tmp_path: Path) -> None:
    assert "packages" not in run("plan", study(tmp_path))[1]


def test_a_plan_shows_own_commands_as_a_study_has_them(run: Run, tmp_path: Path) -> None:
    own = """
[[benchmarks]]
name = "command"
label = "served"
nodes = ["worker1"]
env = { LANG = "C" }
services = [{ command = ["serve"], ready = { line = 'now "ready"' } }]
run = { command = ["ask", "--port", "{port}"], seconds = 3 }
metrics = [{ name = "rate", unit = "1/s", kind = "rate, fixed time", primary = true, regex = 'r ([0-9]+)' }]
"""
    code, out, _ = run("plan", "--commands", study(tmp_path, HOST_ONLY + own))
    assert code == 0
    lines = out.splitlines()
    start = lines.index(next(line for line in lines if line.startswith("  host: served.worker1 (about ")))
    shown = [line.removeprefix("    ") for line in lines[start + 1 :]]
    assert shown[:6] == [
        'run = { command = ["ask", "--port", "{port}"], seconds = 3.0 }',
        'services = [{ command = ["serve"], ready = { line = "now \\"ready\\"" } }]',
        'metrics = [{ name = "rate", unit = "1/s", kind = "rate, fixed time", primary = true, regex = "r ([0-9]+)" }]',
        'env = { LANG = "C" }',
        "image = false",
        "port = 21002",  # it is the third entry
    ]
    assert shown[6].startswith("# words = { ")
    entry = 'name = "command"\nlabel = "served"\nnodes = ["worker1"]\n' + "\n".join(shown[:7])
    again = parse(HOST_ONLY + f"[[benchmarks]]\n{entry}\n", "again").benchmarks[-1]
    text = json.dumps(again.params["run"])
    assert '"command": ["ask", "--port", "{port}"]' in text
    assert '"seconds": 3.0' in text


@pytest.mark.parametrize("option", ["-o", "--output", "--into"])
def test_where_an_import_is_written(run: Run, tmp_path: Path, option: str) -> None:
    recorded = next((Path(__file__).parents[1] / "data" / "ping").glob("*/*.stdout"))
    (tmp_path / "log.txt").write_text(recorded.read_text())
    code, _, err = run("import", "log.txt", "-e", "host", option, "made")
    assert code == 0, err
    assert (tmp_path / "made" / "plan.json").exists()


def test_compose_needs_an_environment_of_containers(run: Run, tmp_path: Path) -> None:
    code, _, err = run("compose", study(tmp_path), "host")
    assert code == 2
    assert err.startswith("error: environment 'host' has provider 'host', which cannot write a Compose file\n")
    code, _, err = run("compose", "mine.toml", "docker")
    assert (code, err) == (2, "error: the study has no environment 'docker'\n  next: it has host\n")


# --- campaigns and clusters that are not there ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [("export", "none"), ("analyse", "none"), ("report", "none"), ("run", "--resume", "none")]
)
def test_a_campaign_that_is_not_there(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert (
        err
        == "error: none does not exist\n  next: give a campaign's directory; `vtax run` and `vtax import` make one\n"
    )


def test_a_format_that_is_not_there(run: Run) -> None:
    assert run("export", "none", "--format", "xls") == (
        2,
        "",
        "error: there is no format 'xls'\n  next: choose one of csv, jsonl, parquet, xlsx, openmetrics\n",
    )


@pytest.mark.parametrize("arguments", [(), ("a.toml", "--resume", "b")])
def test_run_needs_a_study_or_a_campaign(run: Run, arguments: tuple[str, ...]) -> None:
    code, _, err = run("run", *arguments)
    assert code == 2
    assert err == "error: give either a study or --resume DIR\n  next: for example `vtax run quick`\n"


@pytest.mark.parametrize("arguments", [("down", "host"), ("ssh", "host"), ("exec", "host", "worker1", "--", "true")])
def test_a_cluster_that_is_not_up(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: host is not up")


def test_nothing_is_up(run: Run) -> None:
    assert run("status") == (0, "no cluster is up; `vtax up container` brings one up\n", "")
    assert run("status", "--json") == (0, "[]\n", "")
    assert run("down") == (0, "no cluster is up\n", "")


def test_no_image_is_cached(run: Run) -> None:
    assert run("image", "list", "--json") == (0, "[]\n", "")
    code, _, err = run("image", "remove", "0123")
    assert code == 2
    assert err.startswith("error: ")


def with_own_image(tmp_path: Path, source: str) -> str:
    name = study(tmp_path)
    with Path(name).open("a", encoding="utf-8") as stream:
        stream.write(f'[image.workload]\nfrom = "{source}"\n')
    return name


def cached_own_image(tmp_path: Path, digest: str) -> Path:
    """An own image in the cache, as far as commands look at it; it names itself in its manifest."""
    place = tmp_path / "cache/vtax/workloads" / digest
    (place / "root").mkdir(parents=True)
    own = Workload(
        source="docker-archive:old.tar",
        digest=digest,
        directory=str(place),
        architecture=oci.HERE,
        libc="musl 1.2.5",
        size_bytes=3 * 2**20,
        entry=("/bin/app", "a b"),
        user="app",
        working_directory="/srv",
    )
    (place / "workload.json").write_text(own.model_dump_json())
    return place


def test_a_plan_shows_the_own_image(run: Run, tmp_path: Path) -> None:
    config = oci.configuration([oci.layer([])])
    oci.docker_archive(tmp_path / "app.tar", {"app:1": (config, [oci.layer([])])})
    name = with_own_image(tmp_path, "docker-archive:app.tar")
    code, out, err = run("plan", name)
    assert (code, err) == (0, "")
    words = " ".join(out.split())
    assert f"image docker-archive:app.tar; sha256 {oci.sha256(config)}; not unpacked yet" in words
    assert "once to build the root file system and unpack your own image" in words
    assert json.loads(run("plan", "--json", name)[1])["study"]["image"]["workload"] == {
        "source": "docker-archive:app.tar",
        "digest": oci.sha256(config),
    }
    cached_own_image(tmp_path, oci.sha256(config))
    words = " ".join(run("plan", name)[1].split())
    facts = f"{oci.HERE}, musl 1.2.5, 3 MiB; runs /bin/app 'a b'; as app in /srv"
    assert f"image docker-archive:app.tar; sha256 {oci.sha256(config)}; {facts}" in words
    assert "once to build the root file system" in words
    assert "unpack your own image" not in words
    assert "own image\n  docker-archive:app.tar\n" in run("plan", "--commands", name)[1]


def test_a_plan_asks_no_registry(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.image.workload.source.process.run", None)
    name = with_own_image(tmp_path, "docker://localhost:1/app:1")
    code, out, _ = run("plan", name)
    assert code == 0
    assert "docker://localhost:1/app:1; found out when a campaign starts; not unpacked yet" in " ".join(out.split())


@pytest.mark.parametrize("command", [("plan",), ("run",), ("image", "build"), ("up", "host", "--study")])
def test_an_own_image_that_is_not_there(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    code, out, err = run(*command, with_own_image(tmp_path, "docker-archive:app.tar"))
    assert (code, out) == (2, "")
    assert err.startswith(f"error: [image.workload]: {tmp_path}/app.tar does not exist\n")


def test_own_images_are_listed_and_removed(run: Run, tmp_path: Path) -> None:
    place = cached_own_image(tmp_path, "ab" * 32)
    disk = place.with_name(f"{place.name}.disk")
    disk.touch()
    cached_own_image(tmp_path, "cd" * 32)
    code, out, _ = run("image", "list")
    assert code == 0
    assert ["abababababab", "abababababab", "3", "MiB", "own", "image:", "docker-archive:old.tar"] in [
        line.split() for line in out.splitlines()
    ]
    assert [one["kind"] for one in json.loads(run("image", "list", "--json")[1])] == ["own image", "own image"]
    assert run("image", "remove", "ab")[0] == 2, "too short to name one"
    assert run("image", "remove", "abababababab") == (0, "abababababab removed\n", "")
    assert not place.exists()
    assert not disk.exists()
    assert len(json.loads(run("image", "list", "--json")[1])) == 1


# --- the ends of a command -----------------------------------------------------------------------------------------


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr("vtax.planning.study.load", fail)


def test_a_defect_of_ours_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, ZeroDivisionError("oh"))
    code, out, err = run("plan", "x.toml")
    assert (code, out) == (1, "")
    assert err.startswith("Traceback")
    assert err.endswith(
        "error: internal: ZeroDivisionError: oh\n"
        "  next: this is a defect of vtax; please report it with the lines above\n"
    )


def test_a_package_that_is_missing_is_installed_by_bootstrap(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """After `git pull` alone, vtax may need more than is installed."""
    failing(monkeypatch, ModuleNotFoundError("No module named 'new'", name="new.part"))
    code, out, err = run("plan", "x.toml")
    assert (code, out) == (3, "")
    assert err == (
        "error: the Python package new.part is not installed\n"
        "  next: run scripts/bootstrap, which installs what this version of vtax needs\n"
    )
    failing(monkeypatch, ModuleNotFoundError("No module named 'vtax.gone'", name="vtax.gone"))
    assert run("plan", "x.toml")[0] == 1


def test_an_interrupt_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, KeyboardInterrupt())
    assert run("plan", "x.toml") == (130, "", "interrupted; everything that was started has been removed\n")


def test_sigterm_interrupts_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def terminated(*arguments: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("it went on")

    monkeypatch.setattr("vtax.planning.study.load", terminated)
    assert run("plan", "x.toml")[0] == 130
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN


# --- campaigns: compare, gates, JUnit ------------------------------------------------------------------------------


def campaign(directory: Path, *, rounds: int = 6, **speed: float) -> str:
    """A campaign that has run; `speed` is how fast an environment was, 1 unless told. No two trials are the same."""
    from builders.small import PRINTED, as_fast, new_campaign, planned, store
    from fakes.cluster import FakeProvider

    providers = {name: FakeProvider(name, directory / "run") for name in ("host", "box")}
    made = new_campaign(directory / "c", providers, rounds=rounds)
    texts = {
        name: as_fast(PRINTED, speed.get(name.partition("/")[0].partition("-")[2], 1.0), number)
        for number, name in enumerate(planned(made.plan()))
    }
    store(made, texts)
    return str(made.directory)


GATE = "sysbench-cpu.events_rate slower than 5%"


def test_an_analysis_tells_looks_remarks_notes_and_advice() -> None:
    report = whole(rounds=3)
    first = next(one for one in report.analysis.comparisons if one.primary)
    note = Note(id="DRIFTS", message="it drifts")
    over = {"looks": (6, 10), "look": 6, "ended": "at last"}
    told = first.model_copy(update={"sentence": "slower", "remark": "6 rounds; emulated", "notes": (note,)})
    made = report.analysis.model_copy(
        update={"comparisons": (told, told), "advice": ("rest longer",), **over},
    )
    lines = list(lines_of(made))
    assert "interim analyses are planned after 6, 10 rounds; the last one so far was after 6" in lines
    assert "the campaign ended at last" in lines
    assert any(line.endswith("against host: slower; 6 rounds; emulated") for line in lines)
    (drifts,) = [line for line in lines if line.startswith("note DRIFTS: ")]
    assert drifts.endswith(": it drifts (and 1 more like it: --json, or the report)")
    assert lines[-1] == "for the next campaign: rest longer"


def test_an_analysis_begins_with_the_answer_of_the_report(run: Run, tmp_path: Path) -> None:
    made = campaign(tmp_path, box=0.5)
    code, out, _ = run("analyse", made)
    assert code == 0
    title, question = out.splitlines()[:2]
    assert title == "Box: CPU 49 % slower"
    assert question.startswith("What does virtualization cost, on this hardware, for this work?")
    assert "\nWhat limits this answer:\n- " in out
    assert run("report", made)[0] == 0
    assert (Path(made) / "report/report.md").read_text().startswith(f"# {title}\n")
    assert run("analyse", made, "--json")[1].startswith("{")


def test_a_gate_that_holds_and_one_that_does_not(run: Run, tmp_path: Path) -> None:
    good = campaign(tmp_path / "a")
    code, _, err = run("analyse", good, "--fail-on", GATE)
    assert (code, err) == (0, f'gate "{GATE}": holds\n')
    bad = campaign(tmp_path / "b", box=0.5)
    code, _, err = run("analyse", bad, "--fail-on", GATE, "--fail-on", "any primary faster than 5%")
    assert code == 5
    assert f'gate "{GATE}": failed\n  failed: sysbench-cpu.events_rate@box' in err
    assert 'gate "any primary faster than 5%": holds' in err
    assert "error: 1 of 2 gates failed" in err


def test_a_gate_that_cannot_be_judged_is_said_and_is_no_failure_unless_that_is_wanted(run: Run, tmp_path: Path) -> None:
    pilot = campaign(tmp_path, rounds=3)
    code, _, err = run("analyse", pilot, "--fail-on", GATE)
    assert code == 0
    assert err.startswith(f'warning: gate "{GATE}": not resolved; --fail-on inconclusive makes that a failure\n')
    assert run("analyse", pilot, "--fail-on", GATE, "--fail-on", "inconclusive")[0] == 5


@pytest.mark.parametrize(
    "gate", ["sysbench-cpu.events_rate is slower", "sysbench-cpu.event_rate slower than 5%", "hpl.HPL slower than 5%"]
)
def test_a_gate_that_is_none_is_refused_before_anything_is_done(run: Run, tmp_path: Path, gate: str) -> None:
    made = campaign(tmp_path)
    code, out, err = run("analyse", made, "--fail-on", gate)
    assert (code, out) == (2, "")
    assert err.startswith("error: --fail-on ")
    assert not (Path(made) / "analysis.json").exists()


def test_run_refuses_a_wrong_gate_and_a_wrong_place_for_junit_at_once(run: Run, tmp_path: Path) -> None:
    mine = study(tmp_path)
    assert run("run", mine, "--fail-on", "sysbench-cpu.event_rate slower than 5%")[0] == 2
    code, _, err = run("run", mine, "--junit", "nowhere/x.xml")
    assert (code, "this file cannot be written" in err) == (2, True)
    assert not (tmp_path / "campaigns").exists()


@pytest.mark.parametrize("budget", ["soon", "0", "-1 h"])
def test_run_refuses_a_budget_that_is_no_time(run: Run, tmp_path: Path, budget: str) -> None:
    code, _, err = run("run", study(tmp_path), "--budget", budget)
    assert (code, err.startswith("error: --budget")) == (2, True)


def test_the_plan_of_a_campaign_is_frozen(run: Run, tmp_path: Path) -> None:
    code, _, err = run("run", "--resume", campaign(tmp_path), "--rounds", "3")
    assert code == 2
    assert "frozen" in err


def test_junit_has_gates_and_verdicts(run: Run, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    code, _, _ = run("analyse", campaign(tmp_path), "--fail-on", GATE, "--junit", "out.xml")
    assert code == 0
    top = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert [suite.get("name") for suite in top] == ["small gates", "small verdicts"]
    assert (top.get("tests"), top.get("failures")) == ("2", "0")


def test_two_campaigns_side_by_side(run: Run, tmp_path: Path) -> None:
    a, b = campaign(tmp_path / "a"), campaign(tmp_path / "b", host=0.5, box=0.5)
    code, out, _ = run("compare", a, b)
    assert code == 0
    assert out.startswith(f"A  {a}: small, , 6 rounds complete\nB  {b}: small")
    assert "nothing that was recorded differs" in out
    assert "Rounds of different campaigns are not paired" in out
    assert re.search(r"^box: sysbench-cpu events_rate \(.*; 6 and 6 rounds\): differs: B ", out, re.M)
    assert re.search(r"^    the tax: B against A [+-]0", out, re.M)
    shown = json.loads(run("compare", a, b, "--environment", "box", "--json")[1])
    assert {change["environment"] for change in shown["changes"]} == {"box"}
    code, _, err = run("compare", a, b, "--fail-on", "sysbench-cpu.events_rate@host slower than 5%")
    assert code == 5
    assert "failed: sysbench-cpu.events_rate@host" in err


def test_what_cannot_be_compared_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    made = campaign(tmp_path)
    for arguments in ((made, made), (made, "nowhere"), ("nowhere", made)):
        code, out, err = run("compare", *arguments)
        assert (code, out) == (2, ""), err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SUMMARY.replace("rounds = 8", "rounds = 5"), "again takes part in 5 rounds: a verdict needs 6"),
        (
            SUMMARY.replace('"host"\n[environments.again]', '"host"\nonly = ["memory"]\n[environments.again]'),
            "again runs nothing that another environment runs too: none of it is compared",
        ),
        (SUMMARY, ""),
    ],
)
def test_plan_says_what_can_have_no_verdict(run: Run, tmp_path: Path, text: str, said: str) -> None:
    out = " ".join(run("plan", study(tmp_path, text))[1].split())
    assert said in out
    assert ("a verdict needs" in out or "none of it is compared" in out) == bool(said)


# --- doctor --noise ------------------------------------------------------------------------------------------------


def noisy(memory: float) -> NoiseReading:
    """A quiet CPU, memory of which adjacent slots differ by a factor, and a disk that was too slow."""
    pairs = {"CPU": 1.001, "memory": memory}
    probes = [Probe(name=name, rates=(100.0, 100.0 * factor) * 8) for name, factor in pairs.items()]
    return NoiseReading(
        elapsed_s=14.9,
        slot_s=0.28,
        apart_s=1.68,
        stolen=0.004,
        others=0.1,
        probes=(*probes, Probe(name="disk", rates=())),
    )


def test_doctor_says_what_the_noise_of_this_machine_lets_it_resolve(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "measure", lambda directory, listener: noisy(1.15))
    code, out, _ = run("doctor", "--noise")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "stolen CPU time 0.4 %, used by other programs 10.0 %"
    assert re.search(r"^ +adjacent slots +1.7 s apart +in 8 rounds +rounds for 5 %$", out, re.MULTILINE)
    assert re.search(r"^CPU +0.1 % +0.0 % +±0.1 % +8$", out, re.MULTILINE)
    assert "disk: too slow here to be measured in 15 s" in lines
    assert "other programs use" not in out
    assert "quick, 8 rounds of 2 interleaved iterations, can tell a difference of 5 % here: CPU" in lines
    assert re.search(
        r"^more rounds are needed for that: memory \(in \d+\); vtax run quick --rounds N$", out, re.MULTILINE
    )
    assert "plain loops in slots of 0.28 s. Runs of a second average some of it out" in lines[-1]
    busy = noisy(3.0).model_copy(update={"others": 0.5})
    monkeypatch.setattr(noise, "measure", lambda directory, listener: busy)
    assert "other programs use 50.0 % of the CPUs: stop them, and measure again" in run("doctor", "--noise")[1]
    assert "too noisy for that now: memory; measure again later" in run("doctor", "--noise")[1]


def test_the_noise_as_json(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "measure", lambda directory, listener: noisy(1.15))
    code, out, _ = run("doctor", "--noise", "--json")
    made = json.loads(out)
    assert code == 0
    assert made["shape"] == {"iterations": 2, "rounds": 8, "margin": 0.05}
    assert [one["name"] for one in made["resolutions"]] == ["CPU", "memory"]
    assert made["stolen"] == 0.004
