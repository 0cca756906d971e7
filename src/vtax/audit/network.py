"""N: whether figures of the network are figures of the network."""

from __future__ import annotations

from statistics import median

from vtax.audit.evidence import Evidence, blocker
from vtax.model import Finding
from vtax.units import format_quantity

REACHED = 0.98  # of the requested rate


def udp_rate(evidence: Evidence) -> tuple[Finding, ...]:
    """N03: UDP that arrives at the rate at which it was sent shows the request, not what the path can carry."""
    requested = {
        (work.environment, work.label): float(str(work.params["bitrate"])) * float(str(work.params.get("parallel", 1)))
        for work in evidence.plan.work
        if work.benchmark == "iperf3" and work.params.get("protocol") == "udp" and work.params.get("bitrate")
    }
    found = []
    for (environment, label), target in requested.items():
        rates = [
            one.value
            for one in evidence.measurements
            if (one.environment, one.label, one.unit) == (environment, label, "bit/s") and not one.warmup
        ]
        if rates and median(rates) >= REACHED * target:
            message = (
                f"{label} in {environment} arrived at {format_quantity(median(rates), 'bit/s')}, with "
                f"{format_quantity(target, 'bit/s')} requested: this is the requested rate, not the capacity"
            )
            remedy = "raise `bitrate` until packets are lost, or compare TCP throughput"
            found.append(blocker("N03", message, remedy, environment, label))
    return tuple(found)
