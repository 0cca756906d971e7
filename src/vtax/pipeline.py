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
from vtax.events import Listener, Notice, ignore
from vtax.facts.clock import measured_clocks
from vtax.facts.host import capacity, host_facts
from vtax.image import build, recipe
from vtax.model import (
    AuditReport,
    Decision,
    EnvironmentSpec,
    Image,
    ImageSpec,
    LookLog,
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
from vtax.units import format_seconds

if TYPE_CHECKING:
    from vtax.analysis.across_records import Across
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

    def warnings(self) -> list[str]:
        """What to know before a start: what works here, but not as somebody may expect."""
        known = [problem for name in self.providers for problem in self.problems[name]]
        return [f"{one.message}; {one.remedy}" for one in known if one.severity is Severity.WARNING]


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
    repeated = {spec.name for spec in resolved if spec.control_of}
    if study.baseline not in providers or len(providers.keys() - repeated) < min(2, len(resolved) - len(repeated)):
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


@dataclass(frozen=True)
class Overrides:
    """What the command line says instead of the study: a fixed number of rounds, a budget of wall time."""

    rounds: int | None = None
    budget_s: float | None = None

    def of(self, study: Study) -> Study:
        if self.rounds is not None:
            study = study.fixed(self.rounds)
        return study if self.budget_s is None else study.model_copy(update={"budget_s": self.budget_s})

    def told(self) -> dict[str, float]:
        """Those that there are, by the option's name."""
        named = {"--rounds": self.rounds, "--budget": self.budget_s}
        return {name: value for name, value in named.items() if value is not None}


def start(
    study_text: bytes,
    study: Study,
    directory: Path,
    paths: Paths,
    listener: Listener,
    available: bool,
    overrides: Overrides | None = None,
    ignoring: frozenset[str] = frozenset(),
) -> None:
    """A new campaign in `directory`, run to its end. Raises TrialsFailed when some trials failed.

    Findings of the audit that are in `ignoring` do not keep a verdict from being given at a look.

    What the command line overrides is in the plan, in `campaign.json`, and in a comment above the study.
    """
    told = overrides.told() if overrides else {}
    study = overrides.of(study) if overrides else study
    study_text = (
        "".join(f"# vtax run {name} {value:g} overrode what stands below\n" for name, value in told.items()).encode()
        + study_text
    )
    prepared = prepare(study, paths, only_available=available)
    refuse_impossible(prepared)
    for sentence in (*prepared.plan.left_out, *prepared.warnings(), *refuse_small_budget(prepared.plan)):
        listener(Notice(sentence))
    image = image_of(study.image, paths, listener)
    about = {
        "id": secrets.token_hex(4),
        "vtax_version": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "host": {**host_facts(), **clock_fact()},
        "image": image.model_dump(mode="json"),
        **({"overrides": told} if told else {}),
    }
    campaign = Campaign.create(directory, study_text, prepared.plan, about)
    _execute(campaign, prepared.providers, image, paths, listener, ignoring=ignoring)


def refuse_small_budget(plan: Plan) -> tuple[str, ...]:
    """Raise UsageError for a budget that holds no round; a sentence when it ends before the first look."""
    budget_s = plan.study.budget_s
    if budget_s is None:
        return ()
    round_s = plan.estimate_s / plan.study.rounds
    if round_s > budget_s:
        raise UsageError(
            f"the budget of {format_seconds(budget_s)} holds no round: one takes about {format_seconds(round_s)}",
            remedy="give it more time, or the study less work",
        )
    first = plan.study.looks[0]
    if round_s * first <= budget_s:
        return ()
    return (
        f"the budget holds about {int(budget_s // round_s)} rounds and the first look is after {first}: "
        "no verdict can come of this",
    )


def study_of(directory: Path) -> Study:
    """The study that a campaign was planned with."""
    return Campaign.open(directory).plan().study


def clock_fact() -> dict[str, float]:
    """The clock of the slowest usable CPU with all of them busy, in Hz, for the fraction of peak; absent if unknown."""
    clocks = measured_clocks(capacity(host_facts()).cpu_ids)
    return {"clock_hz": min(clocks.values())} if clocks else {}


def resume(directory: Path, paths: Paths, listener: Listener, budget_s: float | None = None) -> None:
    """Go on with the first trial that is not there, with the same plan on the same root file system.

    `budget_s` is another budget for the whole campaign. One that has ended at a look stays ended.
    """
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
    prepared = Prepared(plan, providers, problems)
    refuse_impossible(prepared)
    for sentence in prepared.warnings():
        listener(Notice(sentence))
    image = image_of(plan.study.image, paths, listener)
    began_with = campaign.about()["image"]["digest"]
    if image.digest != began_with:
        raise NotMatched(
            "the root file system is not the one that the campaign was started with",
            detail=f"then sha256 {began_with}, now {image.digest}",
            remedy="start a new campaign: numbers from two root file systems do not compare",
        )
    _execute(campaign, providers, image, paths, listener, budget_s)


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
    campaign: Campaign,
    providers: Mapping[str, Provider],
    image: Image,
    paths: Paths,
    listener: Listener,
    budget_s: float | None = None,
    ignoring: frozenset[str] = frozenset(),
) -> None:
    from vtax.campaign import execute
    from vtax.narrowing import Narrowing

    now = Narrowing(lambda rounds: _analysis(campaign, rounds, ignoring)[0], listener)

    def judge(rounds: int) -> tuple[bool, str]:
        from vtax.analysis.records import settled, waiting

        analysis = now.after(rounds)
        return settled(analysis), waiting(analysis)

    budget_s = campaign.plan().study.budget_s if budget_s is None else budget_s
    with campaign.exclusive():
        execute(
            campaign,
            providers,
            image,
            paths.runtime,
            listener,
            judge,
            budget_s,
            None if listener is ignore else now.tell,
        )


def analyse(directory: Path, ignoring: frozenset[str] = frozenset()) -> Analysis:
    """Recompute measurements, findings and verdicts from what is stored, and write `analysis.json`."""
    campaign = Campaign.open(directory)
    analysis, rows = _analysis(campaign, ignoring=ignoring)
    campaign.save("analysis.json", analysis)
    campaign.save("audit.json", rows)
    return analysis


def audit(directory: Path) -> AuditReport:
    """Every row of the audit, recomputed from what is stored; writes `audit.json`."""
    campaign = Campaign.open(directory)
    _, rows = _analysis(campaign)
    campaign.save("audit.json", rows)
    return rows


def _analysis(
    campaign: Campaign, until: int | None = None, ignoring: frozenset[str] = frozenset()
) -> tuple[Analysis, AuditReport]:
    """The analysis of a campaign, or of its first rounds as if it had ended with them, without some findings; and
    every row of its audit."""
    from vtax.analysis.analyse import analyse as compute
    from vtax.audit import CATALOGUE, audit, findings_of
    from vtax.audit.evidence import Evidence

    log = campaign.look_log()
    end = until if until is not None else log.looks[-1].rounds if log and _is_over(log) else None
    plan, cells = campaign.plan(), campaign.cells()
    if end is not None:
        plan = plan.until(end)
        cells = tuple(cell for cell in cells if cell.round <= end)
    measurements, trials = parse_all(tuple(t for t in campaign.trials() if until is None or t.round <= until))
    counters = {trial.id: trial.counters for trial in trials}
    evidence = Evidence(
        plan=plan,
        cells=cells,
        trials=trials,
        measurements=measurements,
        counters=counters,
        plan_intact=campaign.plan_intact(),
        looks=tuple(look.rounds for look in log.looks if look.decision is not Decision.BUDGET) if log else None,
    )
    if plan.origin is Origin.IMPORTED:
        from vtax.analysis.imported import analyse as compute
        from vtax.audit import imported

        rows = imported.audit(evidence, CATALOGUE)
        every = imported.findings_of(rows)
    else:
        rows = audit(evidence)
        every = findings_of(rows.rows)
    findings = tuple(finding for finding in every if finding.id not in ignoring)
    made = compute(measurements, plan=plan, findings=findings, trials=trials)
    if log is not None and until is None and _is_over(log):
        last = log.looks[-1]
        made = made.model_copy(update={"ended": f"after {last.rounds} rounds: {last.decision}: {last.reason}"})
    return made, rows


def _is_over(log: LookLog) -> bool:
    """Whether a campaign ended, for good or with its budget."""
    return bool(log.looks) and log.looks[-1].decision is not Decision.GO_ON


def computed(directory: Path) -> Analysis:
    """Measurements, findings and verdicts from what is stored; writes nothing."""
    return _analysis(Campaign.open(directory))[0]


def analysed(directory: Path) -> Analysis:
    """What `analyse` or `report` wrote last."""
    from vtax.analysis.records import Analysis

    return Campaign.open(directory).read("analysis.json", Analysis)


def compare(a: Path, b: Path, environment: str = "") -> Across:
    """Campaign `b` against campaign `a`, from what is stored. Writes nothing."""
    from vtax.analysis.across import across
    from vtax.analysis.unlike import Recorded

    if a.resolve() == b.resolve():
        raise UsageError(f"{a} and {b} are the same campaign", remedy="name two")

    def recorded(directory: Path) -> Recorded:
        campaign = Campaign.open(directory)
        analysis, _ = _analysis(campaign)
        return Recorded(str(directory), campaign.plan(), campaign.about(), campaign.cells(), analysis)

    return across(recorded(a), recorded(b), environment)


def report(directory: Path) -> Path:
    """Analyse and render again from stored data. Returns the path of `report/index.html`."""
    return reports(directory, ("html", "md"))[0]


def reports(
    directory: Path, formats: Sequence[str], figures: Sequence[str] = (), *, with_reference: bool = False
) -> list[Path]:
    """Analyse and render again from stored data, in `formats`, with `figures` for papers. Returns what was written.

    Raises UsageError for a format that is not known, EnvironmentMissing where nothing here can make a PDF.
    """
    from vtax import rendering

    rendering.check(formats, figures)
    campaign = Campaign.open(directory)
    return rendering.render(campaign, analyse(directory), formats, figures, with_reference=with_reference)


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
    if options.network == "host":
        raise UsageError(
            f"environment {environment!r} is on this machine's own network, where a Compose file gives nodes no place",
            remedy='choose one with network = "bridge"; `vtax up` makes this one',
        )
    return engine.compose(study.name, shape.nodes, options, load, engine.subnet(study.name, 0), study.shared_path)


def remove_image(key: str, paths: Paths) -> None:
    """Remove a root file system from the cache and from every engine's store. Raises ImageError when there is none."""
    for image in build.images(paths.images):
        if image.recipe == key:
            for one in all_providers(paths).values():
                if not one.unavailable():
                    one.remove_image(image)
    build.remove(paths.images, key)
