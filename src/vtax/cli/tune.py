"""vtax tune: parameters of a benchmark for a machine that vtax does not run on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Memory = Annotated[str | None, typer.Option(help="Memory of one node [this machine's].")]
Ranks = Annotated[int | None, typer.Option(min=1, help="Ranks on one node [this machine's CPUs].")]
Nodes = Annotated[int, typer.Option(min=1, max=100_000, help="Number of nodes.")]
BlockSize = Annotated[int, typer.Option(min=1, max=4096, help="Block size.")]
Fraction = Annotated[float, typer.Option(help="Part of the memory that the matrix fills.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write HPL.dat (xhpl) or hpccinf.txt (hpcc).")]
Json = Annotated[bool, typer.Option("--json", help="Print this as JSON.")]


@app.callback()
def tune() -> None:
    """Compute parameters of a benchmark for machines that vtax does not run on.

    \b
    Example:  vtax tune hpl --nodes 2 --memory "2 GiB" --ranks 2
    """


@app.command()
def hpl(
    memory: Memory = None,
    ranks: Ranks = None,
    nodes: Nodes = 1,
    nb: BlockSize = 192,
    fraction: Fraction = 0.8,
    output: Output = None,
    json: Json = False,
) -> None:
    """Compute N, NB and the grid P x Q of HPL for nodes of a size, as the plan of a study does.

    \b
    Example:  vtax tune hpl --nodes 2 --memory "2 GiB" --ranks 2 --output hpccinf.txt
    """
    from vtax.cli.console import print_json, say
    from vtax.facts.host import capacity, host_facts
    from vtax.launchers.base import ranks_for
    from vtax.model.nodes import NodeShape, Role, Scope, Target
    from vtax.tools.hpcc.linpack import LinpackParams, file_for, grid_of, largest_n, operations, room_bytes
    from vtax.units import format_bytes

    here = capacity(host_facts())
    size = _checked(memory, fraction, output) or here.memory_bytes
    each = ranks or len(here.cpu_ids)
    shapes = tuple(
        NodeShape(name=f"node{i}", role=Role.WORKER, cpus=each, cpu_ids=(), memory_bytes=size, disk_bytes=0)
        for i in range(1, nodes + 1)
    )
    target = Target(scope=Scope.WORKERS, nodes=shapes, directory="/")
    params = LinpackParams(memory_fraction=fraction)
    placed = ranks_for(shapes, each, 1)
    p, q = grid_of(params, placed.total)
    n = largest_n(params, target, placed, nb)
    if output:
        _write(output, file_for(output.name, n, nb, p, q))
    if json:
        print_json({"n": n, "nb": nb, "p": p, "q": q, "ranks": placed.total, "matrix_bytes": n * n * 8})
        return
    say(
        f"N = {n}  NB = {nb}  P x Q = {p} x {q}",
        f"{placed.total} ranks on {nodes} nodes of {format_bytes(size)}",
        f"matrix {format_bytes(n * n * 8)}: {fraction:g} of the {format_bytes(int(room_bytes(target, placed)))} "
        "that the systems and the ranks themselves leave free, in whole blocks",
        f"{operations(n):.3g} operations: {operations(n) / 1e11:.0f} s at 100 Gflop/s",
        *([f"written to {output}"] if output else []),
    )


def _checked(memory: str | None, fraction: float, output: Path | None) -> int | None:
    """The memory of a node in bytes, where it is given. Raises UsageError for an option that makes no sense."""
    from vtax.errors import UsageError
    from vtax.tools.hpcc.linpack import HPL_FILES
    from vtax.units import parse_bytes

    try:
        size = parse_bytes(memory) if memory else None
    except ValueError as error:
        raise UsageError(f"--memory: {error}", remedy='write it as in "2 GiB"') from error
    if not 0 < fraction <= 0.95:
        raise UsageError(f"--fraction {fraction:g} leaves nothing for the system", remedy="above 0, at most 0.95")
    if output and output.name not in HPL_FILES:
        raise UsageError(f"no program reads {output.name}", remedy=f"name it {' or '.join(HPL_FILES)}")
    return size


def _write(output: Path, content: str) -> None:
    """A new file. Raises UsageError when it exists, StoreError when it cannot be written."""
    from vtax.errors import StoreError, UsageError

    try:
        with output.open("x") as file:
            file.write(content)
    except FileExistsError:
        raise UsageError(f"{output} exists already", remedy="choose another name, or move it away") from None
    except OSError as error:
        raise StoreError(f"{output} cannot be written: {error.strerror}", remedy="choose another place") from error
