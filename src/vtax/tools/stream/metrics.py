"""What STREAM measures: four loops over arrays that no cache holds, each the best of its passes.

Its licence allows results of modified code only under a name that says so, wherever they are shown (item 3b).
"""

from vtax.model.metric import Kind, Metric

LOOPS = {"Copy": ("a = b", 2), "Scale": ("a = s·b", 2), "Add": ("a = b + c", 3), "Triad": ("a = b + s·c", 3)}
"""Loop -> what it does, and how many arrays it reads and writes."""

VARIANT = "runs of vtax's own are based on a variant of the STREAM benchmark code"

RATES = {
    name: Metric(
        name=name,
        unit="byte/s",
        kind=Kind.RATE_FIXED_WORK,
        primary=name == "Triad",
        meaning=f"{what}: bytes read and written, best of all passes but the first, all threads together; {VARIANT}",
    )
    for name, (what, _) in LOOPS.items()
}
TIMES = {
    name: Metric(
        name=f"{name}_time",
        unit="s",
        kind=Kind.COST,
        meaning=f"{what}: mean time of a pass, the first one left out",
    )
    for name, (what, _) in LOOPS.items()
}
METRICS = (*RATES.values(), *TIMES.values())
