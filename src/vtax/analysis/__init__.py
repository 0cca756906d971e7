"""Statistics on measurements, pure: cells are summarised, paired by round, compared, judged.

    columns -> levels -> pairs -> interim results -> claims -> comparisons

`prepare` computes what the audit needs too (levels, pairs, the control arm), `analysis_of` the rest; `records` is what
comes out. `estimate` is about one campaign's numbers, `sequential` about stopping without harm to the error rate,
`campaigns` about two campaigns, `gates` about what CI asks.
"""
