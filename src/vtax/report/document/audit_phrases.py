"""What the rows of the audit are about, in a few words, for a sentence that gives one as a reason."""

from __future__ import annotations

WORDS = {
    "N01": "a node that talked to itself",
    "N02": "peers on one machine",
    "N03": "UDP at the rate that was offered",
    "N04": "one core as the limit",
    "N05": "unequal or exceeded interfaces",
    "N06": "TCP segments sent again",
    "N07": "throughput counted at the sender",
    "N08": "few or lost packets",
    "M01": "misplaced ranks",
    "M02": "ranks not bound",
    "M03": "another path between ranks",
    "M04": "another problem or program",
    "M05": "more threads than CPUs",
    "H01": "wrong or unchecked results",
    "H02": "implausible HPL",
    "H03": "HPL of an unfit size",
    "H04": "the best of several runs of HPL",
    "H05": "figures of single processes",
    "H06": "STREAM inside the cache",
    "H07": "failed or shortened tests of hpcc",
    "T01": "different programs",
    "T02": "different system software",
    "T03": "hidden CPU instructions",
    "T04": "software emulation",
    "T05": "a virtual host",
    "T06": "a fixed memory layout",
    "T07": "another BLAS kernel",
    "T08": "a machine that changed",
    "T09": "virtual machines made otherwise",
    "C01": "limits not applied",
    "C02": "a CPU quota that stopped nodes",
    "C03": "unequal nodes",
    "C04": "CPUs shared or not pinned",
    "C05": "CPU time stolen",
    "C06": "other load on the machine",
    "C07": "unequal frequency policy",
    "C08": "a slower clock",
    "C09": "other kinds of isolation",
    "O01": "memory pressure",
    "O02": "unequal huge pages",
    "O03": "unequal clocks",
    "O04": "times that disagree",
    "O05": "runs that are too short",
    "D01": "a misread unit of iozone",
    "D02": "the page cache measured",
    "D03": "flushes timed otherwise",
    "D04": "a disk in the host's memory, or of another kind",
    "D05": "local or unequal shared storage",
    "D06": "bytes that never reached the disk",
    "D07": "storage set up otherwise",
    "D08": "a disk in memory",
    "S01": "other bogo operations",
    "S02": "rates by CPU time",
    "S03": "other settings of sysbench",
    "U01": "units mixed up",
    "U02": "a metric declared otherwise",
    "U03": "values given twice",
    "R01": "too few rounds",
    "R02": "another order than planned",
    "R03": "a changed plan",
    "R04": "drift",
    "R05": "two modes or a tail",
    "R06": "machines of their own",
    "R07": "missing or failed runs",
    "R08": "a difference between identical environments",
    "R09": "the cost of looking",
    "R10": "different root file systems",
}


def cause(id: str) -> str:
    """`CPU time stolen, C05`; the id alone where it has no words."""
    return f"{WORDS[id]}, {id}" if id in WORDS else id


def named(id: str, times: int = 1) -> str:
    """`CPU time stolen (C05)`, and how often where it is more than once."""
    more = f", {times} times" if times > 1 else ""
    return f"{WORDS[id]} ({id}{more})" if id in WORDS else f"{id}{more and f' ({times} times)'}"
