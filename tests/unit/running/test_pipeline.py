"""The stages together, on environments that exist only in memory: what is refused, what is written, what is cleaned."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders.small import FACTS, IMAGE, PRINTED, TEXT, anew, new_campaign, planned, store, study
from fakes.cluster import FakeProvider, telling
from vtax import __version__, files, pipeline, providers
from vtax.errors import DamagedError, EnvironmentMissing, NotMatched, TrialsFailed, UsageError
from vtax.events import Event, Notice, ignore
from vtax.image import build
from vtax.model.look import Decision, Look
from vtax.model.plan import Origin
from vtax.model.study import EnvironmentSpec, Study
from vtax.model.trial import Status
from vtax.paths import Paths
from vtax.planning import preparation, resuming
from vtax.planning.overrides import Overrides
from vtax.planning.plan import digest
from vtax.planning.preparation import Prepared
from vtax.planning.resuming import note_made
from vtax.planning.study import parse, with_control
from vtax.providers.base import Leftover, Site
from vtax.running import clusters, kept, leftovers
from vtax.store import Campaign, alive, written


class World:
    """A machine on which these providers are all there is."""

    def __init__(self, top: Path) -> None:
        self.paths = Paths(top / "cache", top / "state")
        self.directory = top / "campaign"
        self.providers: dict[str, FakeProvider] = {}
        self.facts: dict[str, Any] = dict(FACTS)
        self.image = IMAGE
        self.script = anew(telling(sysbench=PRINTED))
        for name in ("host", "box"):
            self.add(name)

    def add(self, name: str, broken: str = "") -> FakeProvider:
        self.providers[name] = FakeProvider(name, self.paths.runtime, script=self.script, broken=broken)
        return self.providers[name]

    def prepare(self, wanted: Study | None = None, *, only_available: bool = False) -> Prepared:
        return preparation.prepare(wanted or study(), self.paths, only_available=only_available)

    def start(self, wanted: Study | None = None, *, available: bool = False) -> list[Event]:
        said: list[Event] = []
        pipeline.start(b"# mine\n", wanted or study(rounds=1), self.directory, self.paths, said.append, available)
        return said

    def stand(self, name: str, campaign: str) -> FakeProvider:
        """A cluster that carries this label, with its run-time files."""
        provider = self.providers[name]
        place = self.paths.runtime / campaign
        site = Site(campaign, place / name, IMAGE, place / "keys")
        spec = EnvironmentSpec(name=name, provider=name)
        provider.create(spec, self.prepare().plan.shape, "/shared", site)
        return provider

    def note(self, name: str, text: str) -> Path:
        """What is remembered of a cluster that was brought up by hand."""
        path = self.paths.state / "clusters" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    for module in (pipeline, preparation, providers):
        monkeypatch.setattr(module, "provider", lambda name, runtime: made.providers[name])
    for module in (pipeline, preparation):
        monkeypatch.setattr(module, "host_facts", lambda runners=None: made.facts)
    monkeypatch.setattr(providers, "provider_names", lambda: tuple(made.providers))
    monkeypatch.setattr(pipeline, "cached_image", lambda spec, paths: made.image)
    monkeypatch.setattr(pipeline, "image_of", lambda spec, paths, listener, plan: made.image)
    return made


# --- prepare -------------------------------------------------------------------------------------------------------


def test_a_study_on_a_machine_where_all_works(world: World) -> None:
    prepared = world.prepare()
    assert [spec.name for spec in prepared.plan.environments] == ["host", "box"]
    assert list(prepared.providers) == ["host", "box"]
    assert prepared.problems == {"host": (), "box": ()}
    assert prepared.plan.left_out == ()
    preparation.refuse_impossible(prepared)
    assert [each.created for each in world.providers.values()] == [0, 0]


def test_an_environment_that_does_not_work_is_left_out_when_that_is_wanted(world: World) -> None:
    world.add("jail", broken="no daemon answers")
    wanted = study(("host", "box", "jail"))
    prepared = world.prepare(wanted, only_available=True)
    assert [spec.name for spec in prepared.plan.environments] == ["host", "box"]
    assert prepared.plan.left_out == ("environment jail is left out: no daemon answers",)
    assert {cell.environment for cell in prepared.plan.cells} == {"host", "box"}
    preparation.refuse_impossible(prepared)


def test_an_environment_that_does_not_work_is_refused_otherwise(world: World) -> None:
    world.add("jail", broken="no daemon answers")
    prepared = world.prepare(study(("host", "box", "jail")))
    assert prepared.plan.left_out == ()
    assert [problem.message for problem in prepared.blockers("jail")] == ["no daemon answers"]
    with pytest.raises(EnvironmentMissing, match="some environments are not available on this machine") as caught:
        preparation.refuse_impossible(prepared)
    assert caught.value.exit_code == 3
    assert caught.value.detail == "jail: no daemon answers"
    assert caught.value.remedy == "nothing to install: it is a fake; or use `vtax run --available` to leave them out"


def test_without_its_baseline_a_study_compares_nothing(world: World) -> None:
    world.add("host", broken="no right to be here")
    world.add("jail")
    with pytest.raises(EnvironmentMissing) as caught:
        world.prepare(study(("host", "box", "jail")), only_available=True)
    assert caught.value.exit_code == 3
    assert caught.value.detail == "environment host is left out: no right to be here"
    assert "vtax doctor" in caught.value.remedy


def test_one_environment_alone_compares_nothing_unless_it_was_all_that_was_asked_for(world: World) -> None:
    world.add("box", broken="no daemon answers")
    with pytest.raises(EnvironmentMissing, match="no environment besides the baseline is available"):
        world.prepare(only_available=True)
    assert len(world.prepare(study(("host",)), only_available=True).plan.environments) == 1


def test_the_baseline_and_its_control_arm_compare_nothing_either(world: World) -> None:
    world.add("box", broken="no daemon answers")
    with pytest.raises(EnvironmentMissing, match="no environment besides the baseline is available"):
        world.prepare(with_control(study()), only_available=True)
    alone = world.prepare(with_control(study(("host",))), only_available=True).plan
    assert [spec.name for spec in alone.environments] == ["host", "control"], "all that was asked for"


def test_the_control_arm_runs_in_every_round_like_any_environment(world: World) -> None:
    world.start(with_control(study(rounds=3)))
    campaign = Campaign.open(world.directory)
    assert sorted(cell.cell for cell in campaign.cells()) == [
        f"r{number:03}-{name}" for number in (1, 2, 3) for name in ("box", "control", "host")
    ]
    analysis = pipeline.analyse(world.directory)
    assert analysis.control == "control"
    arm = next(item for item in analysis.comparisons if item.environment == "control")
    assert (arm.control, arm.n) == (True, 3)
    assert arm.ratio == pytest.approx(1.0, abs=1e-3)


def test_more_than_there_is_is_a_mistake_of_the_study(world: World) -> None:
    world.facts = {**FACTS, "cpus_usable": [0]}
    world.add("box", broken="no daemon answers")
    with pytest.raises(UsageError, match="the study asks for more than this machine has") as caught:
        preparation.refuse_impossible(world.prepare())
    assert caught.value.exit_code == 2
    assert "needs 2 CPUs, but this machine offers 1" in caught.value.detail
    assert caught.value.remedy.count("set cpus to at most 1") == 1  # said once, though three nodes want it


@pytest.mark.parametrize(
    ("docker", "podman", "chosen"),
    [
        ("", "", "docker"),
        ("no daemon", "", "podman"),
        ("", "not there", "docker"),
        ("no daemon", "not there", "docker"),
    ],
)
def test_any_container_is_docker_before_podman(world: World, docker: str, podman: str, chosen: str) -> None:
    world.add("docker", broken=docker)
    world.add("podman", broken=podman)
    spec = EnvironmentSpec(name="container", provider="container", options={"knob": 2})
    found = preparation.resolve(spec, world.paths)
    assert found == EnvironmentSpec(name="container", provider=chosen, options={"knob": 2})


def test_an_engine_that_is_named_stays(world: World) -> None:
    world.add("docker")
    world.add("podman", broken="not there")
    spec = EnvironmentSpec(name="container", provider="podman")
    assert preparation.resolve(spec, world.paths) == spec


def test_the_plan_has_the_engine_that_was_found(world: World) -> None:
    world.add("docker", broken="no daemon")
    world.add("podman")
    specs = (EnvironmentSpec(name="host", provider="host"), EnvironmentSpec(name="container", provider="container"))
    plan = world.prepare(study().model_copy(update={"environments": specs})).plan
    assert [spec.provider for spec in plan.environments] == ["host", "podman"]
    assert [spec.provider for spec in plan.study.environments] == ["host", "podman"]


# --- start and resume ----------------------------------------------------------------------------------------------


def test_a_campaign_holds_all_that_it_came_from(world: World) -> None:
    world.start()
    campaign = Campaign.open(world.directory)
    assert (world.directory / "study.toml").read_bytes() == b"# mine\n"
    about = campaign.about()
    assert about["vtax_version"] == __version__
    assert about["host"] == FACTS
    assert about["image"] == IMAGE.model_dump(mode="json")
    assert re.fullmatch("[0-9a-f]{8}", about["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", about["created"])
    assert [record.id for record in campaign.trials()] == planned(campaign.plan())
    assert not list(world.paths.runtime.iterdir())


def test_what_a_provider_warns_of_is_said_before_anything_runs(world: World) -> None:
    world.providers["box"].odd = "box runs in software emulation"
    said = world.start(study(rounds=1))
    assert said[0] == Notice("box runs in software emulation; nothing to install: it is a fake")


def test_what_is_left_out_is_said_before_anything_runs(world: World) -> None:
    world.add("jail", broken="no daemon answers")
    said = world.start(study(("host", "box", "jail"), rounds=1), available=True)
    assert said[0] == Notice("environment jail is left out: no daemon answers")


def test_a_study_that_is_refused_leaves_no_directory(world: World) -> None:
    world.add("box", broken="no daemon answers")
    with pytest.raises(EnvironmentMissing):
        world.start()
    assert not world.directory.exists()


def test_a_directory_that_holds_something_is_refused_before_anything_runs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even the root file system is built, which takes minutes."""
    monkeypatch.setattr(pipeline, "image_of", None)
    world.directory.mkdir()
    (world.directory / "mine").touch()
    with pytest.raises(UsageError, match="is not empty"):
        world.start()
    assert [each.created for each in world.providers.values()] == [0, 0]


@pytest.fixture
def halfway(world: World) -> Campaign:
    """A campaign that was interrupted in its last cell."""
    campaign = new_campaign(world.directory, world.providers, rounds=1)
    store(campaign, dict.fromkeys(planned(campaign.plan())[:-1], PRINTED))
    return campaign


def test_resuming_ends_what_was_begun(world: World, halfway: Campaign) -> None:
    pipeline.resume(world.directory, world.paths, ignore)
    assert sum(each.created for each in world.providers.values()) == 1
    assert sorted(record.id for record in halfway.trials()) == sorted(planned(halfway.plan()))


def refused(world: World, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        pipeline.resume(world.directory, world.paths, ignore)
    assert [each.created for each in world.providers.values()] == [0, 0]


def test_resuming_needs_the_same_root_file_system(world: World, halfway: Campaign) -> None:
    world.image = IMAGE.model_copy(update={"digest": "e" * 64})
    refused(world, NotMatched, f"the root file system is not the one.*\n.*then sha256 {'d' * 64}, now {'e' * 64}\n")


def test_resuming_builds_nothing(world: World, halfway: Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "cached_image", lambda spec, paths: None)
    monkeypatch.setattr(pipeline, "image_of", None)
    refused(world, NotMatched, "now none: it is no longer in the cache")


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "work": lambda plan: plan["work"][0]["steps"][0].update(argv=["perl", "-e", "system('id')"]),
    "work,": lambda plan: plan["work"][0]["steps"][0].update(inputs=[{"name": "x", "content": "evil"}]),
    "cells": lambda plan: plan["cells"].reverse(),
    "environments": lambda plan: plan["environments"][0].update(options={"knob": 3}),
    "estimate_s": lambda plan: plan.update(estimate_s=1.0),
    "shape": lambda plan: plan["shape"]["nodes"][0].update(cpu_ids=[0]),
    "sha256": lambda plan: plan.update(sha256="0" * 64),
    "study": lambda plan: plan["study"].update(seed=99),
    "left_out": lambda plan: plan.update(left_out=["a", "b"], sha256="0" * 64),
}


OF_THE_STUDY = ("sha256", "study", "left_out")  # sealed again, it is the plan of another study, which may be run


@pytest.mark.parametrize("trust", [False, True])
@pytest.mark.parametrize("field", CHANGES)
def test_resuming_runs_only_what_the_study_gives(world: World, halfway: Campaign, field: str, trust: bool) -> None:
    """Whatever was changed, sealed again or not, and whether the campaign is trusted or not."""
    path = world.directory / "plan.json"
    plan = json.loads(path.read_bytes())
    CHANGES[field](plan)
    path.write_text(json.dumps(plan, indent=1) + "\n")
    changed = halfway.plan()
    sealed = written(changed.model_copy(update={"sha256": digest(changed)}))
    for text in (path.read_bytes(), *([] if field in OF_THE_STUDY else [sealed])):
        path.write_bytes(text)
        with pytest.raises(NotMatched, match="is not the plan that its study gives here"):
            pipeline.resume(world.directory, world.paths, ignore, trust=trust)
    assert [each.created for each in world.providers.values()] == [0, 0]


def test_resuming_a_campaign_of_which_something_was_left_out(world: World) -> None:
    world.add("jail", broken="no daemon answers")
    campaign = Campaign.create(
        world.directory,
        b"",
        world.prepare(study(("host", "box", "jail"), rounds=1), only_available=True).plan,
        {"id": "c1c1c1c1", "image": IMAGE.model_dump(mode="json"), "host": FACTS},
    )
    assert campaign.plan().left_out
    pipeline.resume(world.directory, world.paths, ignore)
    assert len(campaign.trials(texts=False)) == len(planned(campaign.plan()))


def test_a_plan_of_another_version_needs_trust(world: World, halfway: Campaign) -> None:
    old = halfway.plan().model_copy(update={"vtax_version": "0.0.1"})
    halfway.save("plan.json", old)
    refused(world, UsageError, r"planned by vtax 0\.0\.1, so that vtax .* cannot check its plan")
    pipeline.resume(world.directory, world.paths, ignore, trust=True)
    assert sum(each.created for each in world.providers.values()) == 1


@pytest.mark.parametrize("name", ["", "plan.json", "campaign.json"])
def test_a_campaign_of_another_user_needs_trust(
    world: World, halfway: Campaign, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lstat = Path.lstat

    def stranger(path: Path) -> os.stat_result:
        found = list(lstat(path))
        found[stat.ST_UID] += path == world.directory / name
        return os.stat_result(found)

    monkeypatch.setattr(Path, "lstat", stranger)
    refused(world, UsageError, "belongs to another user, and resuming runs what it says")
    pipeline.resume(world.directory, world.paths, ignore, trust=True)
    assert sum(each.created for each in world.providers.values()) == 1


@pytest.mark.parametrize("why", ["elsewhere", "version", "owner"])
def test_a_campaign_of_strangers_logs_in_nowhere(world: World, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused before any of its machines is connected."""
    made = new_campaign(world.directory, world.providers, machines={"a": "root@node17"})
    if why != "elsewhere":
        note_made(made, world.paths.state)
    if why == "version":
        made.save("plan.json", made.plan().model_copy(update={"vtax_version": "0.0.1"}))
        note_made(made, world.paths.state)
    if why == "owner":
        monkeypatch.setattr(resuming, "foreign", lambda directory: (directory,))
    monkeypatch.setattr(pipeline, "connected", None)
    words = {"elsewhere": "was not made here, and uses machines", "version": "planned by", "owner": "another user"}
    refused(world, UsageError, words[why])
    with pytest.raises(TypeError):  # trusted, it is connected
        pipeline.resume(world.directory, world.paths, ignore, trust=True)


def test_resuming_needs_the_same_cpus(world: World, halfway: Campaign) -> None:
    world.facts = {**FACTS, "cpus_usable": [0, 1, 2, 3]}  # the master is on 4 and 5
    refused(world, NotMatched, r"the plan uses CPUs \[4, 5\], which this process may not use now")


def test_resuming_needs_environments_that_work(world: World, halfway: Campaign) -> None:
    world.add("box", broken="the daemon is gone")
    refused(world, EnvironmentMissing, "box: the daemon is gone")


def test_resuming_needs_a_campaign(world: World) -> None:
    refused(world, UsageError, "does not exist")


def test_an_imported_campaign_cannot_be_resumed(world: World) -> None:
    imported = world.prepare().plan.model_copy(update={"origin": Origin.IMPORTED})
    Campaign.create(world.directory, b"", imported, {"id": "c1c1c1c1"})
    refused(world, UsageError, "was imported, so it cannot be run")


# --- analyse and report --------------------------------------------------------------------------------------------


def varied(name: str, number: int) -> str:
    """What sysbench printed, with a rate that differs between environments by 3 % and between trials by less."""
    rate = (1000.0 if "-host/" in name else 970.0) + (0.5, -0.5, 0.2, 0.0)[number % 4]
    text, found = re.subn(r"events per second: +[\d.]+", f"events per second: {rate:.2f}", PRINTED)
    assert found == 1
    return text


@pytest.fixture
def stored(world: World) -> Campaign:
    """A campaign of four rounds whose trials all hold what sysbench printed."""
    campaign = new_campaign(world.directory, world.providers, rounds=4, iterations=1)
    store(campaign, {name: varied(name, number) for number, name in enumerate(planned(campaign.plan()))})
    return campaign


def test_the_analysis_of_a_stored_campaign(world: World, stored: Campaign) -> None:
    analysis = pipeline.analyse(world.directory)
    first = (world.directory / "analysis.json").read_bytes()
    assert json.loads(first) == analysis.model_dump(mode="json")
    pipeline.analyse(world.directory)
    assert (world.directory / "analysis.json").read_bytes() == first
    found, judged = pipeline.measurements(world.directory)
    assert {record.status for record in judged} == {Status.OK}
    rates = [item.value for item in found if item.metric == "events_rate" and item.environment == "box"]
    assert len(rates) == 4
    assert all(969 < rate < 971 for rate in rates)


def test_the_report_of_a_stored_campaign(world: World, stored: Campaign) -> None:
    page = pipeline.report(world.directory)
    assert page == world.directory / "report" / "index.html"
    files = [page, page.with_name("report.md"), world.directory / "analysis.json"]
    first = [path.read_bytes() for path in files]
    assert b"sysbench-cpu" in first[0]
    assert b"sysbench-cpu" in first[1]
    pipeline.report(world.directory)
    assert [path.read_bytes() for path in files] == first


def test_a_report_of_numbers_that_do_not_vary(world: World) -> None:
    campaign = new_campaign(world.directory, world.providers, rounds=3, iterations=1)
    store(campaign, dict.fromkeys(planned(campaign.plan()), PRINTED))
    assert pipeline.report(world.directory).exists()


def test_a_report_of_a_campaign_of_which_nothing_has_run(world: World) -> None:
    new_campaign(world.directory, world.providers)
    assert pipeline.report(world.directory).exists()


def test_a_report_of_a_campaign_that_really_ran(world: World) -> None:
    """With facts and counters of fake nodes, and with trials whose output is refused."""
    world.providers["box"].script = telling(sysbench="rubbish")
    with pytest.raises(TrialsFailed):
        world.start()
    page = pipeline.report(world.directory).read_text()
    assert "box" in page
    assert all(item.environment == "host" for item in pipeline.measurements(world.directory)[0])


@pytest.mark.parametrize("interleave", ["cell", "trial"])
def test_a_report_of_a_campaign_of_which_every_trial_failed(world: World, interleave: str) -> None:
    for one in world.providers.values():
        one.script = telling(sysbench="rubbish")
    with pytest.raises(TrialsFailed, match="4 of 4 trials failed"):
        world.start(study(rounds=1, interleave=interleave))
    assert pipeline.report(world.directory).exists()
    assert pipeline.measurements(world.directory)[0] == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": 99}'])
@pytest.mark.parametrize("stage", [pipeline.analyse, pipeline.report, pipeline.measurements])
def test_a_damaged_record_is_named(world: World, stored: Campaign, stage: Any, content: bytes) -> None:
    path = world.directory / "trials" / planned(stored.plan())[0] / "record.json"
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="is damaged, or of another version") as caught:
        stage(world.directory)
    assert (str(path) in caught.value.message, caught.value.exit_code) == (True, 2)
    assert caught.value.remedy


def test_an_output_that_is_missing_is_named(world: World, stored: Campaign) -> None:
    path = next((world.directory / "trials" / planned(stored.plan())[0]).glob("*.stdout"))
    path.unlink()
    with pytest.raises(DamagedError, match=rf"{re.escape(str(path))} cannot be read"):
        pipeline.analyse(world.directory)
    assert not (world.directory / "analysis.json").exists()


@pytest.mark.parametrize("text", ['{"id": ', "null", "[]", "7"])
def test_a_damaged_provenance_is_named(world: World, stored: Campaign, text: str) -> None:
    (world.directory / "campaign.json").write_text(text)
    with pytest.raises(DamagedError, match=r"campaign\.json is damaged"):
        pipeline.report(world.directory)


# --- leftovers and clean -------------------------------------------------------------------------------------------


def labels(world: World, *, everything: bool = False) -> set[str]:
    return {item.campaign for item in leftovers.leftovers(world.paths, everything=everything)}


def test_a_machine_on_which_nothing_is_left(world: World) -> None:
    assert leftovers.leftovers(world.paths) == []
    leftovers.clean([], world.paths)


def test_what_a_crash_left_is_found_and_removed(world: World) -> None:
    provider = world.stand("box", "c1c1c1c1")
    found = leftovers.leftovers(world.paths)
    assert [(item.provider, item.kind, item.name) for item in found] == [
        ("box", "node", "c1c1c1c1-master"),
        ("box", "node", "c1c1c1c1-worker1"),
        ("box", "node", "c1c1c1c1-worker2"),
        ("files", "directory", str(world.paths.runtime / "c1c1c1c1")),
    ]
    leftovers.clean(found, world.paths)
    assert provider.live == {}
    assert provider.destroyed == 1  # once for its label, not for every node
    assert world.providers["host"].destroyed == 0
    assert leftovers.leftovers(world.paths) == []
    leftovers.clean(found, world.paths)  # twice is fine


def test_a_campaign_that_runs_is_not_left_behind(world: World) -> None:
    world.stand("box", "0a0a0a0a")
    world.stand("host", "0b0b0b0b")
    with alive(world.paths.runtime / "0a0a0a0a"):
        assert labels(world) == {"0b0b0b0b"}
        assert labels(world, everything=True) == {"0a0a0a0a", "0b0b0b0b"}
        leftovers.clean(leftovers.leftovers(world.paths), world.paths)
        assert set(world.providers["box"].live) == {"0a0a0a0a"}
        assert world.providers["host"].live == {}
    assert labels(world) == {"0a0a0a0a"}  # and now it is


def test_a_cluster_that_was_brought_up_is_not_left_behind(world: World) -> None:
    world.stand("box", "up-00000001")
    note = world.note("box", '{"campaign": "up-00000001", "spec": {}}')
    assert labels(world) == set()
    assert labels(world, everything=True) == {"up-00000001"}
    leftovers.clean(leftovers.leftovers(world.paths), world.paths)
    assert note.exists()
    leftovers.clean(leftovers.leftovers(world.paths, everything=True), world.paths)
    assert not note.exists()
    assert labels(world, everything=True) == set()


def test_images_that_nothing_names_are_left_behind(world: World) -> None:
    provider = world.providers["box"]
    provider.strays.append("sha256:77")
    (found,) = leftovers.leftovers(world.paths)
    assert (found.provider, found.kind, found.name) == (provider.name, "image without a name", "sha256:77")
    leftovers.clean([found], world.paths)
    assert provider.strays == []
    assert provider.destroyed == 0, "no cluster has that label"


def test_a_cluster_that_is_being_brought_up_is_in_use(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "study_for", lambda *_: study())
    monkeypatch.setattr(clusters, "image_of", lambda *_: IMAGE)
    monkeypatch.setattr(clusters, "provider", lambda name, _: world.providers[name])
    seen: list[list[Leftover]] = []
    world.providers["box"].before_create = lambda _: seen.append(leftovers.leftovers(world.paths))
    about = clusters.up("box", None, world.paths, ignore)
    assert seen == [[]]
    assert leftovers.leftovers(world.paths) == []
    with files.locked(world.paths.state / "clusters" / "box.lock") as mine:
        assert mine
        with pytest.raises(UsageError, match="is being taken down by another process"):
            clusters.down("box", world.paths)
    clusters.down("box", world.paths)
    assert not (world.paths.runtime / about.campaign).exists()


def test_one_cleans_up_at_a_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = world.stand("box", "0a0a0a0a")
    found = leftovers.leftovers(world.paths)
    monkeypatch.setattr(leftovers, "WAIT_S", 0.0)
    with files.locked(world.paths.state / "clean.lock") as mine:
        assert mine
        with pytest.raises(UsageError, match="another process is cleaning up"):
            leftovers.clean(found, world.paths)
        leftovers.clean([], world.paths)  # nothing to wait for
    assert list(provider.live) == ["0a0a0a0a"]
    leftovers.clean(found, world.paths)
    assert list(provider.live) == []


def test_what_another_vtax_made_is_not_left_behind(world: World) -> None:
    """Not even --all takes it: only that vtax knows whether it is in use."""
    box = world.stand("box", "0c0c0c0c")
    world.stand("box", "0d0d0d0d")
    shutil.rmtree(world.paths.runtime / "0c0c0c0c")
    box.elsewhere["0c0c0c0c"] = "/home/b/.local/state/vtax/run"
    assert labels(world, everything=True) == labels(world) == {"0d0d0d0d"}
    assert {item.campaign for item in leftovers.labelled(world.paths)} == {"0d0d0d0d", "0c0c0c0c"}
    leftovers.clean(leftovers.leftovers(world.paths, everything=True), world.paths)
    assert set(box.live) == {"0c0c0c0c"}


DAMAGED = ["", "{", "null", "[]", "7", '{"spec": {}}']


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_note_of_a_cluster_protects_nothing(world: World, text: str) -> None:
    world.stand("box", "up-00000001")
    note = world.note("box", text)
    found = leftovers.leftovers(world.paths)
    assert {item.campaign for item in found} == {"up-00000001"}
    leftovers.clean(found, world.paths)
    assert world.providers["box"].live == {}
    assert note.exists()  # nobody knows whose it was


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_note_of_a_cluster_is_named(world: World, text: str) -> None:
    note = world.note("box", text)
    with pytest.raises(UsageError, match="is damaged") as caught:
        clusters.saved_clusters(world.paths)
    assert str(note) in caught.value.message
    assert caught.value.remedy == "remove the file, then run `vtax clean`"


def test_a_note_that_is_not_text_is_named(world: World) -> None:
    world.note("box", "").write_bytes(b"\xff\xfe{}")
    assert leftovers.leftovers(world.paths) == []
    with pytest.raises(UsageError, match="is damaged"):
        clusters.saved_clusters(world.paths)


# --- small things --------------------------------------------------------------------------------------------------


def test_images_are_forgotten_by_the_engines_that_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    removed: list[str] = []
    world.add("jail", broken="no daemon answers")
    for name, each in world.providers.items():
        monkeypatch.setattr(each, "remove_image", lambda image, name=name: removed.append(name))
    place = world.paths.images / "key"
    place.mkdir(parents=True)
    (place / "image.json").write_text(IMAGE.model_dump_json())
    monkeypatch.setattr(build, "delete", shutil.rmtree)
    kept.remove_image("key", world.paths)
    assert removed == ["host", "box"]
    assert not place.exists()
    with pytest.raises(UsageError, match="there is no image 'key'"):
        kept.remove_image("key", world.paths)


# --- looks, budget, overrides --------------------------------------------------------------------------------------


def test_a_fixed_number_of_rounds_is_in_the_plan_and_above_the_study(world: World) -> None:
    wanted = study(rounds=6).model_copy(update={"looks": (6, 10), "rounds": 10})
    overrides = Overrides(rounds=2, budget_s=3600.0)
    pipeline.start(b"# mine\n", wanted, world.directory, world.paths, ignore, False, overrides)
    campaign = Campaign.open(world.directory)
    plan = campaign.plan()
    assert (plan.study.rounds, plan.study.looks, plan.study.budget_s) == (2, (2,), 3600.0)
    assert (world.directory / "study.toml").read_text() == (
        "# vtax run --rounds 2 overrode the study below\n# vtax run --budget 3600 overrode the study below\n# mine\n"
    )
    assert campaign.about()["overrides"] == {"--rounds": 2, "--budget": 3600.0}
    log = campaign.look_log()
    assert log is not None
    assert [(look.rounds, look.decision) for look in log.looks] == [(2, Decision.LAST)]


def test_a_budget_that_holds_no_round_is_refused_before_anything_runs(world: World) -> None:
    with pytest.raises(UsageError, match="the budget of 1 s is too small: one round takes about 7 s"):
        pipeline.start(b"", study(), world.directory, world.paths, ignore, False, Overrides(budget_s=1.0))
    assert not world.directory.exists()


def test_a_budget_that_ends_before_the_first_look_is_said_at_once(world: World) -> None:
    said: list[Event] = []
    overrides = Overrides(budget_s=20.0)
    pipeline.start(b"", study(rounds=6), world.directory, world.paths, said.append, False, overrides)
    notice = (
        "the budget is enough for about 2 rounds, and the first interim analysis is after 6, so no verdict will be "
        "possible"
    )
    assert Notice(notice) in said


def test_what_was_never_due_is_not_missing(world: World) -> None:
    """A campaign that ended after three of ten rounds lacks nothing of them."""
    world.start(study(rounds=10).model_copy(update={"looks": (3, 10)}))
    campaign = Campaign.open(world.directory)
    (world.directory / "looks.json").unlink()
    plan = campaign.plan()
    campaign.note_look(Look(rounds=3, decision=Decision.SETTLED, reason="", at=1.0, plan_sha256=plan.sha256))
    for path in (world.directory / "trials").glob("r*"):
        if int(path.name[1:4]) > 3:
            shutil.rmtree(path)
    analysis = pipeline.analyse(world.directory)
    assert (analysis.rounds_complete, analysis.trials_planned, analysis.trials_recorded) == (3, 12, 12)
    assert not [finding for finding in analysis.findings if finding.id == "R07"]


def test_a_campaign_ends_by_itself_when_all_is_settled(world: World) -> None:
    """Fakes print nearly the same numbers in every cell: equal within the margin at the first look. They take no time
    for a second of work, which the audit does not believe (O04)."""
    ignored = frozenset({"O04"})
    shared = anew(telling(sysbench=PRINTED))
    for provider in world.providers.values():
        provider.script = shared
    wanted = study(rounds=16).model_copy(update={"looks": (6, 10, 16)})
    pipeline.start(b"", wanted, world.directory, world.paths, ignore, False, ignoring=ignored)
    log = Campaign.open(world.directory).look_log()
    assert log is not None
    assert [(look.rounds, look.decision) for look in log.looks] == [(6, Decision.SETTLED)]
    assert log.looks[0].reason == "1 of 1 primary comparisons have their verdict after 6 complete rounds"
    assert pipeline.analyse(world.directory, ignored).ended == (
        "after 6 rounds: no primary metric waits for its verdict: "
        "1 of 1 primary comparisons have their verdict after 6 complete rounds"
    )


def test_a_campaign_that_can_have_no_verdict_ends_and_says_so(world: World) -> None:
    """Where a blocker of the audit touches everything, more rounds would change nothing: here that a tool printed the
    same numbers again and again (U03)."""
    for provider in world.providers.values():
        provider.script = telling(sysbench=PRINTED)
    world.start(study(rounds=16).model_copy(update={"looks": (6, 10, 16)}))
    log = Campaign.open(world.directory).look_log()
    assert log is not None
    assert [(look.rounds, look.reason) for look in log.looks] == [
        (6, "0 of 1 primary comparisons have their verdict after 6 complete rounds, and 1 can have none")
    ]


def test_nodes_are_given_the_commands_of_the_plan_and_vtax_s_own(world: World) -> None:
    """What another study changes in what nodes are told is in its plan; all else is the same for both."""
    own: list[list[str]] = []
    for number, wanted in enumerate((study(rounds=1), another())):
        world.directory = world.directory.with_name(f"campaign{number}")
        before = {name: len(one.calls) for name, one in world.providers.items()}
        world.start(wanted)
        plan = Campaign.open(world.directory).plan()
        planned_ = {step.argv for work in plan.work for step in work.steps}
        given = [call for name, one in world.providers.items() for call in one.calls[before[name] :]]
        assert planned_ <= {call.argv for call in given}
        scripts = {said("\n".join((*call.argv, call.stdin))) for call in given if call.argv not in planned_}
        own.append(sorted(scripts))
    assert own[0] == own[1] != []


def another() -> Study:
    """A study of the same nodes with another name, other work and other numbers."""
    text = TEXT.format(rounds=1, iterations=1, interleave="trial").replace("time_s = 1", 'label = "other"\ntime_s = 7')
    specs = tuple(EnvironmentSpec(name=name, provider=name) for name in ("host", "box"))
    return parse(text.replace('"small"', '"large"'), "large.toml").model_copy(update={"environments": specs})


def said(command: str) -> str:
    """A command and its script without the random token of a cluster."""
    return re.sub(r"\b[0-9a-f]{16}\b", "TOKEN", command)


def test_a_campaign_has_no_key_and_no_environment_variable_in_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake provider keeps `a secret key` where SSH keys are."""
    monkeypatch.setenv("VTAX_TEST_PASSWORD", "a secret variable")
    world.start()
    files = [path for path in world.directory.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path for path in files if b"a secret" in path.read_bytes()] == []
