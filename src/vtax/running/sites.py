"""Where the clusters of a campaign have their files: a label and a run-time directory for each environment.

Clusters of several environments exist at once, and two of them may have one provider. So each has its own label, and
`Provider.destroy` with that label removes the cluster of one environment and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from vtax.model.cluster import Image
from vtax.model.plan import Plan
from vtax.providers.base import Site
from vtax.running.provision import KEYS, remove_campaign
from vtax.store import alive, write_atomic

ORIGIN = "origin.json"  # whose the clusters with a label are, for `vtax clean`


def label_of(campaign: str, environment: str) -> str:
    """The label of an environment's clusters: the same in every round, and when the campaign is resumed."""
    return hashlib.sha256(f"{campaign}/{environment}".encode()).hexdigest()[:8]


@contextlib.contextmanager
def sites(directory: Path, campaign: str, plan: Plan, runtime: Path, image: Image) -> Iterator[Mapping[str, Site]]:
    """The site of each environment of the campaign in `directory`. While this lasts, their clusters are in use; then
    their keys are removed."""
    labels = {spec.name: label_of(campaign, spec.name) for spec in plan.environments}
    paused = plan.interleave == "trial"
    with contextlib.ExitStack() as stack:
        for name, label in labels.items():
            stack.enter_context(alive(runtime / label))
            stack.callback(remove_campaign, runtime / label)
            origin = {"campaign": campaign, "environment": name, "directory": str(directory.resolve())}
            write_atomic(runtime / label / ORIGIN, json.dumps(origin, indent=1).encode())
        yield {
            name: Site(label, runtime / label / name, image, runtime / label / KEYS, paused)
            for name, label in labels.items()
        }


def origin_of(runtime: Path, label: str) -> str:
    """Environment and directory of the campaign that made what carries a label; "" where nothing says so."""
    try:
        origin = json.loads((runtime / label / ORIGIN).read_text())
        return f"{origin['environment']} of {origin['directory']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
