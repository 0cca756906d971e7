"""What runs left behind on this machine, found by its labels, and its removal."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from vtax import files
from vtax.errors import UsageError
from vtax.image.build import discard, unfinished
from vtax.machines.nfs import Shares
from vtax.model.names import is_campaign_id
from vtax.paths import Paths
from vtax.providers import all_providers
from vtax.providers.base import Leftover
from vtax.running.shared import remove_abandoned
from vtax.running.sites import ORIGIN, origin_of
from vtax.store import is_alive, unused

WAIT_S = 60.0  # for another `vtax clean`
STRAY = "image without a name"
UNFINISHED = "unfinished root file system"  # of a build that was killed


def leftovers(paths: Paths, *, everything: bool = False, among: Sequence[Leftover] | None = None) -> list[Leftover]:
    """What any run left behind: found by label, and run-time files of clusters that are gone.

    Campaigns that are running and clusters that were brought up by hand are in use, not left behind; `everything`
    finds them too. What belongs to another state directory is never included, nor what carries a label that vtax does
    not give: anybody can write one. `among` is what `labelled` found.
    """
    seen = labelled(paths) if among is None else among
    found = [item for item in seen if not item.elsewhere and is_campaign_id(item.campaign)]
    for place in sorted(paths.runtime.glob("*/")):
        if is_campaign_id(place.name) and not place.is_symlink():
            found.append(Leftover("files", "directory", str(place), place.name))
    found = [replace(item, origin=origin_of(paths.runtime, item.campaign)) for item in found]
    for one in all_providers(paths.runtime).values():
        found += [Leftover(one.name, STRAY, name, "", origin="import") for name in one.stray_images()]
    found += [Leftover("files", UNFINISHED, str(place), "", origin="image build") for place in unfinished(paths.images)]
    if everything:
        return found
    used = {name for name in {item.campaign for item in found} if is_alive(paths.runtime / name)}
    named = set(by_hand(paths).values())  # after it: `vtax up` saves a cluster before it ends
    return [item for item in found if item.campaign not in used | named]


def labelled(paths: Paths) -> list[Leftover]:
    """Everything on this machine that carries the label of any campaign, whichever vtax instance made it."""
    made = [item for one in all_providers(paths.runtime).values() for item in one.leftovers()]
    return [*made, *Shares(paths.runtime).leftovers()]


def clean(items: Sequence[Leftover], paths: Paths, *, everything: bool = False) -> list[Leftover]:
    """Remove what `leftovers` found. Returns what has come into use since, which stays unless `everything` goes: a
    campaign that is resumed has the labels that it had. Raises UsageError while another process does the same."""
    if not items:
        return []
    paths.state.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + WAIT_S
    while True:
        with files.locked(paths.state / "clean.lock") as mine:
            if mine:
                return _clean(items, paths, everything=everything)
        if time.monotonic() > deadline:
            raise UsageError("another process is cleaning up", remedy="wait until it ends, or stop it")


def _clean(items: Sequence[Leftover], paths: Paths, *, everything: bool) -> list[Leftover]:
    providers = all_providers(paths.runtime)
    labels: dict[str, list[Leftover]] = {}
    for item in items:
        if item.kind == STRAY:
            providers[item.provider].remove_stray_image(item.name)
        elif item.kind == UNFINISHED:
            discard(Path(item.name))
        else:
            labels.setdefault(item.campaign, []).append(item)
    kept: list[Leftover] = []
    for label, mine in labels.items():
        with unused(paths.runtime / label) as free:
            if free or everything:
                _clean_label(label, mine, paths)
            else:
                kept += mine
    return kept


def _clean_label(label: str, items: Sequence[Leftover], paths: Paths) -> None:
    providers, shares = all_providers(paths.runtime), Shares(paths.runtime)
    for name in dict.fromkeys(item.provider for item in items if item.provider in providers):
        shares.ended(label, providers[name].destroy)
    shares.release(label)
    remove_abandoned(paths.runtime / label / ORIGIN)
    for item in items:
        if item.provider == "files":
            _remove(Path(item.name))
    for path, campaign in by_hand(paths).items():
        if campaign == label:
            path.unlink(missing_ok=True)


def _remove(place: Path) -> None:
    """Remove a directory that another `vtax clean` may be removing too."""
    while place.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(place)


def by_hand(paths: Paths) -> dict[Path, str]:
    """File of each cluster that was brought up by hand -> its label; damaged files are ignored."""
    found = {}
    for path in (paths.state / "clusters").glob("*.json"):
        with suppress(ValueError, KeyError, TypeError, OSError):
            found[path] = str(json.loads(path.read_text())["campaign"])
    return found
