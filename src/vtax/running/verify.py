"""Verification that a cluster is as planned, by asking the nodes themselves before the first trial.

Every check that passes is a sentence in the cell's record; every one that fails is a line of one NotMatched error.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from vtax import tools
from vtax.errors import NotMatched, ProvisionError
from vtax.facts import node as node_facts
from vtax.facts.cpu import cpu_list
from vtax.facts.memory import kernel_keeps
from vtax.facts.sections import MARK
from vtax.model.cluster import NodeFacts, Workload
from vtax.model.nodes import EVERY_PAIR, NodeShape, Scope, Target
from vtax.providers import overlay
from vtax.providers.base import SCRATCH, WORKLOAD, Cluster
from vtax.running import peers
from vtax.running.crossing import crosses, lost_between
from vtax.running.placement import Outcome, placement
from vtax.transport.parallel import each
from vtax.units import format_bytes

CHECK_S = 60.0
PAGE = 4096
QUOTA_STEP = 1e-4  # CPUs: a quota is whole microseconds
SSH_FAILED = 255  # the exit code of ssh itself, when there is no connection
PLACE = "/vtax-placement"


def verify(
    cluster: Cluster, targets: Sequence[Target], workload: Workload | None = None, seed: int = 0
) -> tuple[tuple[NodeFacts, ...], tuple[str, ...]]:
    """The facts of every node and the checks that passed. `targets` are the node sets of parallel programs, `workload`
    is the study's own image, `seed` chooses between which nodes of many SSH is checked.

    Raises NotMatched with everything that differs from the plan.
    """
    with ThreadPoolExecutor(max_workers=1) as meanwhile:
        lost = meanwhile.submit(lost_between, cluster)
        facts, examined = _examined(cluster, seed)
    outcomes = [_limits(cluster, facts), examined, crosses(cluster, facts, lost.result())]
    if workload is not None:
        outcomes.append(_own_image(cluster, facts, workload))
    _refuse(cluster, outcomes)
    # Only now, because these write files, and the nodes had to be empty.
    launches: list[Callable[[], Outcome]] = [partial(placement, cluster, target) for target in targets]
    outcomes += in_turn([partial(_shared, cluster), *launches], len(cluster.nodes))
    _refuse(cluster, outcomes)
    return facts, tuple(line for passed, _ in outcomes for line in passed)


def in_turn(checks: Sequence[Callable[[], Outcome]], nodes: int) -> list[Outcome]:
    """What checks come to: all at once, or on many nodes one after the other. A launch on 64 nodes starts a daemon on
    each, and a second one at the same time makes both late where nodes share few CPUs."""
    if nodes > EVERY_PAIR:
        return [check() for check in checks]
    return each(lambda check: check(), checks)


def _refuse(cluster: Cluster, outcomes: Sequence[Outcome]) -> None:
    """Raise NotMatched with everything that is wrong so far."""
    wrong = [line for _, mistakes in outcomes for line in mistakes]
    if wrong:
        raise NotMatched(
            f"environment {cluster.environment.name!r} is up, but not as planned",
            detail="\n".join(wrong),
            remedy=f"nothing was measured; {_remedy(cluster)}",
        )


def _remedy(cluster: Cluster) -> str:
    if cluster.link is None:
        return "run `vtax doctor` to see what this machine can limit"
    between = cluster.link.interconnect
    what = "UDP" if between.kind == "vxlan" else "any TCP"
    return (
        f"between machines, a firewall must let {what} port {between.port} through, and the network carry packets of "
        f"{min(one.mtu for one in between.uplinks.values())} bytes; `vtax doctor --machines` shows what they can limit"
    )


def parallel_targets(cluster: Cluster, scopes: Sequence[Scope]) -> tuple[Target, ...]:
    """The targets of parallel programs among `scopes`, with their own directory for this check."""
    nodes = {Scope.WORKERS: cluster.shape.workers, Scope.CLUSTER: cluster.shape.nodes}
    root = cluster.shared_path if cluster.one_directory else SCRATCH
    return tuple(
        Target(scope=scope, nodes=nodes[scope], directory=f"{root}{PLACE}-{scope.value}")
        for scope in (Scope.WORKERS, Scope.CLUSTER)
        if scope in scopes
    )


def _limits(cluster: Cluster, facts: Sequence[NodeFacts]) -> Outcome:
    passed: list[str] = []
    wrong: list[str] = []
    by_quota = cluster.environment.options.get("cpu_limit") == "quota"
    given = cluster.environment.options.get("cpu_share")
    share = float(given) if isinstance(given, (int, float)) else None
    for one in facts:
        shape = cluster.shape.node(one.node)
        mistakes = [
            *([] if by_quota else cpus_differ(shape, one, cluster.capabilities.own_kernel)),
            *quota_differs(shape, one, exact=by_quota or share is not None, share=1.0 if share is None else share),
            *(
                memory_differs(shape, one, cluster.capabilities.own_kernel)
                if cluster.capabilities.limits_memory
                else []
            ),
        ]
        wrong += [f"{one.node}: {line}" for line in mistakes]
        if not mistakes:
            seen = one.values
            memory = seen.get("memory_total_bytes" if cluster.capabilities.own_kernel else "memory_limit_bytes")
            limit = format_bytes(memory) if memory is not None else "not limited"
            quota = seen.get("cpu_quota_cpus")
            passed.append(
                f"limits of {one.node}: CPUs {seen.get('cpus_allowed', 'unknown')}, memory {limit}, "
                f"CPU quota {'none' if quota is None else f'{quota:g}'}"
            )
    return passed, wrong


def cpus_differ(shape: NodeShape, facts: NodeFacts, own_kernel: bool) -> list[str]:
    """What is wrong with the CPUs that a node may use. A node with its own kernel numbers them from 0."""
    seen = facts.values.get("cpus_allowed")
    if seen is None:
        return ["the CPUs that it may use are unknown"]
    wanted = set(range(shape.cpus)) if own_kernel else set(shape.cpu_ids)
    if set(cpu_list(str(seen))) != wanted:
        return [f"may use CPUs {seen}, but the plan has {','.join(map(str, sorted(wanted)))}"]
    return []


def quota_differs(shape: NodeShape, facts: NodeFacts, exact: bool, share: float = 1.0) -> list[str]:
    """What is wrong with the CPU quota: it must not bind before the cpuset does, or be exactly the node's share."""
    seen = facts.values.get("cpu_quota_cpus")
    if exact:
        wanted = shape.cpus * share
        good = seen is not None and abs(float(seen) - wanted) < QUOTA_STEP
        return [] if good else [f"has a CPU quota of {seen}, but the plan has {wanted:g}"]
    if seen is not None and float(seen) < shape.cpus:
        return [f"has a CPU quota of {seen:g}, which binds before its {shape.cpus} CPUs do"]
    return []


def memory_differs(shape: NodeShape, facts: NodeFacts, own_kernel: bool) -> list[str]:
    """What is wrong with the memory limit, to the page. A node with its own kernel has that much memory instead, minus
    what the kernel reserves."""
    if own_kernel:
        total = int(facts.values.get("memory_total_bytes", 0))
        if shape.memory_bytes - kernel_keeps(shape.memory_bytes) <= total <= shape.memory_bytes:
            return []
        return [f"has {format_bytes(total)} of memory, but the plan has {format_bytes(shape.memory_bytes)}"]
    seen = facts.values.get("memory_limit_bytes")
    if seen is None:
        return [f"has no memory limit, but the plan has {format_bytes(shape.memory_bytes)}"]
    if abs(int(seen) - shape.memory_bytes) >= PAGE:
        return [f"has a memory limit of {format_bytes(int(seen))}, but the plan has {format_bytes(shape.memory_bytes)}"]
    return []


def _examined(cluster: Cluster, seed: int) -> tuple[tuple[NodeFacts, ...], Outcome]:
    """One script on every node, all at the same time: its facts, whether it is new (without files of an earlier
    cluster), and whether it finds every other node by name and can log in to those that it should."""
    addresses = {node.name: node.address for node in cluster.nodes}
    separate = cluster.capabilities.separate_nodes
    places = (SCRATCH, cluster.shared_path)
    wait_s = (peers.LOGIN_S + len(addresses)) * cluster.timeout_factor
    servers = peers.logins(list(addresses), seed)

    def ask(name: str) -> tuple[NodeFacts, list[str]]:
        others = {other: at for other, at in addresses.items() if separate and other != name}
        look = f'find {" ".join(places)} -mindepth 1 2>&1 | while read -r line; do echo "vtax-holds $line"; done'
        calls = peers.script(list(others), servers[name] if separate else (), wait_s)
        script = f"{look}\n{calls}\nwait\n{node_facts.script(*places, tools.packages(), tools.hashed())}"
        result = cluster.node(name).transport.run(("sh", "-s"), timeout_s=CHECK_S, stdin=script)
        if result.exit_code == SSH_FAILED and not result.stdout:
            raise ProvisionError(
                f"{name} was ready, but no longer answers",
                detail=result.stderr.strip(),
                remedy="has it ended? does another program remove clusters here?",
            )
        said = result.stdout.partition(f"\n{MARK}")[0]
        mistakes = [*not_new(name, said), *peers.wrong(name, others, servers[name], said)]
        return node_facts.parse(name, result.stdout, *places), mistakes

    asked = each(ask, list(addresses))
    wrong = [line for _, lines in asked for line in lines]
    passed = [f"{SCRATCH} and {cluster.shared_path} are empty"]
    if separate:
        passed.append(peers.sentence(servers, seed))
    return tuple(facts for facts, _ in asked), ([] if wrong else passed, wrong)


def not_new(name: str, text: str) -> list[str]:
    """What a node says of files of an earlier cluster."""
    held = re.findall(r"^vtax-holds (.*)$", text, re.MULTILINE)
    return [f"{name} is not new: it contains {held[0]}"] if held else []


def _own_image(cluster: Cluster, facts: Sequence[NodeFacts], workload: Workload) -> Outcome:
    """Every node has the study's own image, with what is the node's own inside."""
    inside = {*overlay.OWN, overlay.HOSTS, cluster.shared_path}
    wrong = [f"{one.node}: {line}" for one in facts for line in image_differs(one, workload, inside)]
    kinds = sorted({str(cluster.facts.get(one.node, {}).get("workload_layer", "unknown")) for one in facts})
    passed = (
        f"{WORKLOAD} is the image {workload.source}, sha256 {workload.digest[:12]}, on all {len(facts)} nodes; "
        f"what they write into it is on {'/'.join(kinds)}"
    )
    return ([] if wrong else [passed]), wrong


def image_differs(facts: NodeFacts, workload: Workload, inside: Collection[str]) -> list[str]:
    """What is wrong with the study's own image on a node. Nothing in it is run for that: it may have no shell."""
    seen = facts.values.get("workload_digest")
    if seen is None:
        return [f"{WORKLOAD} does not have the image {workload.source}"]
    if seen != workload.digest:
        return [f"{WORKLOAD} is the image with sha256 {seen}, but the plan has {workload.digest}"]
    kind = facts.values.get("workload_filesystem", "no file system")
    wrong = [] if kind == "overlay" else [f"{WORKLOAD}/{overlay.ROOT} is {kind}, not an overlay"]
    lost = sorted(set(inside) - set(facts.values.get("workload_mounts", ())))
    return [*wrong, *([f"{', '.join(lost)} in the image is not that of the node"] if lost else [])]


def _shared(cluster: Cluster) -> Outcome:
    """What the first node writes to the shared file system, every node reads."""
    if not cluster.one_directory:
        return [f"{cluster.shared_path} is not shared between machines, and nothing uses it"], []
    token, path = secrets.token_hex(8), f"{cluster.shared_path}/.vtax-token"
    first = cluster.nodes[0]
    written = first.transport.run(("sh", "-c", f"echo {token} >{path}"), timeout_s=CHECK_S)
    if written.exit_code != 0:
        return [], [f"{first.name} cannot write to {cluster.shared_path}: {written.stderr.strip()}"]

    def sees(name: str) -> bool:
        return cluster.node(name).transport.run(("cat", path), timeout_s=CHECK_S).stdout.strip() == token

    names = [node.name for node in cluster.nodes]
    blind = [name for name, seen in zip(names, each(sees, names), strict=True) if not seen]
    first.transport.run(("rm", "-f", path), timeout_s=CHECK_S)
    wrong = [f"{name} does not see what {first.name} wrote to {cluster.shared_path}" for name in blind]
    return ([] if wrong else [f"{cluster.shared_path} is the same on all {len(names)} nodes"]), wrong
