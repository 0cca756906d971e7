"""The nouns of vtax: frozen records that one stage writes and the next reads. No behaviour beyond looking things up.

    study -> plan -> cluster (live in `providers.base`, recorded here) -> trial -> measurement -> finding

`record` is what all of them are, `nodes` and `metric` what they are about, `look` the interim analyses of a campaign.
What an analysis holds is in `analysis.records`. Units are part of the names (`memory_bytes`); values are in base units.
"""
