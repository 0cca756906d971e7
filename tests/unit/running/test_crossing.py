"""What is verified between machines."""

from __future__ import annotations

from vtax.model.cluster import NodeFacts
from vtax.model.nodes import ClusterShape, NodeShape, Role, Scope, Target
from vtax.model.plan import Step
from vtax.running.crossing import across, mtu_differs
from vtax.running.steps import placed_on


def shape(**machines: str) -> ClusterShape:
    return ClusterShape(
        nodes=tuple(
            NodeShape(
                name=name,
                role=Role.MASTER if name == "master" else Role.WORKER,
                cpus=1,
                cpu_ids=(0,),
                memory_bytes=2**29,
                disk_bytes=2**30,
                machine=machine,
            )
            for name, machine in machines.items()
        )
    )


def test_every_node_sends_to_one_on_another_machine() -> None:
    assert across(shape(master="a", worker1="a", worker2="b", worker3="c")) == [
        ("master", "worker2"),
        ("worker1", "worker2"),
        ("worker2", "worker3"),
        ("worker3", "master"),
    ]
    assert across(shape(master="", worker1="")) == []


def facts(mtu: int) -> NodeFacts:
    links = [{"name": "lo", "mtu": 65536, "addresses": ["127.0.0.1/8"]}]
    links.append({"name": "eth0", "mtu": mtu, "addresses": ["10.213.7.10/24"]})
    return NodeFacts(node="master", values={"interfaces": links})


def test_the_mtu_of_the_interface_with_the_nodes_address() -> None:
    assert mtu_differs(facts(1450), "10.213.7.10", 1450) == []
    assert mtu_differs(facts(1500), "10.213.7.10", 1450) == ["master: eth0 has MTU 1500, but the plan has 1450"]
    assert mtu_differs(facts(1450), "10.213.7.11", 1450) == ["master: no interface has the address 10.213.7.11"]


def test_files_of_a_parallel_program_are_placed_where_its_nodes_see_them() -> None:
    nodes = shape(worker1="a", worker2="b").nodes
    step = Step(nodes=("worker1",), argv=("mpirun",), timeout_s=1)
    common = Target(scope=Scope.WORKERS, nodes=nodes, directory="/shared/hpl.workers")
    apart = common.model_copy(update={"directory": "/scratch/hpl.workers"})
    assert placed_on(step, common) == ("worker1",)
    assert placed_on(step, apart) == ("worker1", "worker2")
    alone = Target(scope=Scope.NODE, nodes=nodes[:1], directory="/scratch/stream.worker1")
    assert placed_on(step, alone) == ("worker1",)
