"""What hpcc and xhpl share: ranks and grid, the largest matrix that fits, and `hpccinf.txt`.

HPL solves a dense system of N equations on P × Q ranks in blocks of NB. Both programs read `hpccinf.txt` and append to
`hpccoutf.txt`, in the directory of rank 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt
from typing import Annotated, TypeVar

from pydantic import Field

from vtax.errors import UsageError
from vtax.launchers.base import Launcher, Ranks, ranks_for, workers_share
from vtax.model.nodes import Target
from vtax.model.plan import InputFile, Step
from vtax.tools.benchmark import Params
from vtax.tools.fields import Auto
from vtax.units import format_bytes

INPUT = "hpccinf.txt"
OUTPUT = "hpccoutf.txt"
HPL_FILES = ("HPL.dat", INPUT)  # what xhpl of HPL itself, and hpcc, read
PTRANS_PART = "#####"  # begins the part of the file that only hpcc has

NODE_RESERVE_BYTES = 96 * 2**20  # of a node's memory, for its kernel and services
RANK_RESERVE_BYTES = 64 * 2**20  # of a rank's memory, for all but the matrix: 30 to 45 MB were measured

# Eight operations a cycle at 2.5 GHz: half of what AVX2 with FMA can do. SSE2, the slowest kernel of OpenBLAS on
# x86-64, does four: well within SLOWEST.
FLOP_RATE_PER_CPU = 20e9
SLOWEST = 30.0  # a run is hung when it takes this many times as long as estimated, and START_S more
START_S = 600.0

Size = Annotated[int, Field(ge=8, le=10_000_000)]
Block = Annotated[int, Field(ge=1, le=4096)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
T = TypeVar("T")
P = TypeVar("P", bound="LinpackParams")

SKELETON = """\
HPLinpack benchmark input file
vtax
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
{ns}            # of problems sizes (N)
{n}         Ns
{nbs}            # of NBs
{nb}          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{p}            Ps
{q}            Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line (no. 32) is ignored (it serves as a separator). ######
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
"""


class LinpackParams(Params):
    """Where the ranks are. "auto" is one rank for every `threads` CPUs of each node, on the squarest grid with P ≤ Q.

    `memory_fraction` is the part of the nodes' memory that an "auto" matrix fills, after a reserve for the kernel, the
    programs and MPI's buffers.
    """

    p: Count | Auto = "auto"
    q: Count | Auto = "auto"
    memory_fraction: float = Field(0.8, gt=0, le=0.95)
    threads: Count = 1
    ranks_per_node: Count | Auto = "auto"
    yield_when_idle: bool = False
    timeout_s: Annotated[float, Field(gt=0, le=30 * 86_400)] | Auto = "auto"


def known(value: T | Auto) -> T:
    """A resolved parameter. Raises ValueError when it is still "auto"."""
    if isinstance(value, str):
        raise ValueError("the parameters are not resolved")
    return value


def placed(params: P, target: Target) -> tuple[P, Ranks]:
    """`params` with the grid filled in, and its ranks. Raises UsageError when they do not fit each other."""
    ranks = ranks_of(params, target)
    p, q = grid_of(params, ranks.total)
    # Nodes of different sizes have no common number of ranks; it then follows from `threads` alone.
    common = ranks.per_node[0] if len(set(ranks.per_node)) == 1 else params.ranks_per_node
    return params.model_copy(update={"p": p, "q": q, "ranks_per_node": common}), ranks


def ranks_of(params: LinpackParams, target: Target) -> Ranks:
    """The ranks of each node. Raises UsageError when a node has fewer CPUs than its ranks need.

    A rank that waits for a message does not sleep. With two of them on one CPU hpcc took more than 100 times as long.
    """
    fixed = None if params.ranks_per_node == "auto" else params.ranks_per_node
    ranks = ranks_for(target.nodes, fixed, params.threads)
    for node, count in zip(target.nodes, ranks.per_node, strict=True):
        if count * params.threads > node.cpus:
            raise UsageError(
                f"{target.label}: {node.name} has {node.cpus} CPUs, too few for {count} x {params.threads} threads",
                detail="ranks wait for messages without sleeping: two of them on one CPU measure the scheduler",
                remedy="lower `ranks_per_node` or `threads`, or give the nodes more CPUs",
            )
    return ranks


def grid_of(params: LinpackParams, ranks: int) -> tuple[int, int]:
    """P and Q. Raises UsageError when they do not multiply to the number of ranks."""
    if params.p == "auto" and params.q == "auto":
        p = next(divisor for divisor in range(isqrt(ranks), 0, -1) if ranks % divisor == 0)
        q = ranks // p
    else:
        p = ranks // known(params.q) if params.p == "auto" else params.p
        q = ranks // p if params.q == "auto" else known(params.q)
    if p * q != ranks:
        raise UsageError(
            f"a grid of P × Q = {p} × {q} does not hold the {ranks} ranks",
            remedy='leave out `p` and `q` ("auto"), or choose them so that their product is the number of ranks',
        )
    return p, q


def room_bytes(target: Target, ranks: Ranks) -> float:
    """What all ranks together may use for the matrix. HPL deals it out evenly, so the poorest rank decides."""
    pairs = zip(target.nodes, ranks.per_node, strict=True)
    poorest = min((node.memory_bytes - NODE_RESERVE_BYTES) / count for node, count in pairs) - RANK_RESERVE_BYTES
    return max(0.0, poorest) * ranks.total


def largest_n(params: LinpackParams, target: Target, ranks: Ranks, nb: int) -> int:
    """The largest multiple of `nb` whose N² · 8 bytes fit. hpcc's other tests take turns in the same memory."""
    n = isqrt(int(params.memory_fraction * room_bytes(target, ranks)) // 8) // nb * nb
    if n < 8:
        raise UsageError(
            f"{target.label}: the nodes have too little memory for {ranks.total} ranks and a block of {nb}",
            remedy="lower `ranks_per_node` or `nb`, or give the nodes more memory",
        )
    return n


def check_n(n: int, target: Target, ranks: Ranks) -> None:
    """Raises UsageError when a matrix of order `n` does not fit into memory: then swapping would be measured."""
    room = room_bytes(target, ranks)
    if n * n * 8 > room:
        raise UsageError(
            f"{target.label}: a matrix with n = {n} takes {format_bytes(n * n * 8)}, "
            f"and {ranks.total} ranks have {format_bytes(int(room))} for it",
            remedy=f'choose n up to {isqrt(int(room) // 8)}, or "auto"',
        )


def input_file(ns: Sequence[int], nbs: Sequence[int], p: int, q: int) -> InputFile:
    """`hpccinf.txt` for all pairs of `ns` and `nbs`; the rest as in hpcc's own example, with every result checked."""
    text = SKELETON.format(ns=len(ns), n=" ".join(map(str, ns)), nbs=len(nbs), nb=" ".join(map(str, nbs)), p=p, q=q)
    return InputFile(name=INPUT, content=text)


def file_for(name: str, n: int, nb: int, p: int, q: int) -> str:
    """The text of one of `HPL_FILES` for one system. HPL.dat prints to the terminal and ends before PTRANS."""
    text = input_file((n,), (nb,), p, q).content
    if name == INPUT:
        return text
    return text[: text.index(PTRANS_PART)].replace("8            device out", "6            device out")


def operations(n: int) -> float:
    """Floating-point operations that HPL counts for one system: 2/3 n³ + 3/2 n²."""
    return n * n * (2 / 3 * n + 3 / 2)


def solve_s(n: int, ranks: Ranks) -> float:
    """About how long HPL takes."""
    return operations(n) / (FLOP_RATE_PER_CPU * ranks.total * ranks.threads)


def step(
    program: str, params: LinpackParams, ns: Sequence[int], nbs: Sequence[int], target: Target, launcher: Launcher
) -> Step:
    """`program` on all ranks, started on the first node, with its input file there."""
    ranks = ranks_of(params, target)
    matrix = input_file(ns, nbs, *grid_of(params, ranks.total))
    return Step(
        nodes=target.names[:1],
        argv=launcher.argv((program,), target, ranks, params.yield_when_idle or workers_share(target)),
        timeout_s=known(params.timeout_s),
        inputs=(matrix, *launcher.inputs(target, ranks)),
        outputs=(OUTPUT,),
    )


def limit_s(params: LinpackParams, estimate_s: float) -> float:
    """When a run counts as hung: as given, or long after the estimate. Emulated CPUs may need an explicit limit."""
    return float(round(START_S + SLOWEST * estimate_s)) if params.timeout_s == "auto" else params.timeout_s
