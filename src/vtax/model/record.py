"""What every record is: frozen, strict, and without numbers that are not finite."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

FORMAT = 2  # of every artefact; raised when a reader of the old one would go wrong


TRIALS = 500_000  # of a campaign
Labels = Mapping[str, str]
Count = Annotated[int, Field(ge=0, le=TRIALS)]  # of rounds, or of what is repeated in one
Seconds = Annotated[float, Field(ge=0)]  # a time or a duration


def is_empty(value: object) -> bool:
    """For `exclude_if`: fields that only some campaigns have leave no trace in the artefacts of all others."""
    return not value


class Record(BaseModel):
    """A frozen record that refuses unknown fields and numbers that are not finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
