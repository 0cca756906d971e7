"""The self-test of the statistics: simulated campaigns through the code that judges real ones.

    noise -> campaigns -> goals

`goals.run` calls them; `objects` proves that records take the same path as arrays. The goals and the measured rates are
in docs/method.md, "How often it is wrong".
"""
