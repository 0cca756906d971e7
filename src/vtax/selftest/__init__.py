"""The self-test of the statistics: simulated campaigns through the code that judges real ones (METHOD 2.4).

noise -> campaigns -> goals      (`run` in `goals` calls them; `objects` proves that records take the same path)
"""
