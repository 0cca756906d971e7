"""Own commands on real nodes: a server and its client as another user, what is left behind, failures, resuming."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from vtax.model.nodes import Phase
from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.pipeline import measurements
from vtax.store import Campaign

from .conftest import Vtax, finish, study

pytestmark = pytest.mark.integration
ENVIRONMENTS = ("host", "docker")
SERVER = """
use IO::Socket; $| = 1;
my $server = IO::Socket::INET->new(Listen => 5, LocalPort => $ARGV[0], ReuseAddr => 1) or die "no: $!";
$SIG{TERM} = sub { print "bye\\n"; exit 0 };
while (my $client = $server->accept) { print $client "answer 42 ms\\n"; close $client }
"""
CLIENT = '$s = IO::Socket::INET->new("{server}:{port}") or die "no"; print while <$s>; exit'
METRIC = "metrics = [{ name = 'NAME', unit = 'ms', kind = 'cost', primary = true, regex = 'answer ([0-9]+) ms' }]\n"
SERVED = f"""
[[benchmarks]]
name = "command"
label = "served"
nodes = ["worker1"]
iterations = 2
user = "nobody"
files = [{{ from = "server.pl" }}]
setup = [["sh", "-c", "id -un >{{dir}}/who; mkdir -m 700 {{dir}}/private; echo x >{{dir}}/private/y"]]
prepare = [["sh", "-c", "test $(cat {{dir}}/who) = nobody"]]
command = ["perl", "-MIO::Socket", "-e", '{CLIENT}']
services = [{{ command = ["perl", "server.pl", "{{port}}"], ready = {{ port = "{{port}}", timeout = "10 s" }} }}]
{METRIC.replace("NAME", "answer")}
"""
LEAVES = f"""
[[benchmarks]]
name = "command"
label = "leaves"
nodes = ["worker1"]
perf = ["context-switches", "cycles"]
command = ["sh", "-c", "cat; test -t 0 || echo answer 7 ms; (setsid sleep 1000 &); sleep 0.2"]
{METRIC.replace("NAME", "answer")}
"""
FAILS = """
[[benchmarks]]
name = "command"
label = "fails"
nodes = ["worker1"]
setup = [["sh", "-c", "mkdir {dir}/half && exit 9"]]
command = ["true"]
[[benchmarks]]
name = "command"
label = "binary"
nodes = ["worker1"]
command = ["sh", "-c", "head -c 100000 /dev/urandom"]
[[benchmarks]]
name = "command"
label = "linked"
nodes = ["worker1"]
command = ["sh", "-c", "echo 7 >real; ln -s real out; ln -s usage.json usage"]
metrics = [{ name = "lines", unit = "1", kind = "cost", primary = true, from = "out", regex = '^([0-9]+)$' }]
"""


def write(directory: Path, benchmarks: str) -> Path:
    (directory / "server.pl").write_text(SERVER)
    path = directory / "own.toml"
    path.write_text(study(ENVIRONMENTS, benchmarks).replace("workers = 2", "workers = 1"))
    return path


def test_a_server_and_its_client_and_what_is_left_behind(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    path = write(tmp_path, SERVED + LEAVES)
    code, _, err = finish(vtax("run", str(path), "-o", "campaign"))
    assert code == 0, err
    campaign = Campaign.open(tmp_path / "campaign")
    values, trials = measurements(tmp_path / "campaign")
    found = {(one.environment, one.label, one.metric): one.value for one in values}
    for environment in ENVIRONMENTS:
        assert found[environment, "served", "answer"] == pytest.approx(0.042)
        assert found[environment, "leaves", "answer"] == pytest.approx(0.007)
        assert found[environment, "served", "wall"] > 0
    switches = [found[environment, "leaves", "context-switches"] for environment in ENVIRONMENTS]
    assert all(0 < count < 10_000 for count in switches)
    counted = [(environment, "leaves", "cycles") in found for environment in ENVIRONMENTS]
    assert len(set(counted)) == 1  # everywhere or nowhere
    assert all(found[environment, "leaves", "memory_peak"] > 0 for environment in ENVIRONMENTS)
    left = [trial.steps[-1].left for trial in trials if trial.label == "leaves"]
    assert left == [("sleep",)] * len(ENVIRONMENTS)
    setups = [trial.iteration for trial in trials if any(step.phase is Phase.SETUP for step in trial.steps)]
    assert setups == [1] * len(ENVIRONMENTS)
    for trial in (one for one in trials if one.label == "served"):
        (service,) = [step for step in trial.steps if step.background]
        assert service.exit_code == 0
    assert "bye" in campaign.with_texts(next(one for one in trials if one.label == "served")).texts["2.worker1.stdout"]

    shutil.rmtree(tmp_path / "campaign" / "trials")  # resumed without the study's folder, it sets up again
    (tmp_path / "server.pl").unlink()
    code, _, err = finish(vtax("run", "--resume", "campaign"))
    assert code == 0, err
    assert {trial.status for trial in Campaign.open(tmp_path / "campaign").trials(texts=False)} == {Status.OK}


def test_what_fails_is_recorded_and_nothing_else_is_lost(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    path = write(tmp_path, FAILS)
    code, _, err = finish(vtax("run", str(path), "-o", "campaign"))
    assert code == 4, err
    trials = {(one.environment, one.label): one for one in Campaign.open(tmp_path / "campaign").trials(texts=False)}
    for environment in ENVIRONMENTS:
        failed = trials[environment, "fails"]
        assert failed.status is Status.FAILED
        assert failed.failure.startswith("setup: ")
        assert "ended with exit code 9" in failed.failure
        assert trials[environment, "binary"].status is Status.OK
        (ran,) = trials[environment, "linked"].steps
        assert ran.not_kept == {"out": "it is a symbolic link, or behind one, and none is followed"}
        name = f"r001-{environment}/linked.worker1.1"
        (said,) = [line for line in err.splitlines() if "linked.worker1.1: failed in " in line and environment in line]
        assert "lines: out was not kept: it is a symbolic link" in said
        assert name in err
