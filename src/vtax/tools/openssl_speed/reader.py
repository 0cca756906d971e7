"""What `openssl speed -mr` prints, the form for machines: bytes per second by algorithm and size of block, and for
signatures operations per second. Version 1.1, 3.0 and later; lines of other kinds (+F4 and so on) are left out.

Nothing shows that an output with several results is whole, so a run of vtax has to ask for one algorithm; of logs
every line counts. Without `-elapsed` OpenSSL divides by the CPU time that its process was given, so that time stolen
by others is missing.
"""

from __future__ import annotations

import re

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import Reading, Section, Value, near_miss

SIZES = re.compile(r"^\+H:([1-9]\d{0,8}(?::[1-9]\d{0,8}){0,40})$")
RATES = re.compile(r"^\+F:\d{1,4}:([\w./ -]{1,60}):(\d{1,15}\.\d\d(?::\d{1,15}\.\d\d){0,40})$")
SIGNATURES = re.compile(r"^\+F2:\d{1,4}:(\d{1,6}):(\d{1,15}\.\d{6}):(\d{1,15}\.\d{6})(?::|$)")
BYTES = Metric(
    name="throughput",
    unit="byte/s",
    kind=Kind.RATE_FIXED_TIME,
    primary=True,
    meaning="bytes encrypted, or hashed, per second, by one process",
)
SIGN = Metric(name="sign_rate", unit="1/s", kind=Kind.RATE_FIXED_TIME, meaning="RSA signatures made per second")
VERIFY = Metric(name="verify_rate", unit="1/s", kind=Kind.RATE_FIXED_TIME, meaning="RSA signatures verified per second")
METRICS = (BYTES, SIGN, VERIFY)


def starts(line: str) -> bool:
    return SIZES.match(line) is not None


def read(section: Section) -> Reading:
    """One run."""
    reading = Reading("openssl-speed")
    sizes: list[str] = []
    headers, results = 0, 0
    for line in section.lines:
        if (found := SIZES.match(line.text)) and any(int(size) & (int(size) - 1) for size in found[1].split(":")):
            reading.refuse(line.number, line.text, "a size that is no power of two may be a damaged one", 0)
        elif found:
            sizes, headers = found[1].split(":"), headers + 1
        elif found := RATES.match(line.text):
            results += 1
            rates = [float(rate) for rate in found[2].split(":")]
            if len(rates) != len(sizes):
                why = f"{len(rates)} rates for {len(sizes)} sizes"
                reading.refuse(line.number, found[1], why, len(rates))
                continue
            labels = [{"algorithm": found[1], "block_bytes": size} for size in sizes]
            reading.values += [Value(BYTES, r, line.number, own) for r, own in zip(rates, labels, strict=True)]
        elif found := SIGNATURES.match(line.text):
            results += 1
            labels_of = {"algorithm": f"rsa{found[1]}"}
            reading.values.append(Value(SIGN, float(found[2]), line.number, labels_of))
            reading.values.append(Value(VERIFY, float(found[3]), line.number, labels_of))
        elif line.text.startswith(("+F:", "+F2:", "+H:")):
            reading.refuse(line.number, line.text, "it is not what openssl prints there", 0)
    several = {(value.metric.name, *sorted(value.labels.items())) for value in reading.values}
    if headers != 1 or len(several) < len(reading.values):
        reading.values.clear()
        reading.refuse(0, "all values", "more than one run in one output" if headers > 1 else "no line with sizes", 0)
    elif not reading.values:
        reading.refuse(near_miss(section.lines, RATES, SIGNATURES), "all values", "no line with a rate", 0)
    reading.ended = bool(reading.values) and results == 1
    return reading
