"""The plan: every cell and every trial in order, with its exact commands, frozen before the first run. Pure.

The same study on the same machine with the same seed gives the same plan, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from vtax import __version__
from vtax.analysis.order import benchmark_order, orders_of_rounds
from vtax.errors import LeftOut, UsageError
from vtax.launchers.base import Launcher
from vtax.model.capabilities import Capabilities
from vtax.model.finding import Problem
from vtax.model.nodes import ClusterShape, HostCapacity, NodeShape, Phase, Scope, Target
from vtax.model.plan import WORK, Cell, Load, Plan, PlannedTrial, Work, busiest_s
from vtax.model.record import TRIALS
from vtax.model.study import BenchmarkSpec, EnvironmentSpec, Interleave, Selection, Study
from vtax.planning.confounding import refuse_confounded
from vtax.planning.interleaving import arranged
from vtax.planning.pairs import is_sampled, number_of_pairs, pairs_of, sentence
from vtax.planning.placement import common_shape, placements
from vtax.planning.selections import selected, unselected
from vtax.planning.sharing import unshared
from vtax.providers.base import SCRATCH, Provider
from vtax.tools import benchmarks
from vtax.tools.benchmark import Around
from vtax.wording import listed

ORCHESTRATION_S = 0.1  # what vtax itself needs for a trial
SWITCH_S = 0.03  # to resume a cluster for a trial and pause it again: from 2 ms (cgroups) to 0.5 s (an emulated guest)


def make_plan(
    study: Study,
    capacity: HostCapacity,
    providers: Mapping[str, Provider],
    *,
    left_out: Sequence[str] = (),
    problems: Sequence[Problem] = (),
    capacities: Mapping[str, HostCapacity] | None = None,
) -> Plan:
    """The plan of `study` for the environments in `providers` (name -> provider), in the study's order.

    `left_out` are sentences: what of the study is not run, and why. `capacities` are those of the study's own machines,
    and `capacity` is what they have in common. Raises UsageError for parameters that do not fit the shape.
    """
    capabilities = {
        spec.name: _capabilities(spec, providers[spec.name]) for spec in study.environments if spec.name in providers
    }
    environments = tuple(selected(spec, providers[spec.name]) for spec in study.environments if spec.name in providers)
    brief = [spec.name for spec in environments if spec.selection.rounds_of(study.rounds) < study.rounds]
    arrangement = arranged(study, capacity, capabilities, brief)
    shape = common_shape(study, arrangement.shape, capacities or {})
    _refuse_too_much(study, environments, shape)
    frozen, unfit = _freeze(study, shape)
    work: list[Work] = []
    skipped = [*left_out, *((arrangement.refused,) if arrangement.refused else ()), *unfit]
    for spec in environments:
        mine, reasons = _work_of(spec, providers[spec.name], frozen)
        work += mine
        skipped += [*unselected(study, spec, providers[spec.name]), *reasons]
    own_s = {spec.name: overhead_s(spec, providers[spec.name], arrangement.interleave) for spec in environments}
    cells = _with_estimates(_cells(study, environments, frozen, work), study, work, providers, own_s)
    refuse_confounded(cells, study.baseline)
    return _sealed(
        Plan(
            vtax_version=__version__,
            study=study,
            capacity=capacity,
            shape=shape,
            environments=environments,
            capabilities=capabilities,
            work=tuple(work),
            cells=cells,
            left_out=tuple(skipped),
            problems=(*problems, *arrangement.problems, *_provider_problems(environments, providers, work)),
            estimate_s=round(busiest_s(cells), 1),
            interleave=arrangement.interleave,
            capacities=capacities or {},
        )
    )


def _with_estimates(
    cells: Sequence[Cell],
    study: Study,
    work: Sequence[Work],
    providers: Mapping[str, Provider],
    own_s: Mapping[str, float],
) -> tuple[Cell, ...]:
    """The cells with the seconds that each takes; `own_s` is what a trial takes besides its work, by environment."""
    seconds = {(item.environment, item.id): item.estimate_s + own_s[item.environment] for item in work}
    setup_s = {name: sum(item.setup_s for item in work if item.environment == name) for name in providers}
    fixed = {name: one.provision_estimate_s + study.settle_s + setup_s[name] for name, one in providers.items()}
    return tuple(
        cell.model_copy(
            update={
                "estimate_s": fixed[cell.environment] + sum(seconds[cell.environment, one.work] for one in cell.trials)
            }
        )
        for cell in cells
    )


def _refuse_too_much(study: Study, environments: Sequence[EnvironmentSpec], shape: ClusterShape) -> None:
    """Raise UsageError before a plan is made that does not fit into memory, and of which no campaign could be read."""
    work = {
        entry.label: sum(number_of_targets(entry, scope, shape) for scope in entry.scopes) for entry in study.benchmarks
    }
    trials = sum(
        work[entry.label]
        * (entry.warmup + spec.selection.iterations_of(entry.iterations))
        * spec.selection.rounds_of(study.rounds)
        for spec in environments
        for entry in study.benchmarks
        if entry.alone and spec.selection.has(entry.label)
    )
    each = max(1, len(study.alternatives))
    trials *= each
    cells = each * sum(spec.selection.rounds_of(study.rounds) for spec in environments)
    for count, what, most in (
        (cells, "cells", TRIALS),
        (trials, "trials", TRIALS),
        (len(environments) * sum(work.values()), "pieces of work", WORK),
    ):
        if count > most:
            raise UsageError(
                f"the study has {count} {what}, and at most {most} are planned",
                remedy="plan fewer rounds, iterations, entries or nodes: the more pairs of nodes, the more trials",
            )


def overhead_s(spec: EnvironmentSpec, provider: Provider, interleave: Interleave) -> float:
    """What a trial takes besides its work."""
    slowdown = provider.slowdown(provider.options.model_validate(dict(spec.options)))
    return ORCHESTRATION_S + (SWITCH_S * slowdown if interleave == "trial" else 0.0)


def _sealed(plan: Plan) -> Plan:
    return plan.model_copy(update={"sha256": digest(plan)})


def digest(plan: Plan) -> str:
    """The sha256 of everything in the plan but the field itself, as canonical JSON."""
    content = plan.model_dump(mode="json", exclude={"sha256"})
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _provider_problems(
    environments: Sequence[EnvironmentSpec], providers: Mapping[str, Provider], work: Sequence[Work]
) -> list[Problem]:
    """What cannot be as planned: environments without any work, sizes that a provider does not enforce."""
    problems = [
        Problem.blocker(
            f"nothing of the study can run in environment {spec.name}",
            "add a benchmark with a scope that makes sense there, or leave the environment out",
        )
        for spec in environments
        if not any(item.environment == spec.name for item in work)
    ]
    free = [spec.name for spec in environments if not providers[spec.name].capabilities.limits_disk]
    if free:
        problems.append(
            Problem.info(
                f"the nodes' disk size is not enforced in {', '.join(free)}",
                "nothing to do: their files use the space of this machine's own file system",
            )
        )
    return problems


class _Frozen:
    """One benchmark on one target, its parameters resolved once for all environments; `load` is what disturbs it."""

    def __init__(self, spec: BenchmarkSpec, target: Target, around: Around, load: _Frozen | None = None) -> None:
        benchmark = benchmarks()[spec.name]
        params = benchmark.params.model_validate(dict(spec.params))
        placed = getattr(benchmark, "placed", None)
        self.spec = spec
        self.target = target
        self.load = load
        self.id = f"{spec.label}.{target.label}"
        self.provisioning = target.scope is Scope.PROVISIONING
        self.params = benchmark.resolve(params if placed is None else placed(params, around), target)

    def work(self, environment: str, provider: Provider, options: Mapping[str, object]) -> Work:
        benchmark = benchmarks()[self.spec.name]
        given = provider.options.model_validate(dict(options))
        launcher = provider.launcher(given)
        clocked_s = benchmark.clocked_s(self.params, self.target)
        busy_s = benchmark.estimate_s(self.params, self.target) - clocked_s
        setup_s = getattr(benchmark, "setup_s", None)
        return Work(
            id=self.id,
            environment=environment,
            benchmark=self.spec.name,
            label=self.spec.label,
            target=self.target,
            params=self.params.model_dump(mode="json"),
            steps=benchmark.steps(self.params, self.target, launcher),
            estimate_s=round(clocked_s + busy_s * provider.slowdown(given), 1),
            setup_s=round(setup_s(self.params) * provider.slowdown(given), 1) if setup_s else 0.0,
            clocked_s=round(clocked_s, 1),
            load=None if self.load is None else self.load.as_load(launcher),
            provisioning=self.provisioning,
        )

    def as_load(self, launcher: Launcher) -> Load:
        """The same work as a disturbance. Raises UsageError when it is not one command."""
        steps = benchmarks()[self.spec.name].steps(self.params, self.target, launcher)
        alone = not any(step.service or step.phase is not Phase.RUN for step in steps)
        if sum(not step.background for step in steps) != 1 or not alone:
            raise UsageError(
                f"{self.spec.label} cannot be a load: it consists of "
                + ("several commands in sequence" if steps else "no command"),
                remedy="reduce it to one command, for instance a single stressor",
            )
        return Load(
            id=self.id,
            benchmark=self.spec.name,
            target=self.target,
            params=self.params.model_dump(mode="json"),
            steps=steps,
        )


def _freeze(study: Study, shape: ClusterShape) -> tuple[tuple[_Frozen, ...], list[str]]:
    """The entries of the study on all their targets, and why some of them cannot run here."""
    unfit: dict[tuple[str, str], list[str]] = {}  # entry and reason -> its targets

    def on_targets(spec: BenchmarkSpec, load: _Frozen | None = None) -> list[_Frozen]:
        fit = []
        around = Around(study.shared_path, study.seed, study.benchmarks.index(spec), study.image.workload is not None)
        for scope in spec.scopes:
            if reason := unfit_apart(study, scope):
                unfit.setdefault((spec.label, reason), []).append(scope.value)
                continue
            for target in targets(spec, scope, shape, study.shared_path, study.seed, study.one_directory):
                try:
                    fit.append(_Frozen(spec, target, around, load))
                except LeftOut as error:
                    unfit.setdefault((spec.label, error.message), []).append(target.label)
        return fit

    loads = {entry.load for entry in study.benchmarks if entry.load}
    first = {spec.label: on_targets(spec)[:1] for spec in study.benchmarks if spec.label in loads}
    run = [spec for spec in study.benchmarks if spec.alone]
    frozen = tuple(item for spec in run for item in on_targets(spec, *first.get(spec.load, [])))
    reasons = {key: list(dict.fromkeys(names)) for key, names in unfit.items()}
    said = [f"{label} is not run on {listed(names)}: {why}" for (label, why), names in reasons.items()]
    numbers = [(spec, len(chosen_nodes(spec, shape))) for spec in study.benchmarks if Scope.PAIRS in spec.scopes]
    said += [sentence(spec, nodes) for spec, nodes in numbers if is_sampled(spec, nodes)]
    if lost := [label for label, load in first.items() if not load]:
        raise UsageError(f"{lost[0]} cannot be a load: it is not run on this machine", detail="\n".join(said))
    return frozen, said


def chosen_nodes(spec: BenchmarkSpec, shape: ClusterShape) -> list[NodeShape]:
    """The nodes of the scopes that take them one by one."""
    return [node for node in shape.nodes if not spec.nodes or node.name in spec.nodes]


def number_of_targets(spec: BenchmarkSpec, scope: Scope, shape: ClusterShape) -> int:
    """How many `targets` there are."""
    nodes = chosen_nodes(spec, shape)
    match scope:
        case Scope.NODE:
            return len(nodes)
        case Scope.SHARED:
            return sum(node in shape.workers for node in nodes)
        case Scope.PAIRS:
            return number_of_pairs(spec, len(nodes))
        case Scope.WORKERS | Scope.CLUSTER | Scope.PROVISIONING:
            return 1


def unfit_apart(study: Study, scope: Scope) -> str:
    """Why a scope makes no sense where the nodes of a cluster are on several machines; "" when it does."""
    if scope is Scope.PROVISIONING and study.apart:
        return "several machines create the cluster, each by its own clock"
    if scope is Scope.SHARED and not study.one_directory:
        return unshared(study)
    return ""


def targets(
    spec: BenchmarkSpec,
    scope: Scope,
    shape: ClusterShape,
    shared_path: str,
    seed: int = 0,
    one_directory: bool = True,
) -> tuple[Target, ...]:
    """The node sets on which one scope of a benchmark runs, in order. `seed` chooses pairs of many nodes.

    Parallel programs work in a directory that all their nodes see, or without one (`one_directory`) in one of the same
    name on each; everything else on the node's own disk.
    """
    common = shared_path if one_directory else SCRATCH

    def target(nodes: Sequence[NodeShape], root: str) -> Target:
        bare = Target(scope=scope, nodes=tuple(nodes), directory=root)
        return bare.model_copy(update={"directory": f"{root}/{spec.label}.{bare.label}"})

    chosen = chosen_nodes(spec, shape)
    match scope:
        case Scope.NODE:
            return tuple(target([node], SCRATCH) for node in chosen)
        case Scope.SHARED:
            workers = [node for node in chosen if node in shape.workers]
            return tuple(target([node], shared_path) for node in workers)
        case Scope.PAIRS:
            return tuple(target(pair, SCRATCH) for pair in pairs_of(spec, chosen, seed))
        case Scope.WORKERS:
            return (target(shape.workers, common),)
        case Scope.CLUSTER | Scope.PROVISIONING:
            return (target(shape.nodes, common),)


def _work_of(spec: EnvironmentSpec, provider: Provider, frozen: Sequence[_Frozen]) -> tuple[list[Work], list[str]]:
    """The work of one environment, and why some of it makes no sense there."""
    work, reasons = [], []
    for item in frozen:
        if not spec.selection.has(item.spec.label):
            continue
        scopes = (item.target.scope, item.load.target.scope if item.load else None)
        if item.provisioning and _capabilities(spec, provider).away:
            reasons.append(f"{item.spec.label} is not run on {spec.name}: its nodes exist already")
            continue
        if Scope.PAIRS in scopes and _one_stack(spec, provider):
            what = "between nodes" if scopes[0] is Scope.PAIRS else "under load"
            reason = f"{item.spec.label} {what} is not run on {spec.name}: its nodes share one network stack"
            if reason not in reasons:
                reasons.append(reason)
            continue
        work.append(item.work(spec.name, provider, spec.options))
    return work, reasons


def _one_stack(spec: EnvironmentSpec, provider: Provider) -> bool:
    """Whether all nodes use one network stack, so that nothing between them measures a network."""
    options, capabilities = provider.options.model_validate(dict(spec.options)), _capabilities(spec, provider)
    return not capabilities.separate_nodes or (options.host_network and capabilities.shares_machine)


def _capabilities(spec: EnvironmentSpec, provider: Provider) -> Capabilities:
    return provider.capabilities_with(provider.options.model_validate(dict(spec.options)))


def _cells(
    study: Study, environments: Sequence[EnvironmentSpec], frozen: Sequence[_Frozen], work: Sequence[Work]
) -> list[Cell]:
    """All cells in the order in which they run: rounds are blocks, environments in balanced random order inside.

    Where machines have whole rounds alone, every one has each round, with its own order; they work at the same time.
    """
    has = {(item.environment, item.id) for item in work}
    cells = []
    rounds = [spec.selection.rounds_of(study.rounds) for spec in environments]
    machines = study.alternatives
    orders = {name: orders_of_rounds(study.seed, rounds, i) for i, name in enumerate(machines, start=1)}
    orders = orders or {"": orders_of_rounds(study.seed, rounds)}
    placed = placements(study)
    for number in range(1, max(rounds, default=0) + 1):
        items = [frozen[i] for i in benchmark_order(study.seed, number, len(frozen))]
        for machine, position in ((name, position) for name in orders for position in orders[name][number - 1]):
            environment, chosen = environments[position].name, environments[position].selection
            cell = "-".join((f"r{number:03d}", *((machine,) if machine else ()), environment))
            mine = [item for item in items if (environment, item.id) in has]
            trials = tuple(trial for item in mine for trial in _trials(cell, item, chosen))
            cells.append(
                Cell(
                    id=cell,
                    round=number,
                    environment=environment,
                    trials=trials,
                    machine=machine,
                    placement=placed[number - 1] if placed else {},
                )
            )
    return cells


def _trials(cell: str, item: _Frozen, chosen: Selection) -> list[PlannedTrial]:
    """Warm-ups first (stored, never analysed), then the measured iterations; once what comes with the cluster."""
    if item.provisioning:
        return [PlannedTrial(id=f"{cell}/{item.id}.1", work=item.id, iteration=1, warmup=False)]
    names = [(f"w{i}", i, True) for i in range(1, item.spec.warmup + 1)]
    names += [(f"{i}", i, False) for i in range(1, chosen.iterations_of(item.spec.iterations) + 1)]
    return [
        PlannedTrial(id=f"{cell}/{item.id}.{suffix}", work=item.id, iteration=i, warmup=warmup)
        for suffix, i, warmup in names
    ]
