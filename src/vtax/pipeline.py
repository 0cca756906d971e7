"""The story on one page:

    study.toml -> plan.json -> (provision -> run -> destroy)* -> trials/ -> measurements -> analysis -> report/

The only module that knows several stages. Each stage reads what the one before wrote, so each can be repeated alone.
"""

from __future__ import annotations

import json
import secrets
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vtax import __version__
from vtax.errors import EnvironmentMissing, NotMatched, UsageError
from vtax.events import Listener, Notice
from vtax.facts.host import capacity, host_facts
from vtax.image import build, recipe
from vtax.model import (
    EnvironmentSpec,
    Image,
    ImageSpec,
    Measurement,
    Origin,
    Plan,
    Problem,
    Severity,
    Study,
    TrialRecord,
)
from vtax.parse import parse_all
from vtax.plan import make_plan
from vtax.providers import ANY_CONTAINER, CONTAINER_ENGINES, provider, provider_names
from vtax.providers.base import Leftover, Provider
from vtax.shape import cluster_shape
from vtax.store import Campaign, is_alive

if TYPE_CHECKING:
    from vtax.analysis.records import Analysis


@dataclass(frozen=True)
class Paths:
    """Where vtax keeps what outlives a command: `cache` for images, `state` for run-time files of clusters."""

    cache: Path
    state: Path

    @property
    def images(self) -> Path:
        return self.cache / "images"

    @property
    def runtime(self) -> Path:
        return self.state / "run"


@dataclass(frozen=True)
class Prepared:
    """A plan, the providers of its environments, and what keeps each of them from working here."""

    plan: Plan
    providers: Mapping[str, Provider]
    problems: Mapping[str, tuple[Problem, ...]]

    def blockers(self, environment: str) -> list[Problem]:
        return [problem for problem in self.problems[environment] if problem.severity is Severity.BLOCKER]


def prepare(study: Study, paths: Paths, *, only_available: bool = False) -> Prepared:
    """Resolve the environments, ask each provider what is missing, and freeze the plan. Starts nothing.

    With `only_available`, environments that cannot work here are left out, and the plan says why.
    """
    room = capacity(host_facts())
    shape, _ = cluster_shape(study, room)
    resolved = [resolve_engine(spec, paths) for spec in study.environments]
    providers = {spec.name: provider(spec.provider, paths.runtime) for spec in resolved}
    problems = {spec.name: tuple(providers[spec.name].check(spec, shape, room)) for spec in resolved}
    left_out = []
    if only_available:
        for spec in resolved:
            reasons = [problem.message for problem in problems[spec.name] if problem.severity is Severity.BLOCKER]
            if reasons:
                left_out.append(f"environment {spec.name} is left out: {'; '.join(reasons)}")
                del providers[spec.name]
    if study.baseline not in providers or len(providers) < min(2, len(resolved)):
        lost = study.baseline not in providers
        raise EnvironmentMissing(
            f"the baseline {study.baseline} does not work here" if lost else "nothing but the baseline works here",
            detail="\n".join(left_out),
            remedy="`vtax doctor` says what is missing and how to mend it",
        )
    study = study.model_copy(update={"environments": tuple(resolved)})
    return Prepared(make_plan(study, room, providers, left_out=left_out), providers, problems)


def resolve_engine(spec: EnvironmentSpec, paths: Paths) -> EnvironmentSpec:
    """Provider "container" becomes Docker where its daemon answers, else Podman where it works, else Docker."""
    if spec.provider != ANY_CONTAINER:
        return spec
    for name in CONTAINER_ENGINES:
        if not provider(name, paths.runtime).unavailable():
            return spec.model_copy(update={"provider": name})
    return spec.model_copy(update={"provider": CONTAINER_ENGINES[0]})


def image_of(spec: ImageSpec, paths: Paths, listener: Listener) -> Image:
    """The root file system of a study, built when the cache lacks it."""
    return build.ensure(paths.images, recipe.recipe(spec, build.find_machine_mirror()), listener)


def start(study_text: bytes, study: Study, directory: Path, paths: Paths, listener: Listener, available: bool) -> None:
    """A new campaign in `directory`, run to its end. Raises TrialsFailed when some trials failed."""
    prepared = prepare(study, paths, only_available=available)
    refuse_impossible(prepared)
    for sentence in prepared.plan.left_out:
        listener(Notice(sentence))
    image = image_of(study.image, paths, listener)
    about = {
        "id": secrets.token_hex(4),
        "vtax_version": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": host_facts(),
        "image": image.model_dump(mode="json"),
    }
    campaign = Campaign.create(directory, study_text, prepared.plan, about)
    _execute(campaign, prepared.providers, image, paths, listener)


def resume(directory: Path, paths: Paths, listener: Listener) -> None:
    """Go on with the first trial that is not there, with the same plan on the same root file system."""
    campaign = Campaign.open(directory)
    plan = campaign.plan()
    providers = {spec.name: provider(spec.provider, paths.runtime) for spec in plan.environments}
    room = capacity(host_facts())
    missing = {cpu for node in plan.shape.nodes for cpu in node.cpu_ids} - set(room.cpu_ids)
    if missing:
        raise NotMatched(
            f"the plan uses CPUs {sorted(missing)}, which this process may not use now",
            remedy="resume on the machine, and with the CPUs, that the campaign was started with",
        )
    problems = {spec.name: tuple(providers[spec.name].check(spec, plan.shape, room)) for spec in plan.environments}
    refuse_impossible(Prepared(plan, providers, problems))
    image = image_of(plan.study.image, paths, listener)
    began_with = campaign.about()["image"]["digest"]
    if image.digest != began_with:
        raise NotMatched(
            "the root file system is not the one that the campaign was started with",
            detail=f"then sha256 {began_with}, now {image.digest}",
            remedy="start a new campaign: numbers from two root file systems do not compare",
        )
    _execute(campaign, providers, image, paths, listener)


def refuse_impossible(prepared: Prepared) -> None:
    """Raise UsageError for a study that asks for more than there is, EnvironmentMissing for what does not work here."""
    shape = [problem for problem in prepared.plan.problems if problem.severity is Severity.BLOCKER]
    if shape:
        raise UsageError(
            "the study asks for more than this machine has",
            detail="\n".join(problem.message for problem in shape),
            remedy="; ".join(dict.fromkeys(problem.remedy for problem in shape)),
        )
    missing = [(name, problem) for name in prepared.problems for problem in prepared.blockers(name)]
    missing = [(name, problem) for name, problem in missing if name in prepared.providers]
    if missing:
        raise EnvironmentMissing(
            "some environments do not work on this machine",
            detail="\n".join(f"{name}: {problem.message}" for name, problem in missing),
            remedy="; ".join(dict.fromkeys(problem.remedy for _, problem in missing))
            + "; or `vtax run --available` to go on without them",
        )


def _execute(
    campaign: Campaign, providers: Mapping[str, Provider], image: Image, paths: Paths, listener: Listener
) -> None:
    from vtax.campaign import execute

    with campaign.exclusive():
        execute(campaign, providers, image, paths.runtime, listener)


def analyse(directory: Path) -> Analysis:
    """Recompute measurements, findings and verdicts from what is stored, and write `analysis.json`."""
    campaign = Campaign.open(directory)
    from vtax.analysis.analyse import analyse as compute
    from vtax.audit import audit
    from vtax.audit.evidence import Evidence

    plan, cells = campaign.plan(), campaign.cells()
    measurements, trials = parse_all(campaign.trials())
    counters = {trial.id: trial.counters for trial in trials}
    evidence = Evidence(plan=plan, cells=cells, trials=trials, measurements=measurements, counters=counters)
    findings = audit(evidence)
    if plan.origin is Origin.IMPORTED:
        from vtax.analysis.imported import analyse as compute
        from vtax.audit.imported import findings as findings_in_logs

        findings = findings_in_logs(evidence, findings)
    analysis = compute(measurements, plan=plan, findings=findings, trials=trials)
    campaign.save("analysis.json", analysis)
    return analysis


def report(directory: Path) -> Path:
    """Analyse and render again from stored data. Returns the path of `report/index.html`."""
    campaign = Campaign.open(directory)
    from vtax.benchmarks import benchmarks
    from vtax.report.html import render as html
    from vtax.report.markdown import render as markdown
    from vtax.report.records import ReportInput

    analysis = analyse(directory)
    about = campaign.about()
    content = ReportInput(
        analysis=analysis,
        plan=campaign.plan(),
        cells=campaign.cells(),
        trials=parse_all(campaign.trials())[1],
        versions=about["image"]["versions"],
        host_facts=about["host"],
        meanings={name: {m.name: m.meaning for m in known.metrics} for name, known in benchmarks().items()},
    )
    campaign.save("report/report.md", markdown(content).encode())
    return campaign.save("report/index.html", html(content).encode())


def measurements(directory: Path) -> tuple[tuple[Measurement, ...], tuple[TrialRecord, ...]]:
    """All measurements of a campaign, and its trials as judged."""
    return parse_all(Campaign.open(directory).trials())


def all_providers(paths: Paths) -> dict[str, Provider]:
    """Every provider that is known, ready to be asked."""
    return {name: provider(name, paths.runtime) for name in provider_names()}


def leftovers(paths: Paths, *, everything: bool = False) -> list[Leftover]:
    """Whatever any run left behind: by label, and run-time files of clusters that are gone.

    Campaigns that are running and clusters that were brought up by hand are in use, not left behind; `everything`
    finds them too.
    """
    found = [item for one in all_providers(paths).values() for item in one.leftovers()]
    for place in sorted(paths.runtime.glob("*/")):
        found.append(Leftover("files", "directory", str(place), place.name))
    if everything:
        return found
    by_hand = set(_by_hand(paths).values())
    used = {name for name in {item.campaign for item in found} if is_alive(paths.runtime / name)}
    return [item for item in found if item.campaign not in used | by_hand]


def clean(items: Sequence[Leftover], paths: Paths) -> None:
    """Remove what `leftovers` found."""
    providers = all_providers(paths)
    for name in dict.fromkeys(item.provider for item in items if item.provider in providers):
        for campaign in dict.fromkeys(item.campaign for item in items if item.provider == name):
            providers[name].destroy(campaign)
    for item in items:
        if item.provider == "files":
            with suppress(FileNotFoundError):
                shutil.rmtree(item.name)
    gone = {item.campaign for item in items}
    for path, campaign in _by_hand(paths).items():
        if campaign in gone:
            path.unlink()


def _by_hand(paths: Paths) -> dict[Path, str]:
    """The notes about clusters that were brought up by hand, and their labels; a damaged note protects nothing."""
    found = {}
    for path in (paths.state / "clusters").glob("*.json"):
        with suppress(ValueError, KeyError, TypeError, OSError):
            found[path] = str(json.loads(path.read_text())["campaign"])
    return found


def compose_file(study: Study, environment: str, paths: Paths) -> str:
    """The Compose file of a container environment. Raises UsageError for one that is none."""
    from vtax.providers import engine

    found = [spec for spec in study.environments if spec.name == environment]
    if not found:
        names = ", ".join(spec.name for spec in study.environments)
        raise UsageError(f"the study has no environment {environment!r}", remedy=f"it has {names}")
    spec = resolve_engine(found[0], paths)
    if spec.provider not in CONTAINER_ENGINES:
        raise UsageError(
            f"environment {environment!r} has provider {spec.provider!r}, which has no Compose file",
            remedy="choose an environment of containers",
        )
    shape, _ = cluster_shape(study, capacity(host_facts()))
    image = build.cached(paths.images, recipe.recipe(study.image, build.find_machine_mirror()))
    unbuilt = "vtax image build   # then `vtax compose` again, for the command that imports vtax-rootfs:not-built-yet"
    load = shlex.join(engine.import_image(spec.provider, image)) if image else unbuilt
    options = engine.ContainerOptions.model_validate(dict(spec.options))
    return engine.compose(study.name, shape.nodes, options, load, engine.subnet(study.name, 0), study.shared_path)


def remove_image(key: str, paths: Paths) -> None:
    """Remove a root file system from the cache and from every engine's store. Raises ImageError when there is none."""
    for image in build.images(paths.images):
        if image.recipe == key:
            for one in all_providers(paths).values():
                if not one.unavailable():
                    one.remove_image(image)
    build.remove(paths.images, key)
