"""Whether a campaign's plan is the one from before its first run: what its files say of the plan's hash."""

from __future__ import annotations

from collections.abc import Mapping

from vtax.model.record import Record


class Seal(Record):
    """The hash that the plan itself names, and the hashes of it that others of the campaign's files name.

    `intact` is whether the plan has the hash that it names; None for a plan that names none. `named` maps what was
    written when the campaign began or while it ran (campaign.json, looks.json, records of trials) to the hashes that
    are recorded there, "" for one that is of an older version of vtax and has none.
    """

    plan: str
    intact: bool | None
    named: Mapping[str, tuple[str, ...]]

    @property
    def others(self) -> Mapping[str, tuple[str, ...]]:
        """The files that record hashes of another plan, and which."""
        found = {
            name: tuple(one for one in hashes if one not in ("", self.plan)) for name, hashes in self.named.items()
        }
        return {name: hashes for name, hashes in found.items() if hashes}

    @property
    def silent(self) -> tuple[str, ...]:
        """What does not say which plan it belongs to."""
        return tuple(name for name, hashes in self.named.items() if "" in hashes)

    @property
    def frozen(self) -> str:
        """Whether the plan was frozen before the first run: "yes", "no", or "unknown" where files do not say it."""
        if self.intact is False or self.others:
            return "no"
        return "unknown" if self.intact is None or self.silent else "yes"
