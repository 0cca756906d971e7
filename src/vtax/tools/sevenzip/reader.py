"""What the benchmark of 7-Zip prints (`7z b`): the averages over its passes. Ratings are in instructions per second, as
7-Zip estimates them from its speed; KiB/s are of uncompressed data.

Facts: `sevenzip_version`, `threads`, `cpu_share` (of the CPUs that its threads could use, the lower of compressing and
decompressing), `ram_bytes` (of its data).
"""

from __future__ import annotations

import re

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import Reading, Section, Value, agree, near_miss

BANNER = re.compile(r"^7-Zip (?:\(\w\) |\[\d\d\] )?(\d{1,3}\.\d\d)\b.{0,80}Copyright")
THREADS = re.compile(r"# Benchmark threads:\s{1,10}(\d{1,5})$")
RAM = re.compile(r"^RAM usage:\s{1,10}(\d{1,7}) MB,")
FOUR = r"(\d{1,9})\s{1,12}(\d{1,6})\s{1,12}(\d{1,9})\s{1,12}(\d{1,9})"
AVERAGE = re.compile(rf"^Avr:\s{{1,12}}{FOUR}\s{{1,4}}\|\s{{1,12}}{FOUR}\s{{0,3}}$")
TOTAL = re.compile(r"^Tot:\s{1,40}(\d{1,6})\s{1,12}(\d{1,9})\s{1,12}(\d{1,9})\s{0,3}$")
KIB, MIB, MILLION = 1024, 2**20, 1e6


def _rate(name: str, unit: str, meaning: str, primary: bool = False) -> Metric:
    return Metric(name=name, unit=unit, kind=Kind.RATE_FIXED_WORK, primary=primary, meaning=meaning)


COMPRESSED = _rate("compress_speed", "byte/s", "uncompressed bytes that were compressed per second")
EXTRACTED = _rate("decompress_speed", "byte/s", "uncompressed bytes that came out per second")
COMPRESS = _rate("compress_rating", "1/s", "instructions per second as 7-Zip rates compressing")
DECOMPRESS = _rate("decompress_rating", "1/s", "instructions per second as 7-Zip rates decompressing")
RATING = _rate("rating", "1/s", "the mean of both ratings, by which 7-Zip compares machines", primary=True)
METRICS = (RATING, COMPRESS, DECOMPRESS, COMPRESSED, EXTRACTED)


def starts(line: str) -> bool:
    return BANNER.match(line) is not None


def read(section: Section) -> Reading:
    """One run."""
    reading = Reading("sevenzip")
    averages = [(line, found) for line in section.lines if (found := AVERAGE.match(line.text))]
    totals = [(line, found) for line in section.lines if (found := TOTAL.match(line.text))]
    for line in section.lines:
        if found := BANNER.match(line.text):
            reading.facts["sevenzip_version"] = found[1]
        elif found := THREADS.search(line.text):
            reading.facts["threads"] = int(found[1])
            reading.params["threads"] = int(found[1])
        if found := RAM.match(line.text):
            reading.facts["ram_bytes"] = int(found[1]) * MIB
    if len(averages) != 1 or len(totals) != 1:
        many = len(averages) > 1 or len(totals) > 1
        why = "more than one run in one output" if many else "the lines Avr: and Tot: are not there"
        reading.refuse(0 if many else near_miss(section.lines, AVERAGE, TOTAL), "all values", why, 0)
        return reading
    (line, average), (last, total) = averages[0], totals[0]
    if threads := reading.facts.get("threads"):
        reading.facts["cpu_share"] = min(int(average[2]), int(average[6])) / 100 / int(str(threads))
    packed, unpacked, rating = int(average[4]), int(average[8]), int(total[3])
    if not agree((packed + unpacked) / 2, rating, 0.01):
        reading.refuse(last.number, RATING.name, f"{rating} is not the mean of {packed} and {unpacked}", 5)
        return reading
    reading.values = [
        Value(RATING, rating * MILLION, last.number),
        Value(COMPRESS, packed * MILLION, line.number),
        Value(DECOMPRESS, unpacked * MILLION, line.number),
        Value(COMPRESSED, int(average[1]) * KIB, line.number),
        Value(EXTRACTED, int(average[5]) * KIB, line.number),
    ]
    reading.ended = True
    return reading
