"""What provisioning costs: the start of every node, the memory that it takes when idle, and the end of the cluster."""

from vtax.model.metric import Kind, Metric

FIRST_PROCESS = Metric(
    name="first_process",
    unit="s",
    kind=Kind.COST,
    meaning="from the order to create a node to the first line that its first process prints",
)
SSH_READY = Metric(
    name="ssh_ready",
    unit="s",
    kind=Kind.COST,
    primary=True,
    meaning="from the order to create a node to the first answer of its SSH server",
)
IDLE_MEMORY = Metric(
    name="idle_memory",
    unit="byte",
    kind=Kind.COST,
    meaning="PSS of the processes of this machine that an idle node consists of",
)
DESTROY = Metric(name="destroy", unit="s", kind=Kind.COST, meaning="to remove the whole cluster")
METRICS = (FIRST_PROCESS, SSH_READY, IDLE_MEMORY, DESTROY)
OF_NODES = {  # name in the output -> metric, where the output has it for a node
    "first_process_s": FIRST_PROCESS,
    "ssh_ready_s": SSH_READY,
    "idle_memory_bytes": IDLE_MEMORY,
}
OF_CLUSTER = {"destroy_s": DESTROY}
