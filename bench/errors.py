"""How often vtax is wrong on this machine: identical environments that it calls different, and slowed ones it misses.

    python bench/errors.py identical --campaigns 20
    python bench/errors.py slowed --campaigns 10 --percent 10

Identical are the host and its control, or two container clusters, in turn; each campaign has its own seed. Slowed
containers have less CPU time by a quota (`vtax selftest inject`). One line per campaign as it ends, then the counts.
Leave the machine alone meanwhile: a quota has no effect while other programs use the CPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VTAX = Path(sys.executable).with_name("vtax")
PROVIDERS = ("host", "container")
DECIDED = ("faster", "slower", "equivalent", "trivial")
STUDY = """\
name = "identical"
seed = {seed}
rounds = 6
interleave = "trial"
control = true
baseline = "{provider}"
margin = 0.05

[environments.{provider}]
provider = "{provider}"

[nodes]
workers = 1
cpus = 1
memory = "512 MiB"

[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
threads = 1
time_s = 1
iterations = 4

[[benchmarks]]
name = "sysbench-memory"
nodes = ["worker1"]
threads = 1
time_s = 1
iterations = 4
"""


def identical(campaigns: int, first_seed: int, directory: Path) -> Iterator[dict[str, Any]]:
    """Campaigns of an environment against its own repetition; what each says of every primary metric."""
    for number in range(campaigns):
        chosen, seed = PROVIDERS[number % len(PROVIDERS)], first_seed + number
        study, campaign = directory / f"{seed}.toml", directory / f"identical-{seed}"
        study.write_text(STUDY.format(seed=seed, provider=chosen))
        done = subprocess.run([VTAX, "run", study, "-o", campaign], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{campaign} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        for one in json.loads((campaign / "analysis.json").read_text())["comparisons"]:
            if one["primary"]:
                numbers = {key: one[key] for key in ("label", "metric", "verdict", "ratio", "low", "high", "n")}
                yield {"campaign": number + 1, "environment": chosen, **numbers}


def slowed(campaigns: int, first_seed: int, directory: Path, percent: float) -> Iterator[dict[str, Any]]:
    """Campaigns with a slowed container; whether each found it, and whether its control arm stayed quiet."""
    for number in range(campaigns):
        campaign = directory / f"slowed-{number + 1}"
        words = ["--percent", f"{percent:g}", "--seed", str(first_seed + number), "--json", "-o", str(campaign)]
        done = subprocess.run([VTAX, "selftest", "inject", *words], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 5):
            sys.exit(f"{campaign} ended with {done.returncode}:\n{done.stderr[-2000:]}")
        yield {"campaign": number + 1, **json.loads(done.stdout)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("identical", "slowed"))
    parser.add_argument("--campaigns", type=int, default=10)
    parser.add_argument("--percent", type=float, default=10.0, help="CPU time that slowed containers lose")
    parser.add_argument("--seed", type=int, default=1, help="of the first campaign")
    parser.add_argument("--directory", type=Path, help="where campaigns are kept [a new temporary directory]")
    given = parser.parse_args()
    directory = given.directory or Path(tempfile.mkdtemp(prefix="vtax-errors-"))
    directory.mkdir(parents=True, exist_ok=True)
    found = []
    if given.what == "identical":
        for one in identical(given.campaigns, given.seed, directory):
            found.append(one)
            print(json.dumps(one), flush=True)
        wrong = sum(one["verdict"] in ("faster", "slower") for one in found)
        decided = sum(one["verdict"] in DECIDED for one in found)
        print(f"{len(found)} comparisons of identical environments: {decided} decided, {wrong} called different")
    else:
        for one in slowed(given.campaigns, given.seed, directory, given.percent):
            found.append(one)
            print(json.dumps(one), flush=True)
        seen, quiet = sum(one["detected"] for one in found), sum(one["quiet"] for one in found)
        print(f"{len(found)} campaigns: slowed by {given.percent:g} % found {seen} times, control quiet {quiet} times")


if __name__ == "__main__":
    main()
