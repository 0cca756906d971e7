"""Statistics on measurements, pure: cells are summarised, paired by round, compared, judged.

summary -> levels -> compare -> verdict      (`analyse` calls them in this order; `records` is what it returns)
"""
