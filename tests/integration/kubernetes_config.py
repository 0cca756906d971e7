"""What the parts of a Kubernetes for tests are configured with: see `kubernetes_lab`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

API = "10.213.0.1"
ADDRESSES = {"n1": "10.213.0.11", "n2": "10.213.0.12"}
NETWORKS = {"n1": "10.244.1.0/24", "n2": "10.244.2.0/24"}  # of the pods
REGISTRY = "10.213.0.11:5000"
LOGIN_REGISTRY = "10.213.0.11:5002"  # for this user and password alone, of which the registry knows the hash
LOGIN = ("lab", "lab-password")
LOGIN_HASH = "$2b$05$abcdefghijklmnopqrstuuL/Ej5MNdcjasz4Sr7bjTMIxZn.WGpgG"
SEEN = "/opt/lab"  # where a node sees the lab's files
PROGRAMS = "/opt/kubernetes"
# User, groups. Each is known by a token.
USERS = {
    "admin": "system:masters",
    "restricted": "",
    "system:kube-controller-manager": "system:masters",  # instead of an account for each of its controllers
    "system:kube-scheduler": "",
    **{f"system:node:{node}": "system:nodes" for node in ADDRESSES},
}
# Of a shell. The kubelet sets some parameters of the kernel when they differ; it sees files with what it wants.
START = """\
set -e
for group in /sys/fs/cgroup/*/{group}; do echo 0 >"$group/{name}/cgroup.procs"; done
exec unshare --cgroup sh -e {seen}/{name}/inside.sh
"""
INSIDE = """\
controllers=$(awk "\\$3 == \\"cgroup\\" {{ print \\$2 }}" /proc/mounts | sed "s,.*/,," | sort -u)
umount -l -R /sys
mount -t sysfs sysfs /sys
mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
for one in $controllers; do
  mkdir "/sys/fs/cgroup/$one"
  case $one in systemd) options=none,name=systemd ;; *) options=$one ;; esac
  mount -t cgroup -o "$options" cgroup "/sys/fs/cgroup/$one"
done
mkdir -p /run/kernel /etc/cni/net.d /etc/containerd /var/lib/kubelet /var/log/pods
mount -t tmpfs kubelet /var/lib/kubelet
for one in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \\
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  file=/run/kernel/$(echo "${{one%=*}}" | tr / .)
  echo "${{one#*=}}" >"$file"
  mount --bind "$file" "/proc/sys/${{one%=*}}"
done
echo 1 >/proc/sys/net/ipv4/ip_forward
{routes}
cp {seen}/{name}/network.json /etc/cni/net.d/10-lab.conflist
cp -r {seen}/{name}/containerd/. /etc/containerd
containerd >/var/log/containerd.log 2>&1 &
exec /usr/sbin/sshd -D -e -f /etc/ssh/lab_config
"""
# Also for a kubelet that is started again from outside of the node, where it would be in the groups of who starts it.
KUBELET = """\
for group in /sys/fs/cgroup/*; do echo 0 >"$group/cgroup.procs"; done
exec {programs}/kubelet --config={seen}/{name}/kubelet.json --kubeconfig={seen}/{name}/kubeconfig \\
  --root-dir=/var/lib/kubelet --hostname-override={name} --node-ip={address} >>/var/log/kubelet.log 2>&1
"""
CONTAINERD = """\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "docker.io/{pause}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d"
"""
CERTS = """\
server = "http://{registry}"
[host."http://{registry}"]
capabilities = ["pull", "resolve"]
"""
REGISTRY_FILE = """\
version: 0.1
storage:
  filesystem:
    rootdirectory: /var/lib/containerd/registry
  delete:
    enabled: true
http:
  addr: {registry}
"""


def write_node(place: Path, name: str, group: str, reserved: str | None, pause: str) -> None:
    """The files of one node, but for its kubeconfig."""
    place.mkdir(parents=True)
    others = [other for other in ADDRESSES if other != name]
    values = {
        "group": group,
        "name": name,
        "seen": SEEN,
        "programs": PROGRAMS,
        "address": ADDRESSES[name],
        "routes": "\n".join(f"ip route add {NETWORKS[other]} via {ADDRESSES[other]}" for other in others)
        + f"\nip route add default via {API}",
    }
    for file, text in (("start.sh", START), ("inside.sh", INSIDE), ("kubelet.sh", KUBELET)):
        (place / file).write_text(text.format(**values))
    for registry in (REGISTRY, LOGIN_REGISTRY):
        certs = place / "containerd" / "certs.d" / registry
        certs.mkdir(parents=True)
        (certs / "hosts.toml").write_text(CERTS.format(registry=registry))
    (place / "containerd" / "config.toml").write_text(CONTAINERD.format(pause=pause))
    (place / "registry.yml").write_text(REGISTRY_FILE.format(registry=REGISTRY))
    (place / "network.json").write_text(json.dumps(_network(NETWORKS[name])))
    (place / "kubelet.json").write_text(json.dumps(_kubelet(reserved)))


def _network(pods: str) -> Mapping[str, object]:
    ranges = {"type": "host-local", "ranges": [[{"subnet": pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False, "ipam": ranges}
    return {"cniVersion": "1.0.0", "name": "lab", "plugins": [bridge]}


# By default a node takes no pods where less than 15 % of the disk are free, which may be many gigabytes.
EVICTION = {"memory.available": "100Mi", "nodefs.available": "1Gi", "imagefs.available": "1Gi"}


def _kubelet(reserved: str | None) -> Mapping[str, object]:
    """`reserved`: the CPUs that no pod has for itself; None: no pod has any for itself."""
    static = {} if reserved is None else {"cpuManagerPolicy": "static", "reservedSystemCPUs": reserved}
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "evictionHard": EVICTION,
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "makeIPTablesUtilChains": False,
        "maxOpenFiles": 10000,
        "nodeStatusUpdateFrequency": "2s",
        "oomScoreAdj": 0,
        **static,
    }


def kubeconfig(user: str, token: str, authority: str) -> str:
    """A file for kubectl and the parts; JSON is YAML. `authority` is a certificate in base64."""
    cluster = {"server": f"https://{API}:6443", "certificate-authority-data": authority}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": user, "context": {"cluster": "lab", "user": user}}],
            "current-context": user,
        }
    )


def etcd(place: Path) -> tuple[str, ...]:
    """Its arguments; what it keeps is of no use after the machine went down."""
    at = "http://127.0.0.1"
    return (
        *("--name=lab", f"--data-dir={place}/etcd", "--unsafe-no-fsync", "--log-level=warn"),
        *(f"--listen-client-urls={at}:2379", f"--advertise-client-urls={at}:2379"),
        *(f"--listen-peer-urls={at}:2380", f"--initial-advertise-peer-urls={at}:2380"),
        f"--initial-cluster=lab={at}:2380",
    )


def api_server(place: Path) -> tuple[str, ...]:
    return (
        *("--etcd-servers=http://127.0.0.1:2379", f"--bind-address={API}", f"--advertise-address={API}"),
        *("--secure-port=6443", f"--cert-dir={place}/certificates", "--service-cluster-ip-range=10.96.0.0/24"),
        *(f"--token-auth-file={place}/tokens", "--authorization-mode=Node,RBAC", "--allow-privileged=true"),
        *("--enable-admission-plugins=NodeRestriction", "--endpoint-reconciler-type=none"),
        *("--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={place}/accounts"),
        *(f"--service-account-signing-key-file={place}/accounts", "--kubelet-preferred-address-types=InternalIP"),
    )


def scheduler(place: Path) -> tuple[str, ...]:
    return (
        f"--kubeconfig={place}/system:kube-scheduler.kubeconfig",
        *("--leader-elect=false", "--bind-address=127.0.0.1"),
    )


def controller_manager(place: Path) -> tuple[str, ...]:
    """A node is lost after 20 s, not 50."""
    return (
        f"--kubeconfig={place}/system:kube-controller-manager.kubeconfig",
        *("--leader-elect=false", "--bind-address=127.0.0.1", "--node-monitor-grace-period=20s"),
        *(f"--service-account-private-key-file={place}/accounts", f"--root-ca-file={place}/certificates/apiserver.crt"),
    )
