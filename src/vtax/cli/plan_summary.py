"""The plan in ten seconds, as `vtax plan` prints it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from vtax.model.cluster import Workload
    from vtax.model.nodes import NodeShape
    from vtax.model.plan import Plan
    from vtax.model.study import BenchmarkSpec, Study, WorkloadSpec
    from vtax.planning.preparation import Prepared

WIDTH, COLUMN = 100, 13  # of the summary, and of the words to the left of it


def summary(prepared: Prepared, lacking: Mapping[str, float], own: Workload | None = None) -> list[str]:
    """The plan in ten seconds: what is compared, how long it takes, what decides, what is left out. `lacking`: what has
    to be made first, with its seconds; `own`: the user's own image where it is in the cache."""
    return [line for word, text in _summary(prepared, lacking, own) for line in _filled(word, text)]


def _filled(word: str, text: str) -> list[str]:
    """A paragraph next to its word."""
    import textwrap

    first, rest = word.ljust(COLUMN), " " * COLUMN
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _summary(prepared: Prepared, lacking: Mapping[str, float], own: Workload | None) -> Iterator[tuple[str, str]]:
    from vtax.model.finding import Severity
    from vtax.model.study import ImageSpec
    from vtax.planning.sharing import form
    from vtax.units import format_seconds
    from vtax.wording import listed

    plan, study = prepared.plan, prepared.plan.study
    others = [spec.name for spec in plan.environments if spec.name != study.baseline]
    against = f"{_names(plan, others)} against {study.baseline}" if others else f"nothing: {study.baseline} alone"
    yield "compares", f"{against}; equivalent is within {100 * study.margin:g} %"
    trials = sum(len(cell.trials) for cell in plan.cells)
    order = "alternating, trial by trial" if plan.interleave == "trial" else "one cluster after the other"
    yield "rounds", f"{study.rounds}, {trials} trials, {order}"
    more = f", and about {format_seconds(sum(lacking.values()))} once to {listed(list(lacking))}" if lacking else ""
    yield "time", f"about {format_seconds(plan.estimate_s)}{_earliest(plan)}{more}"
    if study.machines:
        yield "machines", listed([machine_text(plan, name) for name in study.machines])
    yield "nodes", _nodes(plan.shape.nodes) if not study.apart else _nodes_apart(plan)
    if shared := form(study):
        yield "shared", shared
    if study.packages or study.image.model_copy(update={"workload": None}) != ImageSpec():
        yield "packages", "; ".join(packages_texts(study))  # what decides whose programs run here as root
    if study.image.workload:
        yield "image", "; ".join(own_image_texts(study.image.workload, own))
    runs = {work.label for work in plan.work}
    entries = [spec for spec in study.benchmarks if spec.label in runs]
    if decides := [spec.label for spec in entries if spec.exploratory is not True]:
        yield "decides", ", ".join(decides)
    if explored := [text for spec in entries for text in _explored(spec)]:
        yield "exploratory", ", ".join(explored)
    for place, sentence in enumerate(plan.left_out):
        yield "left out" if place == 0 else "", sentence
    known = (*plan.problems, *(problem for name in prepared.providers for problem in prepared.problems[name]))
    limits = [*(problem.message for problem in known if problem.severity is Severity.WARNING), *_undecidable(plan)]
    for place, sentence in enumerate(limits):
        yield "limits" if place == 0 else "", sentence


def _explored(spec: BenchmarkSpec) -> Iterator[str]:
    """What has no verdict: an entry, or some metrics of it."""
    if isinstance(spec.exploratory, tuple):
        yield from (f"{metric} of {spec.label}" for metric in spec.exploratory)
    elif spec.exploratory:
        yield spec.label


def _undecidable(plan: Plan) -> Iterator[str]:
    """Environments that can have no verdict, although nothing is wrong with them here."""
    from vtax.analysis.records import VERDICT_FROM
    from vtax.wording import plural

    has = {
        spec.name: {(one.label, one.target.label) for one in plan.work if one.environment == spec.name}
        for spec in plan.environments
    }
    for spec in plan.environments:
        rounds = plan.rounds_of(spec.name)
        others = set().union(*(places for name, places in has.items() if name != spec.name))
        if spec.name == plan.study.baseline or spec.selection == spec.emulated:
            continue
        if not has[spec.name] & others:
            yield f"{spec.name} runs nothing that another environment runs too: none of it is compared"
        elif rounds < VERDICT_FROM:
            yield f"{spec.name} takes part in {rounds} {plural(rounds, 'round')}: a verdict needs {VERDICT_FROM}"


def _names(plan: Plan, names: Iterable[str]) -> str:
    from vtax.wording import listed

    control = plan.study.control_name
    return listed([f"{name} (the baseline again)" if name == control else name for name in names])


def machine_text(plan: Plan, name: str) -> str:
    from vtax.units import format_bytes
    from vtax.wording import plural

    has, spec = plan.capacities[name], plan.study.machines[name]
    size = f"{len(has.cpu_ids)} {plural(len(has.cpu_ids), 'CPU')}, {format_bytes(has.memory_bytes)}"
    return f"{name} ({spec.words}: {size})"


def _nodes(nodes: Sequence[NodeShape]) -> str:
    """Every node, or of many those that have the same size."""
    from vtax.model.nodes import EVERY_PAIR
    from vtax.units import format_bytes
    from vtax.wording import listed, plural, shortened

    if len(nodes) <= EVERY_PAIR:
        return listed([_node(node) for node in nodes])
    same: dict[tuple[int, int], list[NodeShape]] = {}
    for node in nodes:
        same.setdefault((node.cpus, node.memory_bytes), []).append(node)
    used = len({cpu for node in nodes for cpu in node.cpu_ids})
    groups = (
        f"{shortened([node.name for node in several])} ({cpus} {plural(cpus, 'CPU')} and {format_bytes(memory)} each)"
        for (cpus, memory), several in same.items()
    )
    return f"{len(nodes)} on {used} {plural(used, 'CPU')}: {'; '.join(groups)}"


def _nodes_apart(plan: Plan) -> str:
    """The nodes and their machines; the CPUs of a node depend on its machine."""
    from vtax.model.study import SPREAD
    from vtax.planning.placement import shape_in
    from vtax.units import format_bytes
    from vtax.wording import listed, plural

    def text(node: NodeShape) -> str:
        return f"{node.cpus} {plural(node.cpus, 'CPU')}, {format_bytes(node.memory_bytes)}"

    if plan.study.place == SPREAD:
        sizes = listed([f"{node.name} ({text(node)})" for node in plan.shape.nodes])
        return f"one on each machine: {sizes}; they change places from round to round"
    placed = shape_in(plan, plan.cells[0]).nodes
    return listed([f"{node.name} on {node.machine} ({text(node)})" for node in placed])


def _node(node: NodeShape) -> str:
    from vtax.units import format_bytes
    from vtax.wording import plural

    cpus = ",".join(map(str, node.cpu_ids))
    return f"{node.name} ({plural(len(node.cpu_ids), 'CPU')} {cpus}, {format_bytes(node.memory_bytes)})"


def _earliest(plan: Plan) -> str:
    """When an interim analysis may end the campaign, or its budget does."""
    from vtax.units import format_seconds

    study, first = plan.study, plan.study.looks[0]
    parts = []
    if first < study.rounds:
        early = format_seconds(plan.estimate_until(first))
        parts.append(f"; about {early} if all verdicts are clear after round {first}")
    if study.budget_s is not None:
        parts.append(f"; the budget of {format_seconds(study.budget_s)} is enough for {within_budget(plan)} rounds")
    return "".join(parts)


def within_budget(plan: Plan) -> int:
    """How many rounds the budget of a study is enough for."""
    budget_s, rounds = plan.study.budget_s or 0.0, range(1, plan.study.rounds + 1)
    return sum(plan.estimate_until(number) <= budget_s for number in rounds)


def own_image_texts(spec: WorkloadSpec, own: Workload | None) -> list[str]:
    """Which image the study's commands run in, and what is known about it."""
    from vtax.units import format_bytes
    from vtax.wording import printable

    if own is None:
        digest = f"sha256 {spec.digest}" if spec.digest else "found out when a campaign starts"
        return [printable(spec.source), digest, "not unpacked yet"]
    return [
        printable(spec.source),
        f"sha256 {own.digest}",
        f"{own.architecture}, {own.libc}, {format_bytes(own.size_bytes)}",
        f"runs {printable(shlex.join(own.entry))}" if own.entry else "no entry point",
        f"as {printable(own.user or 'root')} in {printable(own.working_directory)}",
    ]


def packages_texts(study: Study) -> list[str]:
    """What the root file system is made of, and where that comes from."""
    image = study.image
    usual = "Debian's archive of snapshots" if image.snapshot else "this machine's own mirror"
    mirror = usual if image.mirror == "auto" else image.mirror
    day = f" of {image.snapshot}" if image.snapshot else ""
    extra = [f"extra packages: {' '.join(image.extra_packages)}"] if image.extra_packages else []
    extra += [f"packages of its entries: {' '.join(study.packages)}"] if study.packages else []
    return [f"Debian {image.suite}{day} ({' '.join(image.components)}) from {mirror}, {image.kernel} kernel", *extra]
