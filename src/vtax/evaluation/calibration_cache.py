"""Significance levels of planned looks, cached on disk: simulating unusual ones takes seconds.

`looks/<rounds>.<plain|adjusted>.json` in the cache directory, one file for each. A file that is damaged, or that is not
what its name says, counts as absent and is replaced. A cache that cannot be written only costs time.
"""

from __future__ import annotations

import json
import math
from contextlib import suppress
from pathlib import Path

import numpy as np

from vtax.analysis.estimate.columns import Floats
from vtax.analysis.sequential.group_sequential import (
    DRAWS,
    PROBABILITIES,
    SEED,
    SIMULATION,
    Tables,
    quantiles,
    to_simulate,
)
from vtax.errors import StoreError
from vtax.model.study import Study
from vtax.store import write_atomic


def tables_of(study: Study, cache: Path | None) -> Tables:
    """What `analyse` needs for a study's looks, adjusted for the order and not; empty where nothing is needed.

    Without a cache directory the analysis simulates them itself.
    """
    if cache is None or study.anytime or not to_simulate(study.looks):
        return {}
    return {adjusted: _table(study.looks, adjusted, cache / "looks") for adjusted in (False, True)}


def _table(looks: tuple[int, ...], adjusted: bool, directory: Path) -> Floats:
    key = {"looks": list(looks), "adjusted": adjusted, "draws": DRAWS, "seed": SEED, "simulation": SIMULATION}
    path = directory / f"{'-'.join(map(str, looks))}.{'adjusted' if adjusted else 'plain'}.json"
    kept = _read(path, key)
    if kept is not None:
        return kept
    found = quantiles(looks, adjusted=adjusted, draws=DRAWS, seed=SEED)
    with suppress(OSError, StoreError):
        directory.mkdir(parents=True, exist_ok=True)
        write_atomic(path, json.dumps({**key, "quantiles": found.tolist()}).encode())
    return found


def _read(path: Path, key: dict[str, object]) -> Floats | None:
    """The quantiles in a file; None where it is missing or not about `key`."""
    try:
        content = json.loads(path.read_bytes())
        numbers = content.pop("quantiles")
        sound = content == key and len(numbers) == PROBABILITIES.size
        sound = sound and all(type(p) is float and math.isfinite(p) and 0 < p <= 1 for p in numbers)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    found = np.array(numbers, float) if sound else np.empty(0)
    return found if sound and bool((np.diff(found) >= 0).all()) else None
