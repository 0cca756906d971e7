"""What fio 2 and 3 write, as text or as JSON (`--output-format=json`): rates and latencies of what each job did.

Rates are compared with the bytes, operations and times of the same job. Several jobs are told apart by the label `job`;
jobs of one name get numbers. What fio notes above its results is left out, and so are percentiles other than its own.

Facts: `fio_version`; `fio_options`, what all jobs have in common (`rw`, `bs`, `iodepth`, `ioengine`, and from JSON
`direct`, `size`, `numjobs` and others); from JSON with options also `direct_io` and `file_bytes`; `written_bytes`.
"""

from __future__ import annotations

from vtax.tools.command.readers.reader import only_document
from vtax.tools.fio import document, text
from vtax.tools.reading import Reading, Section


def read(section: Section) -> Reading:
    """One run of fio."""
    place = next((at for at, line in enumerate(section.lines) if line.text.startswith("{")), None)
    if place is None or any(text.RESULT.match(line.text) for line in section.lines[:place]):
        return text.read(section)
    return document.read(section._replace(lines=only_document(section.lines[place:])))
