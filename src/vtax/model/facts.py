"""The facts of nodes and machines that have a known kind. A campaign's files may say anything, and what reads facts
counts with numbers, goes through lists and looks into tables.

Facts of another name may be of any kind: a newer version may record more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from vtax.model.link import Uplink

Number = int | float
TEXTS = (
    *(
        "aslr",
        "boot_id",
        "cgroup_version",
        "clock_source",
        "cpu_model",
        "cpu_vendor",
        "firmware",
        "hostname",
        "hypervisor",
    ),
    *("kernel", "kvm", "libc", "machine_id", "microcode", "mpi_version", "os", "packages_sha256", "smt", "thp"),
    *("blas_config", "blas_core", "capabilities", "cpus_allowed", "locked_memory_kib", "root_filesystem", "seccomp"),
    *("scratch_filesystem", "scratch_options", "scratch_scheduler", "shared_filesystem", "stack_limit_kib"),
    *("tcp_congestion_control", "vm_accelerator", "vm_cpu_model", "vm_disk", "vm_disk_cache", "vm_disk_format"),
    *("vm_memory", "vm_network", "vm_nic", "vm_qemu", "working_directory"),
    *(
        "between_machines",
        "dmi_product",
        "dmi_vendor",
        "governor",
        "launcher",
        "on_machine",
        "shared_server",
        "workload_filesystem",
    ),
)
NUMBERS = (
    *("clock_ahead_s", "clock_hz", "clock_offset_s", "cores", "cpu_family", "cpu_mhz", "cpu_periods", "cpu_quota_cpus"),
    *(
        "cpu_throttled_periods",
        "cpu_throttled_s",
        "environment_bytes",
        "euid",
        "huge_pages",
        "last_cache_bytes",
        "load1",
    ),
    *("memory_available_bytes", "memory_limit_bytes", "memory_total_bytes", "numa_nodes", "open_files_hard"),
    *("open_files_soft", "psi_cpu_some_avg10", "scratch_free_bytes", "scratch_free_fraction", "swap_limit_bytes"),
    *("between_machines_mtu", "swap_total_bytes", "swappiness"),
)
FLAGS = ("emulated", "is_virtual", "user_namespaces", "vm_initrd", "vm_pinned", "vm_vhost")
LISTS_OF_TEXTS = ("cgroup_controllers", "cpu_flags", "virtualization_extensions")
LISTS_OF_NUMBERS = ("cpus_usable", "vm_cpu_places", "vm_emulator_cpus", "vm_numa_nodes")
LISTS_OF_TABLES = ("interfaces", "last_caches")
TABLES_OF_TEXTS = ("binary_sha256", "mitigations", "slurm_job", "versions")
STRICT = ConfigDict(strict=True, allow_inf_nan=False)
KINDS: Mapping[str, TypeAdapter[Any]] = {
    name: kind
    for names, kind in (
        (TEXTS, TypeAdapter(str, config=STRICT)),
        (NUMBERS, TypeAdapter(Number, config=STRICT)),
        (FLAGS, TypeAdapter(bool, config=STRICT)),
        (LISTS_OF_TEXTS, TypeAdapter(Sequence[str], config=STRICT)),
        (LISTS_OF_NUMBERS, TypeAdapter(Sequence[int], config=STRICT)),
        (LISTS_OF_TABLES, TypeAdapter(Sequence[Mapping[str, Any]], config=STRICT)),
        (TABLES_OF_TEXTS, TypeAdapter(Mapping[str, str], config=STRICT)),
        (("running",), TypeAdapter(Mapping[str, int], config=STRICT)),
        (("cpus",), TypeAdapter(int | Sequence[Mapping[str, Any]], config=STRICT)),  # of a node, how many
        (("virtualization",), TypeAdapter(str | Sequence[str], config=STRICT)),  # one word, in earlier versions
        (("uplink",), TypeAdapter(Uplink)),
        (("slurm", "kubernetes", "pod"), TypeAdapter(Mapping[str, str | Number | bool | None], config=STRICT)),
    )
    for name in names
}


def of_their_kinds(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same facts. Raises ValueError for one of another kind than vtax records under its name."""
    for name, value in facts.items():
        if name in KINDS:
            try:
                KINDS[name].validate_python(value)
            except ValidationError as error:
                raise ValueError(f"the fact {name!r} is not of its kind: {error.errors()[0]['msg']}") from error
    return facts


Facts = Annotated[Mapping[str, Any], AfterValidator(of_their_kinds)]
