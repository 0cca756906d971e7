"""The story on one page:

    study.toml -> plan.json -> (provision -> run -> destroy)* -> trials/ -> measurements -> analysis -> report/

It connects the stages. Each reads what the previous one wrote, so each can be repeated alone.
"""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vtax import __version__
from vtax.errors import NotMatched, UsageError
from vtax.evaluation.evaluate import Evaluation, evaluate
from vtax.evaluation.readings import Readings
from vtax.events import Listener, Notice
from vtax.facts.clock import measured_clocks
from vtax.facts.host import capacity, host_facts
from vtax.model.cluster import Image
from vtax.model.finding import AuditReport
from vtax.model.measurement import Measurement
from vtax.model.plan import Origin
from vtax.model.study import Study
from vtax.model.trial import TrialRecord
from vtax.paths import Paths
from vtax.planning.on_machines import Agents, connected
from vtax.planning.overrides import Overrides, refuse_small_budget
from vtax.planning.preparation import (
    Here,
    Prepared,
    There,
    cached_image,
    image_of,
    prepare,
    prepare_on,
    refuse_impossible,
    refuse_missing_own_image,
    resolve,
    shape_of,
    with_own_image,
)
from vtax.planning.resuming import (
    note_made,
    reached,
    refuse_changed,
    refuse_other_cpus,
    refuse_stranger,
    with_own_code,
)
from vtax.providers import provider, runners
from vtax.providers.base import Provider, WritesCompose
from vtax.sealing.opening import as_campaign
from vtax.store import Campaign, refuse_occupied

if TYPE_CHECKING:
    from vtax.analysis.campaigns.records import CampaignComparison, SetupDifference
    from vtax.analysis.claims import Compared
    from vtax.analysis.records import Analysis
    from vtax.report.document.answer.model import Answer


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

    Findings of the audit that are in `ignoring` do not prevent a verdict at an interim analysis. What the command line
    overrides is in the plan, in `campaign.json`, and in a comment above the study.
    """
    refuse_occupied(directory)  # before anything takes minutes
    given = overrides.given() if overrides else {}
    study = overrides.of(study) if overrides else study
    study_text = (overrides.comments() if overrides else b"") + study_text
    with connected(study, paths, listener) as agents:
        if agents:
            prepared = prepare_on(study, agents, paths, only_available=available)
        else:
            prepared = prepare(with_own_image(study, paths, freeze=True), paths, only_available=available)
        refuse_impossible(prepared)
        for sentence in (*prepared.plan.left_out, *prepared.warnings(), *refuse_small_budget(prepared.plan)):
            listener(Notice(sentence))
        image = image_of(prepared.plan.study, paths, listener, prepared.plan)
        about = {
            "id": secrets.token_hex(4),
            "vtax_version": __version__,
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            **measured_machines(prepared.machines),
            "image": image.model_dump(mode="json"),
            **({"overrides": given} if given else {}),
        }
        with Campaign(directory).exclusive():  # before it is made: another process may have been given this directory
            campaign = Campaign.create(directory, study_text, prepared.plan, about, study.files.values())
            if with_own_code(prepared.plan) or reached(prepared.plan.study):
                note_made(campaign, paths.state)
            _execute(campaign, prepared.providers, image, paths, listener, ignoring=ignoring, agents=agents)


def measured_machines(machines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The machine that is measured, or each of several: `host` is then the first of them."""
    if not machines:
        return {"host": {**host_facts(runners=runners()), **clock_fact()}}
    return {"host": next(iter(machines.values())), "machines": machines}


def study_of(directory: Path, baseline: str = "") -> Study:
    """The study that a campaign was planned with, or the same with another baseline.

    Raises UsageError for an environment that it does not have.
    """
    from vtax.analysis.estimate.baselines import with_baseline

    with as_campaign(directory) as (campaign, _):
        study = campaign.plan().study
    return with_baseline(study, baseline) if baseline else study


def clock_fact() -> dict[str, float]:
    """The clock of the slowest usable CPU with all of them busy, in Hz, for the fraction of peak; absent if unknown."""
    clocks = measured_clocks(capacity(host_facts()).cpu_ids)
    return {"clock_hz": min(clocks.values())} if clocks else {}


def resume(
    directory: Path, paths: Paths, listener: Listener, budget_s: float | None = None, *, trust: bool = False
) -> None:
    """Continue with the first missing trial, with the same plan on the same root file system.

    `budget_s` is another budget for the whole campaign. A campaign that ended at an interim analysis stays ended.
    Resuming runs what the plan says, so nothing is built or started before the plan is proved to be vtax's own;
    `trust` accepts one of another user or another version, and one with commands or machines that was not made here.
    """
    campaign = Campaign.open(directory)
    plan = campaign.plan()
    if plan.origin is Origin.IMPORTED:
        raise UsageError(
            f"{directory} was imported, so it cannot be run", remedy="`vtax import --into` adds logs to it"
        )
    if not trust:
        refuse_stranger(campaign, plan, paths.state)
    with connected(plan.study, paths, listener) as agents:
        where = There(agents, plan.study) if agents else Here(paths)
        where.resolved(plan.environments)
        refuse_changed(campaign, plan, where.providers)
        refuse_other_cpus(plan, where.capacities or {"": where.room})
        problems = {spec.name: where.checked(spec, plan.shape, plan.study.image) for spec in plan.environments}
        prepared = Prepared(plan, where.providers, problems)
        refuse_impossible(prepared)
        _resumed(campaign, prepared, agents, paths, listener, budget_s)


def _resumed(
    campaign: Campaign,
    prepared: Prepared,
    agents: Agents,
    paths: Paths,
    listener: Listener,
    budget_s: float | None,
) -> None:
    """Continue a campaign whose plan was found to be possible here."""
    plan = prepared.plan
    for sentence in prepared.warnings():
        listener(Notice(sentence))
    refuse_missing_own_image(plan.study, paths)
    image = cached_image(plan.study, paths)
    began_with = campaign.about()["image"]["digest"]
    if image is None or image.digest != began_with:
        raise NotMatched(
            "the root file system is not the one that the campaign was started with",
            detail=f"then sha256 {began_with}, now {image.digest if image else 'none: it is no longer in the cache'}",
            remedy="start a new campaign: numbers from two root file systems do not compare",
        )
    with campaign.exclusive():
        _execute(campaign, prepared.providers, image, paths, listener, budget_s, agents=agents)


def _execute(
    campaign: Campaign,
    providers: Mapping[str, Provider],
    image: Image,
    paths: Paths,
    listener: Listener,
    budget_s: float | None = None,
    ignoring: frozenset[str] = frozenset(),
    agents: Agents | None = None,
) -> None:
    from vtax.evaluation.interim import InterimAnalysis
    from vtax.running import lease
    from vtax.running.campaign import execute

    interim = InterimAnalysis(campaign, listener, ignoring, paths.cache)
    study = campaign.plan().study
    budget_s = study.budget_s if budget_s is None else budget_s
    with ExitStack() as stack:
        if not reached(study):  # where machines are reached, each is locked by its agent, and this may be one of them
            lease.share(stack)
        execute(campaign, providers, image, paths.runtime, listener, interim, budget_s, agents)


def analyse(
    directory: Path, ignoring: frozenset[str] = frozenset(), cache: Path | None = None, baseline: str = ""
) -> Analysis:
    """Recompute measurements, findings and verdicts from what is stored, and write `analysis.json`.

    Against another `baseline` than the plan's it writes nothing: `analysis.json` is what the plan asked for. `cache`,
    here and below, is the directory that caches the simulated levels of unusual looks.
    """
    campaign = Campaign.open(directory)
    if baseline not in ("", campaign.plan().study.baseline):
        readings = Readings(campaign, keep=False)
        return evaluate(campaign, ignoring=ignoring, cache=cache, readings=readings, baseline=baseline).analysis
    return _evaluated(campaign, cache, ignoring).analysis


def _evaluated(campaign: Campaign, cache: Path | None, ignoring: frozenset[str] = frozenset()) -> Evaluation:
    """Evaluate a campaign; write `analysis.json` and `audit.json`."""
    found = evaluate(campaign, ignoring=ignoring, cache=cache)
    campaign.save("analysis.json", found.analysis)
    campaign.save("audit.json", found.audit)
    return found


def audit(directory: Path, cache: Path | None = None) -> AuditReport:
    """Every row of the audit, recomputed from what is stored; writes `audit.json`."""
    campaign = Campaign.open(directory)
    rows = evaluate(campaign, cache=cache).audit
    campaign.save("audit.json", rows)
    return rows


def analysed(directory: Path) -> Analysis:
    """The analysis that `analyse` or `report` wrote last."""
    from vtax.analysis.records import Analysis

    return Campaign.open(directory).read("analysis.json", Analysis)


def answer(directory: Path, analysis: Analysis | None = None) -> Answer:
    """What the report says first, of the analysis that was written last or of another one of the campaign."""
    from vtax.publishing import files

    return files.answer(Campaign.open(directory), analysis or analysed(directory))


def compare(a: Path, b: Path, environment: str = "", cache: Path | None = None) -> CampaignComparison:
    """Campaign `b` against campaign `a`, each a directory or a file of `vtax seal`, from what is stored. Writes
    nothing."""
    from vtax.analysis.campaigns.comparison import compare_campaigns
    from vtax.analysis.campaigns.setup_differences import Recorded

    if a.resolve() == b.resolve():
        raise UsageError(f"{a} and {b} are the same campaign", remedy="give two different campaigns")

    def recorded(path: Path) -> Recorded:
        with as_campaign(path) as (campaign, readings):
            analysis = evaluate(campaign, cache=cache, readings=readings).analysis
            return Recorded(str(path), campaign.plan(), campaign.about(), campaign.cells(), analysis)

    return compare_campaigns(recorded(a), recorded(b), environment)


def plan_again(
    path: Path, paths: Paths, overrides: Overrides, *, available: bool = False, into: Path | None = None
) -> tuple[Prepared, tuple[SetupDifference, ...]]:
    """The study of a campaign or of a sealed one, planned for this machine, and what cannot be the same here.

    What overrode that study holds here too, unless there are `overrides`. With `into`, the study and its files are
    written there. Starts nothing.
    """
    from vtax.planning.study import load
    from vtax.sealing.remake import differences, study_folder

    with as_campaign(path) as (campaign, _), tempfile.TemporaryDirectory(prefix="vtax-") as temporary:
        study = load(study_folder(campaign, into or Path(temporary) / "study"))
        theirs = Overrides.taken(campaign.about().get("overrides"))
        prepared = prepare((overrides if overrides.given() else theirs).of(study), paths, only_available=available)
        return prepared, differences(campaign, prepared, paths)


def report(directory: Path, cache: Path | None = None) -> Path:
    """Analyse and render again from stored data. Returns the path of `report/index.html`."""
    return reports(directory, ("html", "md"), cache=cache)[0]


def reports(
    directory: Path,
    formats: Sequence[str],
    figures: Sequence[str] = (),
    *,
    published: Sequence[str] = (),
    cache: Path | None = None,
) -> list[Path]:
    """Analyse and render again from stored data, in `formats`, with `figures` for papers, and figures of others'
    `published` reports. Returns the written files.

    Raises UsageError for an unknown format or report, EnvironmentMissing where no program here can make a PDF.
    """
    from vtax.publishing import files
    from vtax.publishing import formats as known

    known.check(formats, figures)
    files.start(formats, figures)
    campaign = Campaign.open(directory)
    found = _evaluated(campaign, cache)
    return files.render(campaign, found, formats, figures, published=published, cache=cache)


def measurements(directory: Path) -> tuple[tuple[Measurement, ...], tuple[TrialRecord, ...]]:
    """All measurements of a campaign, what its trials cost the machine included, and its trials (failed where their
    output was refused)."""
    from vtax.evidence.machine_cost import machine_cost
    from vtax.evidence.outside import from_outside

    campaign = Campaign.open(directory)
    plan = campaign.plan()
    read = Readings(campaign, keep=False).all(campaign.trials(texts=False))
    trials = tuple(one.record for one in read)
    cost = machine_cost(plan, trials, {one.record.id: one.reading for one in read})
    return (*(value for one in read for value in one.measurements), *from_outside(plan, trials), *cost), trials


def claims(directory: Path) -> tuple[Compared, ...]:
    """The published numbers that were given with imported logs, each against the logs."""
    from vtax.publishing.files import compared_claims

    return compared_claims(Campaign.open(directory), *measurements(directory))


def compose_file(study: Study, environment: str, paths: Paths) -> str:
    """The Compose file of an environment. Raises UsageError where its provider cannot write one."""
    found = [spec for spec in study.environments if spec.name == environment]
    if not found:
        names = ", ".join(spec.name for spec in study.environments)
        raise UsageError(f"the study has no environment {environment!r}", remedy=f"it has {names}")
    spec = resolve(found[0], paths)
    writer = provider(spec.provider, paths.runtime)
    if not isinstance(writer, WritesCompose):
        raise UsageError(
            f"environment {environment!r} has provider {spec.provider!r}, which cannot write a Compose file",
            remedy="choose a container environment",
        )
    providers = {one.name: provider(resolve(one, paths).provider, paths.runtime) for one in study.environments}
    shape = shape_of(study, capacity(host_facts()), providers)
    image = cached_image(with_own_image(study, paths), paths)
    return writer.compose_file(study.name, spec, shape, study.shared_path, image)
