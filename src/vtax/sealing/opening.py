"""A sealed campaign as a campaign: unpacked where nothing else is, for as long as somebody reads it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vtax.evaluation.readings import Readings, StoredReadings
from vtax.sealing.archive import SealError, opened
from vtax.sealing.contents import manifest_of, unpack
from vtax.store import Campaign


@contextmanager
def as_campaign(path: Path) -> Iterator[tuple[Campaign, Readings]]:
    """A campaign's directory, or a file of `vtax seal`, with how its output is read. Nothing is written into it.

    Raises SealError for a file whose content is not what was sealed.
    """
    if not path.is_file():
        campaign = Campaign.open(path)
        yield campaign, Readings(campaign, keep=False)
        return
    with tempfile.TemporaryDirectory(prefix="vtax-") as place:
        with opened(path) as archive:
            sealed = manifest_of(archive)
            wrong = unpack(archive, sealed, Path(place))
        if wrong:
            name, why = next(iter(wrong.items()))
            raise SealError(f"{path} is not as it was sealed: {name}: {why}", remedy="`vtax seal --check` lists all")
        campaign = Campaign.open(Path(place))
        yield campaign, StoredReadings(campaign) if sealed.by_hash else Readings(campaign, keep=False, again=True)
