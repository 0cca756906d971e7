#!/bin/sh
# Runs inside the new root file system: builds our small programs, sets up SSH, removes the compiler again.
set -eu
here=/usr/local/lib/vtax/guest
build=/tmp/vtax-build
umask 022
export DEBIAN_FRONTEND=noninteractive
mkdir -p "$build/objects"
cd "$build"

echo "vtax: fetching the source of hpcc"
sed 's/^deb /deb-src /' /etc/apt/sources.list >/etc/apt/sources.list.d/vtax-source.list
apt-get -qq update
# Only the upstream archive is needed; mirrors that lack the packaging files still have it. apt checks its hash.
apt-get -qq source --download-only hpcc || true
rm /etc/apt/sources.list.d/vtax-source.list
echo "$(sha256sum hpcc_*.orig.tar.gz)  stream xhpl" >/usr/local/lib/vtax/sources # and what is compiled from it
tar -xzf hpcc_*.orig.tar.gz
cd hpcc-*/

echo "vtax: compiling xhpl"
flags="-std=gnu11 -O3 -w -DHPL_CALL_CBLAS -DOMPI_OMIT_MPI1_COMPAT_DECLS=1 -DMPI_Type_struct=MPI_Type_create_struct"
flags="$flags -DMPI_Address=MPI_Get_address -Ihpl/include -Iinclude"
export flags build
# shellcheck disable=SC2016
find hpl/src hpl/testing -name '*.c' | sort | xargs -P "$(nproc)" -n 12 sh -ec \
  'for f; do mpicc $flags -c "$f" -o "$build/objects/$(echo "$f" | tr / _).o"; done' compile
# shellcheck disable=SC2086
mpicc $flags "$here/xhpl.c" "$build"/objects/*.o -lopenblas -lm -o /usr/local/bin/xhpl

echo "vtax: compiling stream"
# The number of passes is an argument, and times are printed to the microsecond, as STREAM 5.10 does. Plain loops:
# as a call of memcpy, Copy would depend on what the C library believes about the cache.
sed -i -e 's/^# define NTIMES 10$/# define NTIMES repetitions/' \
  -e 's/"%s%11.4f  %11.4f  %11.4f  %11.4f\\n"/"%s%11.4f  %11.6f  %11.6f  %11.6f\\n"/' STREAM/stream.c
version=${PWD##*/hpcc-}
gcc -std=gnu11 -O3 -w -fopenmp -fno-tree-loop-distribute-patterns "-DVTAX_HPCC=\"$version\"" -I. -Iinclude \
  "$here/vtax-stream.c" -lm -o /usr/local/bin/stream
mkdir -p /usr/local/share/doc/stream
sed '/^$/q' STREAM/stream.c >/usr/local/share/doc/stream/copyright

gcc -O2 "$here/vtax-blas.c" -lopenblas -o /usr/local/bin/vtax-blas
gcc -O2 "$here/vtax-rank.c" -o /usr/local/bin/vtax-rank
mpicc -O2 "$here/vtax-world.c" -o /usr/local/bin/vtax-world
gcc -O2 -shared -fPIC "$here/vtax-loopback.c" -o /usr/local/bin/vtax-loopback.so
# Static: it runs programs inside images that have other libraries, or none.
gcc -O2 -static "$here/vtax-run.c" -o /usr/local/bin/vtax-run
gcc -O2 -static "$here/vtax-supervise.c" -o /usr/local/bin/vtax-supervise
gcc -O2 -static "$here/vtax-fetch.c" -o /usr/local/bin/vtax-fetch
# Static: the host environment runs it outside of this file system.
gcc -O2 -static "$here/vtax-enter.c" -o /usr/local/bin/vtax-enter
# Static: an initial RAM disk holds it and no libraries.
gcc -O2 -static "$here/vtax-boot.c" -o /usr/local/bin/vtax-boot
# What makes the kernel a program of EFI firmware; beside the kernel, so that containers lack it.
mkdir -p /boot
for stub in /usr/lib/systemd/boot/efi/linux*.efi.stub; do
  [ ! -e "$stub" ] || cp "$stub" /boot/efi-stub
done
install -m 755 "$here/node-init" "$here/vm-init" /usr/local/bin/

# For an emulated CPU, what it need not unpack at every start: the kernel beside the packed one, and the modules of nodes.
for kernel in /boot/vmlinuz-*; do
  [ -e "$kernel" ] || continue
  release=${kernel#/boot/vmlinuz-}
  sh "$here/unpack-kernel" "$kernel" "/boot/vmlinux-$release" || {
    echo "vtax: the kernel stays packed"
    rm -f "/boot/vmlinux-$release"
  }
  for module in $VTAX_MODULES; do
    modprobe -S "$release" --show-depends "$module" || true # kernels differ in what is built in
  done | sed -n 's/^insmod \(.*\.xz\) *$/\1/p' | sort -u | xargs -r unxz
  depmod "$release"
done

echo "vtax: removing the compiler"
cd /
rm -rf "$build"
# shellcheck disable=SC2086
apt-get -qq purge --autoremove $VTAX_BUILD_PACKAGES >/dev/null

echo "vtax: setting up nodes"
# The kernel mounts its root file system without help: no initial RAM disk, nor links to one.
rm -f /boot/initrd.img-* /initrd.img* /vmlinuz*
mkdir -p /boot /usr/lib/modules
mkdir -p /scratch /shared /workload /root/.ssh /run/sshd /var/lib/nfs/rpc_pipefs /var/lib/nfs/v4recovery
# What the first process of a virtual machine mounts, and the links that it makes in /dev.
cat >/usr/local/lib/vtax/vm-mounts <<'MOUNTS'
sysfs /sys sysfs defaults 0 0
dev /dev devtmpfs defaults 0 0
devpts /dev/pts devpts gid=5,mode=620,ptmxmode=666,x-mount.mkdir 0 0
shm /dev/shm tmpfs mode=1777,x-mount.mkdir 0 0
run /run tmpfs mode=755 0 0
cgroup /sys/fs/cgroup cgroup2 defaults 0 0
MOUNTS
mkdir -p /usr/local/lib/vtax/vm-dev
ln -s /proc/self/fd /usr/local/lib/vtax/vm-dev/fd
ln -s /proc/self/fd/0 /usr/local/lib/vtax/vm-dev/stdin
ln -s /proc/self/fd/1 /usr/local/lib/vtax/vm-dev/stdout
ln -s /proc/self/fd/2 /usr/local/lib/vtax/vm-dev/stderr
chmod 700 /root/.ssh
chmod 1777 /scratch /shared
rm -f /etc/ssh/ssh_host_*
cat >/etc/ssh/sshd_config.d/vtax.conf <<'SSHD'
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
UsePAM no
PrintMotd no
HostKey /etc/ssh/ssh_host_ed25519_key
MaxStartups 100:30:200
MaxSessions 100
KexAlgorithms curve25519-sha256
SSHD
# (One key exchange, the quickest: without hardware for it the others take a second more for every connection.)
# OpenSSH 10 punishes those who look for the banner of a server that is still starting.
if sshd -V 2>&1 | grep -q 'OpenSSH_\(9\.[89]\|1[0-9]\)'; then
  echo 'PerSourcePenalties no' >>/etc/ssh/sshd_config.d/vtax.conf
fi
mkdir -p /etc/nfs.conf.d
printf '[nfsd]\nvers3=n\nthreads=4\n' >/etc/nfs.conf.d/vtax.conf # version 4 alone needs no port mapper
printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' >/etc/hosts
: >/etc/machine-id
# What came from the machine that builds, and from the user who does; nodes get theirs from what starts them.
chown -R 0:0 "$here"
rm -f /etc/resolv.conf /etc/hostname /var/cache/debconf/*-old
: >/etc/resolv.conf
echo localhost >/etc/hostname
sed -i '/^Flags: seen$/d' /var/cache/debconf/config.dat # set or not, depending on what asked
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/cache/apt/archives/* /var/log/*.log /var/log/apt
for program in $VTAX_PROGRAMS; do
  command -v "$program" >/dev/null || { echo "vtax: $program is not there after the build" >&2; exit 1; }
done
dpkg-query -W -f '${Package} ${Version}\n' >/usr/local/lib/vtax/packages
