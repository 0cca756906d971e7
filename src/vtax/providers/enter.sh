# enter.sh LABEL ROOT SITE SHARED MOUNTPOINT DIRECTORY COMMAND...
# Runs COMMAND in DIRECTORY inside the root file system at ROOT. `unshare` has given this shell a mount and a process
# namespace of its own, so nothing stays mounted or running when it ends. ROOT itself is read-only; SITE holds the
# node's own scratch, tmp and run directories; SHARED appears at MOUNTPOINT. LABEL makes the process easy to find.
set -eu
root=$2 site=$3 shared=$4 mountpoint=$5 directory=$6
shift 6
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --bind "$site/scratch" "$root/scratch"
mount --bind "$shared" "$root$mountpoint"
mount --bind "$site/tmp" "$root/tmp"
mount --bind "$site/run" "$root/run"
mount -o remount,bind,ro "$root"
mkdir -p "$root$directory"
chroot "$root" /bin/sh -c 'cd "$1" && shift && exec "$@"' sh "$directory" "$@"
exit $?
