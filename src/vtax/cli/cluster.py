"""vtax up, status, ssh, exec, down: clusters to use by hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

Environment = Annotated[
    str,
    typer.Argument(
        help="An environment of --study, or the name of a provider, as `vtax doctor` lists them.", show_default=False
    ),
]


def up(
    environment: Environment,
    study: Annotated[Path | None, typer.Option(help="The study with that environment [the quick preset].")] = None,
) -> None:
    """Bring a cluster up and verify it: limits, names, SSH between all nodes, the shared file system, MPI placement.

    \b
    Example:  vtax up container && vtax ssh container worker1
    """
    from vtax.cli.console import paths, say
    from vtax.cli.progress import progress
    from vtax.running import clusters

    with progress() as listener:
        about = clusters.up(environment, study, paths(), listener)
    say(*(f"  {line}" for line in about.checks))
    say(f"{environment} is up; `vtax ssh {environment} worker1`, `vtax down {environment}`")


def status(json: Annotated[bool, typer.Option("--json", help="Print this as JSON.")] = False) -> None:
    """Show the clusters that are up, and whether their nodes answer.

    \b
    Example:  vtax status
    """
    from vtax.cli.console import paths, print_json, say, table
    from vtax.running import clusters
    from vtax.units import format_bytes

    rows, content = [], []
    for about in clusters.saved_clusters(paths()):
        found = clusters.connect(about.spec.name, paths())
        alive = clusters.answers(found)
        for node in found.cluster.nodes:
            shape = node.shape
            cpus = ",".join(map(str, shape.cpu_ids))
            answer = "answers" if alive[node.name] else "no answer"
            memory = format_bytes(shape.memory_bytes)
            rows.append((about.spec.name, about.spec.provider, node.name, node.address, cpus, memory, answer))
        content.append({**about.model_dump(mode="json"), "answers": alive})
    if json:
        print_json(content)
    elif rows:
        say(table(rows, ("ENVIRONMENT", "PROVIDER", "NODE", "ADDRESS", "CPUS", "MEMORY", "STATE")))
    else:
        say("no cluster is up; `vtax up container` brings one up")


def ssh(environment: Environment, node: Annotated[str, typer.Argument(help="The node.")] = "master") -> None:
    """Open a shell on a node.

    \b
    Example:  vtax ssh container worker1
    """
    from vtax.cli.console import paths
    from vtax.running import clusters

    found = clusters.connect(environment, paths())
    command = found.cluster.node(clusters.node_of(found, node)).transport.shell((), terminal=True)
    sys.stdout.flush()
    os.execvp(command[0], command)


def exec_(
    environment: Environment,
    node: Annotated[str, typer.Argument(help="The node.", show_default=False)],
    command: Annotated[list[str], typer.Argument(help="The command and its arguments, after --.", show_default=False)],
) -> None:
    """Run a command on a node and exit with its exit code.

    \b
    Example:  vtax exec container worker1 -- nproc
    """
    from vtax.cli.console import paths
    from vtax.running import clusters

    found = clusters.connect(environment, paths())
    words = found.cluster.node(clusters.node_of(found, node)).transport.shell(command, terminal=sys.stdin.isatty())
    sys.stdout.flush()
    os.execvp(words[0], words)


def down(
    environments: Annotated[list[str] | None, typer.Argument(help="Which clusters [all].", show_default=False)] = None,
) -> None:
    """Take clusters down.

    \b
    Example:  vtax down container
    """
    from vtax.cli.console import paths, say
    from vtax.running import clusters

    names = environments or [about.spec.name for about in clusters.saved_clusters(paths())]
    for name in names:
        clusters.down(name, paths())
        say(f"{name} is down")
    if not names:
        say("no cluster is up")
