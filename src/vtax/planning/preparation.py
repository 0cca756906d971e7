"""What must be known before anything starts: which providers work here, the frozen plan, the root file system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vtax.errors import EnvironmentMissing, NotMatched, UsageError
from vtax.events import Listener, ignore
from vtax.facts.host import capacity, host_facts
from vtax.image import build, derived, integrity, recipe
from vtax.image.workload import cache as workloads
from vtax.machines.provider import RemoteProvider
from vtax.machines.spread import SpreadProvider
from vtax.model.cluster import Image, Workload
from vtax.model.finding import Problem, Severity
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.plan import Plan
from vtax.model.study import EnvironmentSpec, ImageSpec, Study
from vtax.paths import Paths
from vtax.planning.interleaving import arranged
from vtax.planning.on_machines import (
    Agents,
    connected,
    described,
    problems_on,
    providers_on,
    refuse_one_machine_twice,
    unlike,
)
from vtax.planning.placement import common_capacity, covering, placed, room_apart
from vtax.planning.plan import make_plan
from vtax.planning.sharing import with_nfs, with_nfs_between
from vtax.providers import overlay, provider, resolved
from vtax.providers.base import WORKLOAD, Provider
from vtax.wording import listed


@dataclass(frozen=True)
class Prepared:
    """A plan, the providers of its environments, and what keeps each of them from working here."""

    plan: Plan
    providers: Mapping[str, Provider]
    problems: Mapping[str, tuple[Problem, ...]]
    machines: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # what those of the study say of themselves

    def blockers(self, environment: str) -> list[Problem]:
        return [problem for problem in self.problems[environment] if problem.severity is Severity.BLOCKER]

    def warnings(self) -> list[str]:
        """What to know before the start: what works here, but perhaps not as expected."""
        known = [problem for name in self.providers for problem in self.problems[name]]
        return [f"{one.message}; {one.remedy}" for one in known if one.severity is Severity.WARNING]


def prepare(study: Study, paths: Paths, *, only_available: bool = False, listener: Listener = ignore) -> Prepared:
    """Resolve the environments, ask each provider what is missing, and freeze the plan. Starts nothing.

    With `only_available`, environments that cannot work here are left out, and the plan says why. A study with machines
    is for these: they are asked. Raises EnvironmentMissing for one that cannot be used.
    """
    if not study.machines:
        return _prepared(study, Here(paths), paths, only_available=only_available)
    with connected(study, paths, listener) as agents:
        return prepare_on(study, agents, paths, only_available=only_available)


def prepare_on(study: Study, agents: Agents, paths: Paths, *, only_available: bool = False) -> Prepared:
    """The same for a study whose machines are connected."""
    study = with_nfs(study, agents)
    return _prepared(study, There(agents, study), paths, only_available=only_available)


def _prepared(study: Study, where: Here | There, paths: Paths, *, only_available: bool) -> Prepared:
    room = where.room
    study = with_own_image(study, paths)
    environments = where.resolved(study.environments)
    study = study.model_copy(update={"environments": tuple(environments)})
    providers = dict(where.providers)
    shape = shape_of(study, room, providers)
    problems = {spec.name: where.checked(spec, shape, study.image) for spec in environments}
    left_out = []
    if only_available:
        for spec in environments:
            reasons = [problem.message for problem in problems[spec.name] if problem.severity is Severity.BLOCKER]
            if reasons:
                left_out.append(f"environment {spec.name} is left out: {'; '.join(reasons)}")
                del providers[spec.name]
        if shape_of(study, room, providers) != shape:  # fewer environments share the memory
            shape = shape_of(study, room, providers)
            problems |= {
                spec.name: where.checked(spec, shape, study.image) for spec in environments if spec.name in providers
            }
    repeated = {spec.name for spec in environments if spec.control_of}
    if study.baseline not in providers or len(providers.keys() - repeated) < min(2, len(environments) - len(repeated)):
        lost = study.baseline not in providers
        raise EnvironmentMissing(
            f"the baseline {study.baseline} is not available on this machine"
            if lost
            else "no environment besides the baseline is available on this machine",
            detail="\n".join(left_out),
            remedy="run `vtax doctor` to see what is missing and how to fix it",
        )
    study = with_nfs_between(study, providers, shape)
    plan = make_plan(study, room, providers, left_out=left_out, capacities=where.capacities)
    return Prepared(plan, providers, problems, where.machines)


class Here:
    """This machine, as far as plans depend on it."""

    def __init__(self, paths: Paths) -> None:
        self.paths = paths
        self.room = capacity(host_facts())
        self.machines: Mapping[str, Mapping[str, Any]] = {}
        self.capacities: Mapping[str, HostCapacity] = {}
        self.providers: Mapping[str, Provider] = {}

    def resolved(self, environments: Sequence[EnvironmentSpec]) -> list[EnvironmentSpec]:
        found = [resolve(spec, self.paths) for spec in environments]
        self.providers = {spec.name: provider(spec.provider, self.paths.runtime) for spec in found}
        return found

    def checked(self, spec: EnvironmentSpec, shape: ClusterShape, image: ImageSpec) -> tuple[Problem, ...]:
        """Everything that keeps an environment from working here with this [image]."""
        return checked(self.providers[spec.name], spec, shape, self.room, image)


class There:
    """The machines of a study. What providers say is that of the first; the others must say the same."""

    def __init__(self, agents: Agents, study: Study) -> None:
        self.agents, self.study = agents, study
        self.machines, self.capacities = described(agents)
        refuse_one_machine_twice(self.machines)
        self.room = room_apart(study, common_capacity(self.capacities))
        self.on: Mapping[str, Mapping[str, RemoteProvider]] = {}
        self.providers: Mapping[str, Provider] = {}

    def resolved(self, environments: Sequence[EnvironmentSpec]) -> list[EnvironmentSpec]:
        self.on = providers_on(self.agents, environments, self.study)
        if self.study.apart:
            machines, nfs = self.study.machines, self.study.nfs_used
            self.providers = {
                spec.name: SpreadProvider(self.agents, self.on[spec.name], machines, nfs) for spec in environments
            }
        else:
            self.providers = {spec.name: next(iter(self.on[spec.name].values())) for spec in environments}
        return [spec.model_copy(update={"provider": self.providers[spec.name].name}) for spec in environments]

    def checked(self, spec: EnvironmentSpec, shape: ClusterShape, image: ImageSpec) -> tuple[Problem, ...]:
        """The same, on any of them."""
        on = self.on[spec.name]
        if self.study.apart:
            one, room = self.providers[spec.name], self.room
            found = [
                one.check(spec, placed(shape, each, self.capacities), room) for each in reversed(covering(self.study))
            ]
            return (*unlike(spec.name, on), *dict.fromkeys(problem for several in found for problem in several))
        own = on[next(iter(on))].workload_problems(spec) if image.workload else ()
        return (*own, *unlike(spec.name, on), *problems_on(self.agents, on, spec, shape, self.capacities))


def checked(
    one: Provider, spec: EnvironmentSpec, shape: ClusterShape, room: HostCapacity, image: ImageSpec
) -> tuple[Problem, ...]:
    """Everything that keeps an environment from working here with this [image]."""
    own = one.workload_problems(spec) if image.workload else ()
    return (*one.check(spec, shape, room), *own)


def shape_of(study: Study, room: HostCapacity, providers: Mapping[str, Provider]) -> ClusterShape:
    """The shape of the nodes in every environment of a plan with these providers."""
    return arranged(study, room, {name: one.capabilities for name, one in providers.items()}).shape


def resolve(spec: EnvironmentSpec, paths: Paths) -> EnvironmentSpec:
    """The same environment with the provider that its `provider` means on this machine."""
    return spec.model_copy(update={"provider": resolved(spec.provider, paths.runtime)})


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
            "some environments are not available on this machine",
            detail="\n".join(f"{name}: {problem.message}" for name, problem in missing),
            remedy="; ".join(dict.fromkeys(problem.remedy for _, problem in missing))
            + "; or use `vtax run --available` to leave them out",
        )


def cached_image(study: Study, paths: Paths) -> Image | None:
    """The root file system of a study, with its packages and its own image, where all of that is in the cache. Raises
    ImageError when it was changed there."""
    made = recipe.recipe(study.image, build.find_machine_mirror())
    image = derived.cached(paths.images, made, study.packages)
    if image is not None:
        integrity.verify(image)
    if image is None or study.image.workload is None:
        return image
    own = own_image(study, paths)
    return image.model_copy(update={"workload": own}) if own else None


def image_of(study: Study, paths: Paths, listener: Listener, plan: Plan | None = None) -> Image:
    """The root file system of a study, with its packages and its own image; what the cache lacks is made. Raises
    UsageError where the image cannot do what the `plan` wants."""
    refuse_unknown_packages(study, paths, listener)
    spec = study.image.workload
    own = workloads.ensure(paths.workloads, spec, listener) if spec else None  # sooner wrong than a root file system
    if own:
        overlay.refuse_unfit(own, study.shared_path)
        refuse_no_command(plan, own)
    made = recipe.recipe(study.image, build.find_machine_mirror())
    image = derived.ensure(paths.images, made, study.packages, listener)
    return image.model_copy(update={"workload": own})


def refuse_no_command(plan: Plan | None, own: Workload) -> None:
    """Raise UsageError where a command is left to an image that names none."""
    left = {
        work.label
        for work in (plan.work if plan is not None and not own.entry else ())
        for step in work.steps
        if WORKLOAD in step.argv and step.argv.index("--") == len(step.argv) - 1
    }
    if left:
        raise UsageError(
            f"{listed(sorted(left))}: there is no command, and the image names none",
            remedy="give the entry, or its service, a `command`, or the image an entry point",
        )


def refuse_unknown_packages(study: Study, paths: Paths, listener: Listener) -> None:
    """Raise UsageError for a package of the study that its Debian does not have, where it would have to be installed
    first: asked in seconds, before anything is built, unpacked or copied."""
    made = recipe.recipe(study.image, build.find_machine_mirror())
    if derived.cached(paths.images, made, study.packages) is not None or build.missing():
        return
    built = build.cached(paths.images, made) is not None
    named = (*study.packages, *(() if built else study.image.extra_packages))
    if derived.additional(made, study.packages) or (named and not built):
        derived.check(paths.images, made, named, listener)


def base_image(spec: ImageSpec, paths: Paths, listener: Listener) -> Image:
    """The root file system that studies with this [image] start from, built when the cache lacks it."""
    return build.ensure(paths.images, recipe.recipe(spec, build.find_machine_mirror()), listener)


def with_own_image(study: Study, paths: Paths, *, freeze: bool = False) -> Study:
    """The study with the digest of its own image: what files say, or, to `freeze` it, what a registry says now.

    Raises UsageError for what is not an image for this machine.
    """
    spec = study.image.workload
    if spec is None:
        return study
    found = workloads.frozen(paths.workloads, spec) if freeze else workloads.looked_up(paths.workloads, spec)
    return study.model_copy(update={"image": study.image.model_copy(update={"workload": found})})


def own_image(study: Study, paths: Paths) -> Workload | None:
    """The study's own image where it is in the cache."""
    spec = study.image.workload
    return workloads.cached(paths.workloads, spec) if spec else None


def refuse_missing_own_image(study: Study, paths: Paths) -> None:
    """Raise NotMatched where the own image that a campaign was started with is no longer in the cache."""
    spec = study.image.workload
    if spec is not None and own_image(study, paths) is None:
        raise NotMatched(
            "the study's own image is no longer in the cache",
            detail=f"{spec.source}, sha256 {spec.digest}",
            remedy="`vtax image build` with the study unpacks it again, if it is still the same image",
        )


def to_make(study: Study, paths: Paths) -> dict[str, float]:
    """What of a study's root file system the cache lacks, with about how many seconds it takes."""
    made = recipe.recipe(study.image, build.find_machine_mirror())
    lacking = {}
    if derived.cached(paths.images, made, study.packages) is None:
        if build.cached(paths.images, made) is None:
            lacking["build the root file system"] = build.ESTIMATE_S
        if derived.additional(made, study.packages):
            lacking["install its packages"] = derived.ESTIMATE_S
    if study.image.workload is not None and own_image(study, paths) is None:
        lacking["unpack your own image"] = workloads.ESTIMATE_S
    return lacking
