"""The campaign directory: the only database there is. Plain files, each written whole or not at all.

study.toml  plan.json  campaign.json  looks.json
files/<sha256> that the study's commands find in their directory
cells/<cell>.<instance>.json, and .<node>.console.log of its machines, .failed-<attempt>.<node>.console.log of attempts
trials/<trial>/record.json, the raw output that it names, and measurements.json: what was read from it
analysis.json  audit.json  report/

A campaign may come from somebody else, so nothing in it is followed, trusted or read without a limit.
"""

from vtax.store.campaign import CLAIMS, FREE_BYTES, READING, Campaign, refuse_occupied
from vtax.store.output import OUTPUT_LINES, LargeOutput, texts_of
from vtax.store.records import plan_digest, write_atomic, writing, written
from vtax.store.runtime import alive, is_alive, unused

__all__ = [
    "CLAIMS",
    "FREE_BYTES",
    "OUTPUT_LINES",
    "READING",
    "Campaign",
    "LargeOutput",
    "alive",
    "is_alive",
    "plan_digest",
    "refuse_occupied",
    "texts_of",
    "unused",
    "write_atomic",
    "writing",
    "written",
]
