"""How a program of the machine joins a node of the host that runs already: for ranks that Slurm starts.

Ranks of one node must share its process namespace and its /dev/shm, or they cannot read each other's memory. So they do
not each enter the root file system anew, as commands do, but join the namespaces of the node's first process, and give
up what commands on the host do not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from vtax.errors import ProvisionError
from vtax.model.finding import Problem
from vtax.transport import process
from vtax.transport.local import ENVIRONMENT

PROGRAM = "srun"
PMIX = "pmix"
ASK_S = 20.0
JOIN = """\
first=$1 groups=$2 directory=$3
shift 3
for group in $groups; do echo 0 >"$group/cgroup.procs" || exit 125; done
exec nsenter --target="$first" --mount --uts --ipc --pid \
  setpriv --bounding-set=-all --inh-caps=-all --no-new-privs env -C "$directory" {settings} "$@"
"""


def words(outer: int | None, groups: Sequence[Path], name: str) -> tuple[str, ...]:
    """What is put before a directory and a command to run it in a node, with all that a rank was given in its
    environment. `outer` is the process of the machine that entered the node; its child is the node's first process."""
    children = "" if outer is None else _read(Path(f"/proc/{outer}/task/{outer}/children"))
    if not children:
        raise ProvisionError(f"{name}: its first process has ended", remedy="its log says why")
    settings = " ".join(f"{key}={value}" for key, value in ENVIRONMENT.items())
    return ("sh", "-c", JOIN.format(settings=settings), "vtax-join", children.split()[0], " ".join(map(str, groups)))


def problems(*, root: bool) -> Iterator[Problem]:
    """Why srun cannot start ranks in nodes of this machine."""
    if not root:
        what = 'launcher = "srun" needs root: a rank joins the namespaces of its node'
        yield Problem.blocker(what, "run vtax as root, or leave `launcher` out")
    elif not process.installed(PROGRAM):
        yield Problem.blocker(f"{PROGRAM} is not installed", "install Slurm's commands on the nodes")
    elif PMIX not in process.run((PROGRAM, "--mpi=list"), timeout_s=ASK_S).stdout.split():
        what = f"{PROGRAM} has no plug-in for PMIx, by which Open MPI's ranks find each other"
        yield Problem.blocker(what, "install it (Debian: slurm-wlm-pmix-plugin), or leave `launcher` out")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
