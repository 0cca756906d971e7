"""Campaigns, logs, studies, samples and images made to do harm, and every command of vtax, with strace as the judge.

Each trick is its own copy of a good campaign, so that a refusal of one does not hide another; one copy has them all.
Whatever a command says, it opens, renames, removes, connects to and executes nothing but what is listed in judge.py,
and it ends.
"""

from __future__ import annotations

import io
import json
import os
import socket
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import polars
import pytest

from builders.small import PRINTED, new_campaign, planned, store, store_cells
from fakes.cluster import FakeProvider
from vtax.cli.app import app
from vtax.export import parquet
from vtax.export.tables import COLUMNS
from vtax.model.study import MachineSpec, SlurmSpec

from .conftest import CPU, study
from .judge import Machine, Reader, effect, judge, judge_files

pytestmark = pytest.mark.integration
CAMPAIGN = ("analyse", "audit", "report", "export", "watch", "compare", "serve", "seal", "from", "extend", "resume")
STUDY = ("plan", "sample", "run", "image build", "image sbom", "image export", "compose", "up", "measure")
AWAY = ("sample", "measure", "image build", "image sbom", "image export")  # look at no machine
ON_MACHINES = ("doctor on machines", "clean on machines")  # with a study that names some
LOGS = ("import", "layout")
SEALED = ("seal --check", "from a sealed one", "compare a sealed one")
NOTHING = (  # of others, but the directory in which they are called
    *("init", "schema", "status", "ssh", "exec", "down", "image list", "image remove", "reference list"),
    *("reference show", "tune hpl", "peak", "workloads"),
)
ELSEWHERE = {
    "doctor": "asks this machine what works, by starting it; with --machines: below",
    "clean": "labels of others: unit/providers/test_leftovers.py; what was killed: chaos; --machines: below",
    "selftest inject": "runs a study of vtax's own",
    "selftest stats": "simulates, and reads nothing",
}


def every_command() -> Iterator[str]:
    """The commands that `vtax --help` lists, those of its groups with both words."""
    yield from (command.name or "" for command in app.registered_commands)
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from (
            f"{group.name} {one.name or one.callback.__name__}"
            for one in group.typer_instance.registered_commands
            if one.callback
        )


def test_no_command_is_forgotten(tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    lines = [reader.command(name) for name in (*CAMPAIGN, *STUDY, *ON_MACHINES, *LOGS, *SEALED, *NOTHING)]
    tried = {words[0] for words in lines} | {" ".join(words[:2]) for words in lines}
    assert [name for name in every_command() if name not in tried | ELSEWHERE.keys()] == []
    assert [name for name in ELSEWHERE if name not in every_command()] == []


def changed(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))


def record_of(campaign: Path) -> Path:
    return next(campaign.glob("trials/*/*/record.json"))


def output_of(campaign: Path) -> Path:
    return next(campaign.glob("trials/*/*/*.stdout"))


def replaced(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink()
    make(path)


def temporary_links(campaign: Path, home: Path) -> None:
    for number in range(2000):
        (campaign / f".audit.json.{number}.tmp").symlink_to(home / "precious")


def poisoned_plan(plan: Any) -> None:
    plan["work"][0]["steps"][0]["argv"] = ["sh", "-c", "touch /tmp/owned"]
    plan["study"]["image"]["mirror"] = "--setup-hook=touch /tmp/owned"


def many_nodes(campaign: Path) -> None:
    """A plan of a gigabyte and a million nodes, were it read."""
    path = campaign / "plan.json"
    plan = json.loads(path.read_bytes())
    node = json.dumps(plan["shape"]["nodes"][0])
    plan["shape"]["nodes"] = ["NODES"]
    path.write_text(json.dumps(plan).replace('"NODES"', ",".join([node] * 1_000_000)))


ESCAPES = "\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07"
TRICKS: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda campaign, home: None,
    "an id": lambda campaign, home: changed(campaign / "campaign.json", lambda about: about.update(id=str(home))),
    "a command": lambda campaign, home: changed(campaign / "plan.json", poisoned_plan),
    "an argument": lambda campaign, home: changed(
        campaign / "plan.json", lambda plan: plan["work"][0]["steps"][0].update(argv=["sh", "-c", "touch /tmp/owned"])
    ),
    "a report elsewhere": lambda campaign, home: (campaign / "report").symlink_to(home),
    "a lock elsewhere": lambda campaign, home: (campaign / ".lock").symlink_to(home / "precious"),
    "temporary files": temporary_links,
    "a file of the reader": lambda campaign, home: changed(
        record_of(campaign), lambda record: record["steps"][0].update(stdout=str(home / "precious"))
    ),
    "output elsewhere": lambda campaign, home: replaced(
        output_of(campaign), lambda path: path.symlink_to(home / "precious")
    ),
    "endless output": lambda campaign, home: replaced(output_of(campaign), lambda path: path.symlink_to("/dev/zero")),
    "a pipe": lambda campaign, home: replaced(output_of(campaign), os.mkfifo),
    "much output": lambda campaign, home: output_of(campaign).write_text(PRINTED + "1" * 20_000_000),
    "escapes": lambda campaign, home: changed(
        record_of(campaign), lambda record: record.update(status="failed", failure=ESCAPES)
    ),
    "a million nodes": lambda campaign, home: many_nodes(campaign),
    "endless rounds": lambda campaign, home: changed(
        campaign / "plan.json", lambda plan: plan["study"].update(rounds=10**15, looks=[10**15])
    ),
    "ten gigabytes": lambda campaign, home: os.truncate(record_of(campaign), 10 * 2**30),
    "everything": lambda campaign, home: everything(campaign, home),
}


def everything(campaign: Path, home: Path) -> None:
    """All of them, each on a trial of its own."""
    outputs = sorted(campaign.glob("trials/*/*/*.stdout"))
    records = [output.with_name("record.json") for output in outputs]
    for name in ("an id", "a command", "a report elsewhere", "a lock elsewhere", "temporary files"):
        TRICKS[name](campaign, home)
    changed(records[0], lambda record: record["steps"][0].update(stdout=str(home / "precious")))
    replaced(outputs[1], lambda path: path.symlink_to(home / "precious"))
    replaced(outputs[2], lambda path: path.symlink_to("/dev/zero"))
    replaced(outputs[3], os.mkfifo)
    outputs[4].write_text(PRINTED + "1" * 20_000_000)
    changed(records[5], lambda record: record.update(status="failed", failure=ESCAPES))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of four rounds."""
    top = tmp_path_factory.mktemp("good")
    made = new_campaign(top / "campaign", {name: FakeProvider(name, top) for name in ("host", "docker")}, rounds=4)
    store(made, dict.fromkeys(planned(made.plan()), PRINTED))
    return made.directory


SAYS = {"a million nodes": "values", "ten gigabytes": "it is larger than 256 MiB"}


def test_the_judge_sees_what_a_command_does(tmp_path: Path, good: Path) -> None:
    """Else all that follows would prove nothing. One command is started as a person does it."""
    reader = Reader(tmp_path, good)
    done = reader.traced("report", plainly=True)
    assert ("execve", sys.executable) in done
    written = {Path(what).name for call, what in done if call.startswith("rename")}
    assert {"index.html", "report.md", "analysis.json", "audit.json"} <= written
    assert [one for one in dict.fromkeys(done) if not reader.allowed(*one)] == []
    reader.traced("serve")
    assert "<title>" in reader.page, "it was fetched from a server that ran"
    assert reader.watched.events() == 0
    (reader.home / "precious").read_bytes()
    assert reader.watched.events() > 0, "the second judge sees it when a file is only read"
    assert not reader.allowed("rename", str(reader.home / "precious"))
    assert not reader.allowed("execve", "/bin/sh")
    assert not reader.allowed("execve", str(tmp_path / "docker")), "a name of a program is not enough"
    away = f'openat(7<{reader.home}>, "precious", O_WRONLY|O_CLOEXEC) = 8<{reader.home}/precious>'
    assert effect(away) == ("openat", str(reader.home / "precious"))
    assert effect(away.replace("O_WRONLY", "O_RDONLY")) == ("read", str(reader.home / "precious"))
    assert not reader.allowed("read", str(reader.home / "precious"))
    assert not reader.allowed("read", "/root/.ssh/id_ed25519")
    assert not reader.allowed("open", "/etc/passwd"), "what may be read is not written"
    with Machine(tmp_path) as machine:
        (tmp_path / "made").write_text("")
        subprocess.run(["true"], check=True)
    made = {(call, Path(path).name) for pid, call, path in machine.seen if pid == os.getpid() or call == "execve"}
    assert {("open", "made"), ("execve", "true")} <= made


SHORT = (
    *("an id", "a command", "a report elsewhere", "a pipe", "escapes", "everything"),  # one of each sort
    *("a million nodes", "ten gigabytes"),
)


@pytest.mark.parametrize(
    "trick", [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in TRICKS]
)
def test_looking_at_a_hostile_campaign_does_nothing_else(trick: str, tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "good.txt").write_text(PRINTED)
    TRICKS[trick](reader.campaign, reader.home)
    judge(reader, CAMPAIGN)
    judge_files(reader, reader.campaign)
    if trick in SAYS:
        assert SAYS[trick] in reader.ended["report"].printed
        assert reader.ended["report"].code == 2


@pytest.fixture(scope="module")
def on_machines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign on a machine behind SSH and on two nodes of Slurm."""
    top = tmp_path_factory.mktemp("machines")
    slurm = SlurmSpec(name="c", nodes=2, partition="main", time_s=600, wait_s=60)
    machines = {"a": MachineSpec(ssh="root@node17", directory="/srv/vtax")}
    machines |= dict.fromkeys(slurm.machines, MachineSpec(slurm=slurm))
    providers = {name: FakeProvider(name, top) for name in ("host", "docker")}
    made = new_campaign(top / "campaign", providers, rounds=2, machines=machines)
    store(made, dict.fromkeys(planned(made.plan()), PRINTED))
    store_cells(made)
    return made.directory


def on_machine(plan: Any, name: str = "a", **update: object) -> None:
    plan["study"]["machines"][name].update(update)


def in_job(plan: Any, **update: object) -> None:
    for name in ("c1", "c2"):
        plan["study"]["machines"][name]["slurm"].update(update)


def renamed(plan: Any, name: str) -> None:
    """A machine with another name, everywhere."""
    plan["study"]["machines"][name] = plan["study"]["machines"].pop("a")
    plan["capacities"][name] = plan["capacities"].pop("a")
    for cell in plan["cells"]:
        cell["machine"] = name if cell["machine"] == "a" else cell["machine"]


def facts_of_cells(campaign: Path, **update: object) -> None:
    for path in campaign.glob("cells/*.json"):
        changed(path, lambda cell: cell["host_facts"].update(update))


PROXY = "-oProxyCommand=touch /tmp/owned"
ODD_JOB = {"job": "--user=root", "node": ESCAPES, "partition": "../../home/precious", "exclusive": [], "node_cpus": "x"}
ON_PLAN: dict[str, Callable[[Any], object]] = {  # and every command says what is wrong with it
    "a destination": lambda plan: on_machine(plan, ssh=PROXY),
    "a destination for a shell": lambda plan: on_machine(plan, ssh="node17;touch /tmp/owned"),
    "two ways": lambda plan: on_machine(plan, "c1", ssh="node17"),
    "a directory": lambda plan: on_machine(plan, directory="/srv\n-x"),
    "a directory that is an option": lambda plan: on_machine(plan, shared="--help"),
    "an address": lambda plan: on_machine(plan, address="127.0.0.1;id"),
    "an option of a job": lambda plan: in_job(plan, options=["--wrap touch /tmp/owned"]),
    "a partition": lambda plan: in_job(plan, partition="main\n--uid=0"),
    "an account": lambda plan: in_job(plan, account="--uid=0"),
    "a million nodes of a job": lambda plan: in_job(plan, nodes=10**6, name="x/../y"),
    "a name that is a path": lambda plan: renamed(plan, "../../home"),
    "a name that is an option": lambda plan: renamed(plan, PROXY),
}
ON_FILES: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda campaign, home: None,
    "a job": lambda campaign, home: facts_of_cells(campaign, slurm=ODD_JOB),
    "a job that is none": lambda campaign, home: facts_of_cells(campaign, slurm=[[5]]),
    "facts": lambda campaign, home: facts_of_cells(
        campaign, hostname=[ESCAPES], machine_id={"x": 1}, boot_id=7, clock_offset_s="x", clock_ahead_s=[]
    ),
    "machines": lambda campaign, home: changed(
        campaign / "campaign.json", lambda about: about.update(machines={str(home / "precious"): 5, "a": [ESCAPES]})
    ),
    "machines that are none": lambda campaign, home: changed(
        campaign / "campaign.json", lambda about: about.update(machines="a" * 1000)
    ),
    "a record of another machine": lambda campaign, home: changed(
        record_of(campaign), lambda record: record.update(machine="../../home", failure=ESCAPES)
    ),
    "other options": lambda campaign, home: changed(
        campaign / "plan.json", lambda plan: in_job(plan, options=["--constraint=fast"])
    ),
}


def shortly(names: Iterable[str], short: Container[str]) -> list[Any]:
    """Parameters, of which those that are not `short` are tried by `make test-long`."""
    return [pytest.param(name, marks=() if name in short else pytest.mark.long) for name in names]


@pytest.mark.parametrize(
    "trick", shortly((*ON_PLAN, *ON_FILES), ("a destination", "an option of a job", "a job", "facts"))
)
def test_a_hostile_campaign_on_machines_logs_in_nowhere(trick: str, tmp_path: Path, on_machines: Path) -> None:
    """No command reaches a machine or asks Slurm for one, `--resume` included: it was not made here."""
    reader = Reader(tmp_path, on_machines)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "good.txt").write_text(PRINTED)
    if trick in ON_PLAN:
        changed(reader.campaign / "plan.json", ON_PLAN[trick])
    else:
        ON_FILES[trick](reader.campaign, reader.home)
    judge(reader, CAMPAIGN)
    judge_files(reader, reader.campaign)
    assert reader.ended["resume"].code == 2
    if trick in ON_PLAN:
        assert {reader.ended[name].code for name in ("report", "audit", "export", "seal")} == {2}
        assert "plan.json is damaged" in reader.ended["report"].printed
    elif trick.startswith("machines"):
        assert "campaign.json is damaged" in reader.ended["report"].printed
    else:
        assert "was not made here, and uses machines: root@node17" in reader.ended["resume"].printed
    assert not Path("/tmp/owned").exists()


def hostile_logs(logs: Path, home: Path) -> None:
    """A folder of logs with all that a folder can have in it."""
    logs.mkdir()
    (logs / "good.txt").write_text(PRINTED)
    (logs / "elsewhere.txt").symlink_to(home / "precious")
    (logs / "folder").symlink_to(home)
    (logs / "itself").symlink_to(logs)
    os.mkfifo(logs / "pipe.txt")
    os.mknod(logs / "zero.txt", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(logs / "socket.txt"))
    (logs / "e\x1b[31mred.txt").write_text(PRINTED.replace("1092.04", "1092.05"))
    (logs / "--help").write_text(PRINTED.replace("1092.04", "1092.06"))
    (logs / "escapes.txt").write_text(PRINTED.replace("1092.04", ESCAPES))
    (logs / "sections.json").write_text("{\n}\n" * 20_000)
    (logs / "deep.json").write_text("{" * 100_000)
    header = ",".join(COLUMNS)
    for number, trial in enumerate(("../../home/x", "/etc/x", "a/..", str(home))):
        row = f"vtax-measurements/1,a,1,a.r1,{trial},1,false,ping,ping,rtt_avg,1.0,s,cost,lower,true,{{}}"
        row += f",trials/{trial}/x"
        (logs / f"table{number}.csv").write_text(f"{header}\n{row}\n")
    (logs / "table.parquet").write_bytes(parquet_bomb())


def parquet_bomb() -> bytes:
    """Some kilobytes that are a gigabyte when they are unpacked."""
    buffer = io.BytesIO()
    text = polars.Series(["x" * 60_000]).new_from_index(0, 1000)
    polars.DataFrame(dict.fromkeys(COLUMNS, text)).write_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.long
def test_a_page_that_is_gigabytes_when_it_is_unpacked_is_refused() -> None:
    buffer = io.BytesIO()
    polars.DataFrame({"a": ["y" * (3 * 2**29)]}).write_parquet(buffer)
    assert len(buffer.getvalue()) < 100_000
    with pytest.raises(ValueError, match="more than 2 GiB of memory when it is unpacked"):
        parquet.lines(buffer.getvalue())


def test_importing_hostile_logs_does_nothing_else(tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    hostile_logs(tmp_path / "logs", reader.home)
    judge(reader, LOGS)
    assert "good.txt" in reader.ended["import"].printed
    reader.campaign = tmp_path / "asked"
    assert len(list(reader.campaign.rglob("*"))) < 100
    judge(reader, ("import", "report", "export"))
    judge_files(reader, reader.campaign)


MIRRORS = {
    "an option": "--setup-hook=touch /tmp/owned",
    "no signatures": "deb [trusted=yes] http://127.0.0.1:9/evil trixie main",
}
SAMPLED = """
[[benchmarks]]
name = "command"
label = "own"
command = ["touch", "/tmp/owned"]
metrics = [{ name = "speed", unit = "1/s", kind = "rate, fixed work", primary = true, regex = "speed ([0-9.]+)" }]
"""


def write_study(reader: Reader, mirror: str, entry: str = CPU.format(seconds=1)) -> None:
    text = study(["host"], entry) + f'[image]\nmirror = "{mirror}"\n'
    (reader.given / "study.toml").write_text(text)


def hostile_image(reader: Reader) -> None:
    """An archive as of `docker save`, whose manifest is a link and whose configuration is a file of the reader."""
    with tarfile.open(reader.given / "study.tar", "w") as archive:
        link = tarfile.TarInfo("manifest.json")
        link.type, link.linkname = tarfile.SYMTYPE, str(reader.home / "precious")
        archive.addfile(link)
        for name in (str(reader.home / "precious"), "../home/precious"):
            archive.addfile(tarfile.TarInfo(name))


@pytest.mark.parametrize("trick", [*MIRRORS, "a link", "a pipe", "much"])
def test_a_hostile_study_runs_nothing(trick: str, tmp_path: Path, good: Path) -> None:
    """Finding 1 of the first review: the mirror was an option of mmdebstrap, and so a shell command as root. A study,
    a sample and an image may also be something else than files."""
    reader = Reader(tmp_path, good)
    hostile_image(reader)
    path, sample = reader.given / "study.toml", reader.given / "sample.txt"
    sample.symlink_to(reader.home / "precious")
    said = "study.toml cannot be read: it is "
    if trick in MIRRORS:
        write_study(reader, MIRRORS[trick])
        said = "image.mirror: "
    elif trick == "a link":
        path.symlink_to(reader.home / "precious")
    elif trick == "a pipe":
        os.mkfifo(path)
    else:
        path.write_text("a." * 100_000 + "a = 1\n")
        said = "line 1 has more than 100 dots"
    judge(reader, STUDY)
    for name in STUDY:
        assert name == "measure" or said in reader.ended[name].printed, name
        assert reader.ended[name].code == 2, name
    judge_files(reader, tmp_path / "cache")
    assert not Path("/tmp/owned").exists()


MACHINES = {
    "machines.a.ssh": f'[machines.a]\nssh = "{PROXY}"\n',
    "machines.a.directory": '[machines.a]\nssh = "node17"\ndirectory = "/srv\\n-x"\n',
    "machines.a.shared": '[machines.a]\nssh = "node17"\nshared = "--help"\n',
    "machines.a.address": '[machines.a]\nssh = "node17"\naddress = "$(touch /tmp/owned)"\n',
    "machines.c.slurm.partition": '[machines.c]\nslurm = { time = "10 min", partition = "--uid=0" }\n',
    "machines.c.slurm.account": '[machines.c]\nslurm = { time = "10 min", account = "x;y" }\n',
    "machines.c.slurm.options": '[machines.c]\nslurm = { time = "10 min", options = ["--wrap touch /tmp/owned"] }\n',
    "machines.c.slurm.nodes": '[machines.c]\nslurm = { time = "10 min", nodes = 1000000000 }\n',
    "machines": '[machines."../../home"]\nssh = "node17"\n',
    "environments.nodes.nodes": f'[environments.nodes]\nprovider = "ssh"\nnodes = {{ worker1 = "{PROXY}" }}\n',
    "environments.nodes.directory": '[environments.nodes]\nprovider = "ssh"\ndirectory = "-x"\n',
}


@pytest.mark.parametrize(
    "key", shortly(MACHINES, ("machines.a.ssh", "machines.c.slurm.options", "environments.nodes.nodes"))
)
def test_a_hostile_study_logs_in_nowhere(key: str, tmp_path: Path, good: Path) -> None:
    """Whatever it calls machines, destinations, directories and options of a job."""
    reader = Reader(tmp_path, good)
    (reader.given / "study.toml").write_text(study(["host"], CPU.format(seconds=1)) + MACHINES[key])
    names = [name for name in (*STUDY, *ON_MACHINES) if name not in AWAY]
    judge(reader, names)
    for name in names:
        assert f"{key}" in reader.ended[name].printed, (name, reader.ended[name].printed)
        assert reader.ended[name].code == 2, name
    assert not Path("/tmp/owned").exists()


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a device", "much"])
def test_a_hostile_sample_is_not_read(kind: str, tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    write_study(reader, "auto", SAMPLED)
    sample = reader.given / "sample.txt"
    if kind == "a link":
        sample.symlink_to(reader.home / "precious")
    elif kind == "a pipe":
        os.mkfifo(sample)
    elif kind == "a device":
        os.mknod(sample, stat.S_IFCHR | 0o600, os.makedev(1, 5))
    else:
        sample.touch()
        os.truncate(sample, 10 * 2**30)
    judge(reader, ("sample",))
    assert "sample.txt cannot be read: it is " in reader.ended["sample"].printed
    assert reader.ended["sample"].code == 2


def sealed_with(path: Path, name: str, mode: int = stat.S_IFREG | 0o644, content: bytes = b"{}") -> None:
    about = zipfile.ZipInfo(name)
    about.compress_type, about.create_system, about.external_attr = zipfile.ZIP_DEFLATED, 3, mode << 16
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("seal.json", "{}")
        archive.writestr(about, content)


@pytest.mark.parametrize("trick", ["a path", "a link in it", "much", "a link", "a pipe"])
def test_a_hostile_sealed_campaign_does_nothing_else(trick: str, tmp_path: Path, good: Path) -> None:
    reader = Reader(tmp_path, good)
    path = reader.given / "sealed.vtax.zip"
    match trick:
        case "a path":
            sealed_with(path, "campaign/../../home/owned")
        case "a link in it":
            sealed_with(path, "campaign/plan.json", stat.S_IFLNK | 0o777, bytes(reader.home / "precious"))
        case "much":
            sealed_with(path, "campaign/plan.json", content=b"[" * 2**28)
        case "a link":
            path.symlink_to(reader.home / "precious")
        case "a pipe":
            os.mkfifo(path)
    judge(reader, SEALED)
    assert {one.code for one in reader.ended.values()} <= {1, 2}, reader.ended  # 1: it is not what it claims
    assert list(reader.temporary.iterdir()) == []
    judge_files(reader, reader.files)


def test_commands_without_input_of_others_do_nothing_else(tmp_path: Path, good: Path) -> None:
    """In a directory with modules and programs of names that they use."""
    reader = Reader(tmp_path, good)
    judge(reader, NOTHING)
    judge_files(reader, tmp_path / "cache")


def test_a_plan_shows_where_the_root_file_system_comes_from(tmp_path: Path, good: Path) -> None:
    """It asks this machine what works here, and does nothing to it."""
    reader = Reader(tmp_path, good)
    write_study(reader, "http://127.0.0.1:9/debian")
    done = reader.traced("plan")
    assert "from http://127.0.0.1:9/debian" in reader.ended["plan"].printed
    assert not {Path(what).name for call, what in done if call == "execve"} & {"mmdebstrap", "apt-get", "chroot"}
