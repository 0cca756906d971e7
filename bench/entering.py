"""What it costs to enter the root file system on the host without the power of root, and to work there.

The other arm is a mount and a process namespace, and `chroot`, with all capabilities and the machine's devices: about
what `vtax-enter` did before it gave anything up. Both take turns in the order A B B A, so that a machine that drifts
does so for both. Work is counted per second of processor time, so that other programs disturb it less; a third arm is
the first one again, to show what such a comparison cannot tell apart. Needs root, and a cached root file system.

    python bench/entering.py [ROUNDS]
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from vtax.events import ignore
from vtax.model.cluster import Image
from vtax.model.study import ImageSpec
from vtax.paths import Paths
from vtax.planning.preparation import base_image
from vtax.providers.host import entering

ENTRIES, ROUNDS = 200, 24
PROCESSOR = 1
WORK: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "sysbench cpu": (
        ("sysbench", "cpu", "--time=1", "run"),
        re.compile(r"total number of events: +(\d+)"),
    ),
    "sysbench memory": (
        ("sysbench", "memory", "--memory-total-size=100T", "--memory-block-size=1M", "--time=1", "run"),
        re.compile(r"Total operations: +(\d+)"),
    ),
    "sysbench threads (system calls)": (
        ("sysbench", "threads", "--threads=1", "--time=1", "run"),
        re.compile(r"total number of events: +(\d+)"),
    ),
    "stress-ng matrix": (
        ("stress-ng", "--matrix", "1", "--timeout", "1", "--metrics-brief", "--temp-path", "/tmp"),
        re.compile(r"matrix +\d+ +\S+ +\S+ +\S+ +\S+ +(?P<rate>[\d.]+)"),
    ),
}
Wrap = Callable[[Sequence[str]], tuple[str, ...]]


def arms(image: Image, top: Path) -> tuple[Wrap, Wrap]:
    """With what the host environment does to a command, and without."""
    site, shared = top / "site", top / "shared"
    for place in (shared, *(site / part for part in ("scratch", "tmp", "run"))):
        place.mkdir(parents=True)
    for name in ("scratch", "shared"):
        (Path(image.directory) / name).mkdir(exist_ok=True)
    wrap = entering.wrapper("be7c4000", image, site, shared, "/shared", (PROCESSOR,), (), network="", node="")
    mounts = "mount -t proc proc $0/proc; mount -t tmpfs tmp $0/tmp; mount --rbind /dev $0/dev"
    plain = ("taskset", "-c", str(PROCESSOR), "unshare", "--mount", "--pid", "--fork", "sh", "-c")
    enter = f'set -e; {mounts}; exec chroot "$@"'
    return (
        lambda argv: wrap("/tmp", argv),
        lambda argv: (*plain, enter, image.directory, image.directory, *argv),
    )


def rate(argv: Sequence[str], pattern: re.Pattern[str]) -> float:
    """Work per second of processor time: as the tool itself says, or counted by it, for the whole command."""
    before = os.times()
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    found = pattern.search(done.stdout + done.stderr)
    if found is None:
        raise SystemExit(f"no number in: {done.stdout}{done.stderr}")
    return float(found["rate"]) if "rate" in pattern.groupindex else int(found[1]) / used


def compared(first: Callable[[], float], second: Callable[[], float], rounds: int) -> tuple[float, float, float]:
    """Median ratio of the first to the second in rounds of A B B A, and its interval of 95 % by the ranks."""
    ratios = []
    for _ in range(rounds):
        a, b, c, d = first(), second(), second(), first()
        ratios.append((a + d) / (b + c))
    ordered = sorted(ratios)
    cut = max(0, round(rounds / 2 - 1.96 * rounds**0.5 / 2) - 1)
    return statistics.median(ordered), ordered[cut], ordered[-1 - cut]


def entered(wrap: Wrap) -> float:
    """Milliseconds to enter and leave."""
    began = time.monotonic()
    subprocess.run(wrap(("true",)), check=True, stdout=subprocess.DEVNULL)
    return 1000 * (time.monotonic() - began)


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("needs root")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vtax"
    image = base_image(ImageSpec(), Paths(cache, cache), ignore)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with tempfile.TemporaryDirectory() as top:
        confined, plain = arms(image, Path(top))
        nothing = statistics.quantiles([entered(lambda argv: tuple(argv)) for _ in range(ENTRIES)], n=4)
        inside = statistics.quantiles([entered(confined) for _ in range(ENTRIES)], n=4)
        print(f"load {os.getloadavg()[0]:.1f}")
        print(f"starting `true`: median {nothing[1]:.2f} ms (quartiles {nothing[0]:.2f}, {nothing[2]:.2f})")
        print(f"the same through vtax-enter: {inside[1]:.2f} ms ({inside[0]:.2f}, {inside[2]:.2f})")
        for name, (argv, pattern) in WORK.items():
            a, b = confined(argv), plain(argv)
            for what, other in (("without confinement", b), ("itself", a)):
                ratio, low, high = compared(
                    partial(rate, a, pattern),
                    partial(rate, other, pattern),
                    rounds,
                )
                print(f"{name}, relative to {what}: {ratio:.4f} [{low:.4f}, {high:.4f}]", flush=True)


if __name__ == "__main__":
    main()
