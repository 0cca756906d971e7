"""The strings that become a path, an identifier or a part of a command line, each with its pattern.

Whatever file they come from, a record that holds another one cannot be made, so no code behind it has to ask again.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.+-]"
CAMPAIGN_ID = r"^([0-9a-f]{8}|up-[0-9a-f]{8})$"
WORD = r"[a-z][a-z0-9_]{0,30}"
STUDY_NAME = r"^[a-z][a-z0-9-]{0,30}$"
_LOCAL_IMAGE = r"(docker-archive|oci-archive|oci):[^\x00-\x1f\x7f:]+(:[A-Za-z0-9_./-][A-Za-z0-9_./:-]{0,254})?"
_REPOSITORY = r"([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*"
_REMOTE_IMAGE = rf"docker://{_REPOSITORY}(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}}|@sha256:[0-9a-f]{{64}})?"
WORKLOAD_SOURCE = rf"^({_LOCAL_IMAGE}|{_REMOTE_IMAGE})$"
# A destination of `ssh`: never an option, and nothing that the shell of a ProxyCommand would interpret.
DESTINATION = r"^(ssh://)?[A-Za-z0-9_][A-Za-z0-9_.@:%\[\]-]{0,250}$"
# Of a partition or an account; and an option of salloc, from a list: its parser takes any unambiguous beginning of an
# option ("--ui=0"), so that no list of what is forbidden can be complete. No slash: `--nodelist=FILE` would be read.
SLURM_NAME = r"^([A-Za-z0-9_][A-Za-z0-9_.,+-]{0,99})?$"
SLURM_OPTIONS = (
    *("--constraint", "--contiguous", "--core-spec", "--cores-per-socket", "--cpus-per-gpu", "--cpus-per-task"),
    *("--exclude", "--extra-node-info", "--gpus", "--gpus-per-node", "--gres", "--hint", "--licenses", "--mem"),
    *("--mem-per-cpu", "--mincpus", "--nodelist", "--ntasks-per-node", "--oversubscribe", "--prefer", "--priority"),
    *("--qos", "--reservation", "--sockets-per-node", "--switches", "--threads-per-core", "--tmp", "--wckey"),
)
SLURM_OPTION = rf"^({'|'.join(SLURM_OPTIONS)})(=[A-Za-z0-9_.,:;@%*()\[\]|&!+-]{{1,200}})?$"
# Of Kubernetes: a node, a namespace, a class (names of DNS); a context of a kubeconfig; an image, never an option.
KUBERNETES_NAME = r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$"
KUBERNETES_CONTEXT = r"^([A-Za-z0-9_][A-Za-z0-9_.:@/+-]{0,200})?$"
IMAGE_NAME = r"^[a-z0-9][A-Za-z0-9._:/@-]{0,250}$"
REGISTRY = r"^([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9]+([._/-]+[a-z0-9]+)*)?)?$"
METRIC_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,59}$"
UNIT = r"^[A-Za-z0-9%°µμΩ²³/·._^*-]{1,30}$"  # as it is written: "ms", "tokens/s"
OUTPUT_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}(/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}){0,4}$"

WORKLOAD_NAME = r"^([a-z][a-z0-9-]{0,40})?$"  # of vtax's own workloads

CampaignId = Annotated[str, Field(pattern=CAMPAIGN_ID)]  # of a campaign, or the label of one of its clusters
StudyName = Annotated[str, Field(pattern=STUDY_NAME)]  # what a study file may call things, nodes included
Name = Annotated[str, Field(pattern=rf"^{_WORD}{{0,150}}$")]  # of an environment, a cell, a trial's work
TrialId = Annotated[str, Field(pattern=rf"^{_WORD}{{0,150}}(/{_WORD}{{0,200}})?$")]  # CELL/WORK.ITERATION
FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9%_][^/\x00-\x1f\x7f]{0,254}$")]  # in one directory, not hidden
RawFile = Annotated[str, Field(pattern=r"^raw/[A-Za-z0-9_][A-Za-z0-9_.-]{0,150}$")]  # an imported file's copy
MountPoint = Annotated[str, Field(pattern=r"^/[a-z][a-z0-9_-]*$")]  # of the shared file system, on every node
Destination = Annotated[str, Field(pattern=DESTINATION)]
KubernetesName = Annotated[str, Field(pattern=KUBERNETES_NAME)]
KubernetesContext = Annotated[str, Field(pattern=KUBERNETES_CONTEXT)]  # "" is the current one
ImageName = Annotated[str, Field(pattern=IMAGE_NAME)]
Registry = Annotated[str, Field(pattern=REGISTRY)]  # with a path or without; "" is none
SlurmName = Annotated[str, Field(pattern=SLURM_NAME)]
SlurmOption = Annotated[str, Field(pattern=SLURM_OPTION)]
MachinePlace = Annotated[
    str, Field(pattern=r"^(/[^\x00-\x1f\x7f]*)?$")
]  # a directory of a machine; "" is vtax's choice
Address = Annotated[str, Field(pattern=r"^([0-9]{1,3}(\.[0-9]{1,3}){3})?$")]  # of IPv4; "" is found by vtax
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$")]  # of a command's environment
# Of a command: any text that can be an argument. It is code of the study's author, never a part of another command.
Argument = Annotated[str, Field(max_length=100_000, pattern=r"^[^\x00]*$")]
Program = Annotated[str, Field(min_length=1, max_length=4000, pattern=r"^[^\x00-\x1f\x7f-][^\x00-\x1f\x7f]*$")]
User = Annotated[str, Field(pattern=r"^[a-z_0-9][a-zA-Z0-9_.-]{0,31}(:[a-z_0-9][a-zA-Z0-9_.-]{0,31})?$")]  # or numbers
Word = Annotated[str, Field(pattern=rf"^{WORD}$")]  # in braces, in a command of a study
Signal = Annotated[str, Field(pattern=r"^SIG(TERM|INT|HUP|QUIT|USR1|USR2|KILL)$")]
WorkloadSource = Annotated[str, Field(pattern=WORKLOAD_SOURCE)]  # where an image comes from: an argument of skopeo
WorkloadName = Annotated[str, Field(pattern=WORKLOAD_NAME)]  # that an entry of a study, or a file, came from
MetricName = Annotated[str, Field(pattern=METRIC_NAME)]  # of a metric of a user's own
Unit = Annotated[str, Field(pattern=UNIT)]
OutputName = Annotated[str, Field(pattern=OUTPUT_NAME)]  # a file that a command leaves, below its own directory

_CAMPAIGN_ID = re.compile(CAMPAIGN_ID.removesuffix("$"))


def is_campaign_id(text: str) -> bool:
    """Whether a label may be one that vtax gave: labels of containers and processes are what anybody wrote there."""
    return _CAMPAIGN_ID.fullmatch(text) is not None
