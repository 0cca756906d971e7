"""`startup.json`, which vtax writes when a cluster has been destroyed: seconds and bytes, of each node and of all.

Facts: `memory_is` (what the memory of a node is).
"""

from __future__ import annotations

from collections.abc import Sequence

from vtax.tools.documents import Document, Unfit
from vtax.tools.reading import Reading, Section, Value
from vtax.tools.startup.metrics import OF_CLUSTER, OF_NODES


def read(section: Section, nodes: Sequence[str]) -> Reading:
    """All that was noted of a cluster of these `nodes`. What could not be seen of one of them is absent."""
    reading = Reading("startup")
    try:
        document = Document(section.lines)
        _take(reading, document, nodes)
    except Unfit as error:
        reading.refuse(error.line, "all values of this run", error.what, 0)
        reading.values.clear()
    else:
        reading.ended = not reading.refusals
    return reading


def _take(reading: Reading, document: Document, nodes: Sequence[str]) -> None:
    """Raises Unfit for a document that vtax did not write."""
    if document.rest:
        raise Unfit(0, "something follows the document")
    if document.value.keys() != {"nodes", "memory_is", *OF_CLUSTER}:
        raise Unfit(0, f"it has {sorted(document.value)}")
    about = document.at("nodes")
    if not isinstance(about, dict) or sorted(about) != sorted(nodes):
        raise Unfit(document.line("nodes"), f"it is not about the nodes {', '.join(nodes)}")
    reading.facts["memory_is"] = str(document.at("memory_is"))
    for node, noted in about.items():
        if not isinstance(noted, dict) or noted.keys() - OF_NODES.keys():
            raise Unfit(document.line("nodes", node), f"what is noted of {node} is not known")
        for name in noted:
            number, line = document.number("nodes", node, name), document.line("nodes", node, name)
            reading.values.append(Value(OF_NODES[name], number, line, {"node": node}))
    for name, metric in OF_CLUSTER.items():
        reading.values.append(Value(metric, document.number(name), document.line(name)))
