"""T: programs, BLAS kernels, kernels, CPU flags, emulation, nesting; D: disks of guests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from builders.audit_cases import FACTS, FLAGS, evidence, failed, only, passed, unknown
from vtax.audit import audit, disk, environment, findings_of, programs
from vtax.evidence.campaign import Evidence
from vtax.model.finding import Outcome, Severity
from vtax.model.nodes import Scope
from vtax.model.study import Selection
from vtax.tools.hpcc import blas


def test_same_programs() -> None:
    campaign = evidence()
    assert programs.different(campaign) == ()
    assert blas.blas_core(campaign) == ()
    assert environment.different(campaign) == ()
    assert environment.hidden_flags(campaign) == ()
    assert environment.nested(campaign) == ()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"binary_sha256": {"hpcc": "c" * 64, "xhpl": "b" * 64}}, "hpcc (hpcc: cccccccccccc…, aaaaaaaaaaaa…)"),
        ({"versions": {"hpcc": "1.4.0", "iperf3": "3.18-2"}}, "hpcc (hpcc: 1.4.0, 1.5.0-4)"),
        ({"mpi_version": "mpirun (Open MPI) 4.1.4"}, "MPI in container is mpirun (Open MPI) 4.1.4, in host mpirun"),
        (
            {"blas_config": "OpenBLAS 0.3.21 Haswell"},
            "BLAS build in container is OpenBLAS 0.3.21, in host OpenBLAS 0.3.29",
        ),
        (
            {"environment_overrides": {"OPENBLAS_CORETYPE": "Haswell"}},
            "OPENBLAS_CORETYPE in container: Haswell, in host: not set",
        ),
    ],
)
def test_other_programs(facts: dict[str, object], words: str) -> None:
    finding = only(programs.different(evidence({"container": facts})))
    assert (finding.id, finding.severity, finding.environment) == ("T01", Severity.BLOCKER, "container")
    assert words in finding.message


def test_programs_that_were_not_hashed_are_unknown() -> None:
    finding = only(programs.different(evidence({"container": {"binary_sha256": None}})))
    assert finding.severity is Severity.WARNING
    assert "not recorded: the hashes of its programs" in finding.message


def test_a_kernel_that_the_blas_chose_is_not_its_build() -> None:
    config = str(FACTS["blas_config"]).replace("SkylakeX", "Haswell")
    assert programs.different(evidence({"container": {"blas_config": config}})) == ()


def test_another_blas_kernel() -> None:
    found = blas.blas_core(evidence({"container": {"blas_core": "Haswell"}}))
    assert [finding.severity for finding in found] == [Severity.BLOCKER, Severity.INFO]
    assert found[0].benchmark == "hpcc"
    assert "Haswell kernel in container and its SkylakeX kernel in host" in found[0].message
    assert "the CPU has AVX-512, the Haswell kernel" in found[1].message


def test_a_narrow_kernel_everywhere_is_a_note() -> None:
    found = blas.blas_core(evidence({name: {"blas_core": "Zen"} for name in ("host", "container")}))
    assert [finding.severity for finding in found] == [Severity.INFO, Severity.INFO]


def test_a_kernel_too_wide_for_the_cpu() -> None:
    narrow = {"cpu_flags": ["avx2", "fma", "sse2"]}
    found = blas.blas_core(evidence({"host": narrow, "container": narrow}))
    assert {finding.severity for finding in found} == {Severity.WARNING}
    assert "needs AVX-512" in found[0].message


def test_an_unknown_kernel() -> None:
    finding = only(blas.blas_core(evidence({"container": {"blas_core": None}})))
    assert "not recorded: the kernel that the BLAS chose" in finding.message


@pytest.mark.parametrize(
    ("core", "flags", "unused"),
    [
        ("Nehalem", {"avx2", "fma"}, "AVX2"),
        ("Haswell", {"avx2", "fma"}, ""),
        ("COOPERLAKE", {"avx512f"}, ""),
        ("Zen", {"avx512f", "avx2", "fma"}, "AVX-512"),
    ],
)
def test_unused_vectors(core: str, flags: set[str], unused: str) -> None:
    assert blas.unused_vectors(core, flags) == unused


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"kernel": "6.1.0"}, "kernel differs: 6.1.0 in container, 6.12.0 in host"),
        ({"libc": "glibc 2.36"}, "C library differs: glibc 2.36 in container"),
        ({"microcode": "0x2"}, "microcode differs"),
        ({"mitigations": {"meltdown": "Vulnerable"}}, "meltdown: Vulnerable in container, Mitigation: PTI in host"),
        ({"mitigations": {}}, "meltdown: not listed in container"),
    ],
)
def test_another_kernel(facts: dict[str, object], words: str) -> None:
    finding = only(environment.different(evidence({"container": facts})))
    assert (finding.id, finding.severity) == ("T02", Severity.WARNING)
    assert words in finding.message


def test_flags_that_programs_use_must_not_be_hidden() -> None:
    finding = only(environment.hidden_flags(evidence({"container": {"cpu_flags": ["avx2", "fma", "sse2"]}})))
    assert finding.severity is Severity.BLOCKER
    assert "master in container lacks avx512f" in finding.message


def test_flags_that_only_kernels_use_may_be_hidden() -> None:
    flags = [flag for flag in FLAGS if flag != "vmx"]
    assert environment.hidden_flags(evidence({"container": {"cpu_flags": flags}})) == ()


def test_unknown_flags() -> None:
    finding = only(environment.hidden_flags(evidence({"container": {"cpu_flags": None}})))
    assert "not recorded: the CPU flags of the host and of its nodes" in finding.message
    assert len(environment.hidden_flags(evidence(host_facts={}))) == 2


def test_a_virtual_host_is_reported() -> None:
    stack = ["virtual machine (KVM)", "container (docker)"]
    facts = {"is_virtual": True, "virtualization": stack}
    finding = only(environment.nested(evidence(host_facts=facts)))
    assert finding.severity is Severity.INFO
    assert only(environment.nested(evidence(host_facts=facts, provider="qemu"))).severity is Severity.WARNING
    assert "virtual machine (KVM), in it container (docker)" in finding.message


# --- software emulation --------------------------------------------------------------------------------------------

TCG = ["virtual machine (QEMU, software emulation)"]


def made_by(*words: str, **options: bool) -> Evidence:
    """A campaign whose containers were made by a command line, with options in the plan."""
    campaign = evidence()
    specs = tuple(
        spec.model_copy(update={"options": options}) if spec.name == "container" else spec
        for spec in campaign.plan.environments
    )
    return replace(
        campaign,
        plan=campaign.plan.model_copy(update={"environments": specs}),
        cells=tuple(
            cell.model_copy(update={"commands": (words,)}) if cell.environment == "container" else cell
            for cell in campaign.cells
        ),
    )


def test_software_emulation_is_no_virtualization() -> None:
    for campaign in (
        made_by("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max"),
        made_by("VBoxManage", "modifyvm", "m", "--vm-execution-engine", "interpreter"),
        evidence({"container": {"virtualization": TCG}}),
    ):
        finding = only(environment.emulation(campaign))
        assert (finding.id, finding.severity, finding.environment) == ("T04", Severity.BLOCKER, "container")
    assert environment.emulation(made_by("qemu-system-x86_64", "-accel", "kvm")) == ()
    assert environment.emulation(made_by("VBoxManage", "modifyvm", "m", "--vm-execution-engine", "native-api")) == ()
    assert environment.emulation(evidence()) == ()


def test_a_study_may_compare_software_emulation() -> None:
    finding = only(environment.emulation(made_by("qemu", "-accel", "tcg", allow_emulation=True)))
    assert finding.severity is Severity.WARNING
    assert environment.emulation(made_by("qemu", "-accel", "kvm", allow_emulation=True)) == ()


def test_an_emulated_environment_has_one_finding_and_touches_no_other() -> None:
    wrong = {"virtualization": TCG, "cpus": 1, "cpu_flags": ["sse2"], "kernel": "5", "mpi_version": "other"}
    campaign = evidence({"container": wrong})
    assert {row.id for row in audit(campaign).rows if row.outcome is Outcome.FAIL} == {"T04", "N02", "N04"}
    found = findings_of(audit(campaign).rows)
    assert [(one.id, one.severity) for one in found if one.environment == "container"] == [("T04", Severity.BLOCKER)]
    assert campaign.numbers.pairs == ()
    assert {name for name, _ in campaign.numbers.levels} == {"host", "container"}


def test_emulation_that_the_study_foresees_is_a_note() -> None:
    campaign = evidence({"container": {"virtualization": TCG}})
    specs = tuple(
        spec.model_copy(update={"emulated": Selection(rounds=1)}) if spec.name == "container" else spec
        for spec in campaign.plan.environments
    )
    campaign = replace(campaign, plan=campaign.plan.model_copy(update={"environments": specs}))
    finding = only(environment.emulation(campaign))
    assert finding.severity is Severity.INFO
    assert "container works here, but in software emulation" in finding.message


def test_an_emulated_baseline_blocks_what_is_compared_with_it() -> None:
    campaign = evidence({"host": {"virtualization": TCG}})
    assert only(environment.emulation(campaign)).severity is Severity.BLOCKER
    assert {one.baseline for one in campaign.numbers.pairs} == {"host"}


def test_what_emulation_brings_along_is_only_a_warning() -> None:
    facts = {"cpu_flags": ["avx2", "fma", "sse2"], "blas_core": "Opteron", "virtualization": TCG}
    campaign = evidence({"container": facts})
    campaign = replace(campaign, plan=made_by(allow_emulation=True).plan)
    assert only(environment.hidden_flags(campaign)).severity is Severity.WARNING
    differing = [finding for finding in blas.blas_core(campaign) if "two programs" in finding.message]
    assert {finding.severity for finding in differing} == {Severity.WARNING}


def test_a_kernel_of_the_blas_that_only_the_node_names_is_no_other_build() -> None:
    facts = {"blas_core": "Opteron", "blas_config": "OpenBLAS 0.3.29 Opteron MAX_THREADS=128"}
    host = {"blas_core": "Cooperlake", "blas_config": "OpenBLAS 0.3.29 Cooperlake MAX_THREADS=128"}
    assert programs.different(evidence({"container": facts, "host": host})) == ()


# --- disks ----------------------------------------------------------------------------------------------------------


def disks(cache: str, benchmark: str = "iozone") -> Evidence:
    campaign = made_by("qemu")
    specs = tuple(
        spec.model_copy(update={"options": {"cache": cache}}) if spec.name == "container" else spec
        for spec in campaign.plan.environments
    )
    work = tuple(item.model_copy(update={"benchmark": benchmark}) for item in campaign.plan.work)
    return replace(campaign, plan=campaign.plan.model_copy(update={"environments": specs, "work": work}))


def test_disks_that_the_host_caches_too() -> None:
    found = disk.host_cache(disks("writeback"))
    assert {(one.severity, one.environment) for one in found} == {(Severity.WARNING, "container")}
    assert {one.severity for one in disk.host_cache(disks("unsafe"))} == {Severity.BLOCKER}
    assert disk.host_cache(disks("none")) == ()
    assert disk.host_cache(disks("unsafe", benchmark="ping")) == ()


# --- what is not recorded ---------------------------------------------------------------------------------------------


def blind(*facts: str, **more: Any) -> Evidence:
    """A campaign of which no node recorded these facts."""
    return evidence({name: dict.fromkeys(facts) for name in ("host", "container")}, **more)


def test_what_no_node_recorded_is_unknown() -> None:
    assert unknown(environment.different, blind("kernel", "libc", "microcode", "mitigations"))
    assert "the virtualization that its nodes detect" in unknown(environment.emulation, blind("virtualization")).message
    assert unknown(environment.nested, evidence(host_facts={"cpu_flags": FLAGS}))
    assert unknown(environment.hidden_flags, blind("cpu_flags"))
    assert unknown(programs.different, blind("binary_sha256"))
    assert unknown(blas.blas_core, blind("blas_core"))
    shared = replace(blind("shared_filesystem"), trials=evidence().trials)
    trials = tuple(one.model_copy(update={"scope": Scope.SHARED}) for one in shared.trials)
    assert unknown(disk.shared_filesystem, replace(shared, trials=trials))


def test_what_was_seen_and_is_right_is_reported() -> None:
    campaign = evidence()
    assert passed(programs.different, campaign)[0] == "host: hashes of hpcc, xhpl"
    assert passed(environment.different, campaign)[0] == "host: kernel 6.12.0"
    assert passed(environment.emulation, campaign) == (
        "host: no software emulation",
        "container: no software emulation",
    )
    assert passed(environment.nested, campaign)
    assert passed(disk.shared_filesystem, campaign) == ("nfs4 in host, nfs4 in container",)
    assert passed(disk.host_cache, disks("none")) == ("container: cache=none, default disk, default format",)


OWN = {"workload_digest": "5e" * 32, "workload_libc": "musl 1.2.5", "workload_layer": "ext4"}


def in_image(*, words: tuple[str, ...] = ("--image", "/workload"), **container: str) -> Evidence:
    """A campaign of two environments with an image each; `container` replaces facts of the second."""
    made = evidence({"host": OWN, "container": {**OWN, **container}})
    steps = [trial.steps[0].model_copy(update={"argv": ("vtax-run", *words, "--", "app")}) for trial in made.trials]
    trials = (trial.model_copy(update={"steps": (step,)}) for trial, step in zip(made.trials, steps, strict=True))
    return replace(made, trials=tuple(trials))


def test_t10_the_same_image_everywhere() -> None:
    seen = passed(programs.own_image, in_image())
    assert seen == tuple(
        f"{name}: sha256 {'5e' * 32}, libc musl 1.2.5, written to ext4" for name in ("host", "container")
    )
    assert programs.own_image(evidence({"host": OWN, "container": OWN})) == ()
    look = programs.own_image.look(in_image(words=()))
    assert look.outcome is Outcome.NOT_APPLICABLE


def test_t10_another_image() -> None:
    found = only(failed(programs.own_image, in_image(workload_digest="6f" * 32)))
    assert (found.severity, found.environment) == (Severity.BLOCKER, "container")
    assert f"the image in container has sha256 {'6f' * 32}, in host {'5e' * 32}" in found.message


@pytest.mark.parametrize(("layer", "severity"), [("tmpfs", Severity.WARNING), ("xfs", None)])
def test_t10_what_is_written_into_the_image_is_in_memory(layer: str, severity: Severity | None) -> None:
    campaign = in_image(workload_layer=layer)
    if severity is None:
        assert passed(programs.own_image, campaign)
        return
    found = only(failed(programs.own_image, campaign))
    assert (found.severity, found.environment) == (severity, "container")
    assert "what is written into the image is on tmpfs in container, on ext4 in host" in found.message


def test_t10_an_image_that_was_not_recorded() -> None:
    made = in_image()
    bare = evidence()
    found = unknown(programs.own_image, replace(bare, trials=made.trials))
    assert "not recorded: the study's own image on its nodes" in found.message
