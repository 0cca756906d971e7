/* vtax-enter LABEL ROOT SITE SHARED MOUNTPOINT DIRECTORY GROUPS NETWORK NODE KEEP COMMAND...
 *
 * Runs COMMAND in DIRECTORY inside the root file system at ROOT, on this machine, without virtualization: in a mount,
 * process and IPC namespace of its own, so nothing stays mounted or running when it ends. ROOT is read-only; SITE holds
 * the node's own scratch, tmp and run directories, what replaces ROOT's etc/hosts, etc/ssh and root on this node, and the
 * study's own image in workload/root, where /proc, /dev and more of the node appear too; SHARED appears at MOUNTPOINT;
 * GROUPS are control groups to enter, separated by spaces ("" is none). NETWORK is the file of a network namespace to
 * enter ("" makes one with nothing but loopback, which ends with the command), NODE the host name ("" keeps that of the
 * machine). KEEP are the capabilities that COMMAND has, separated by commas ("" is none); no program that it starts can
 * get others. Those with a plus sign are lent: inheritable, but outside the bounding set, by which vtax-run recognises
 * what it must give back before it starts a program. LABEL makes the process easy to find. Exits as COMMAND does,
 * 128 + n for signal n.
 *
 * COMMAND is root without the power of root: it sees ROOT and nothing else of the machine's files (pivot_root, because
 * chroot can be left), harmless devices, and kernel settings that it cannot write.
 *
 * One static program, because a shell with ten calls of mount costs more than a short benchmark step.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define HARMLESS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

/* All that a command may keep. Why each is needed is where the words are chosen: providers/host/ssh_nodes.py. */
static const struct {
  const char *name;
  int number;
} CAPABILITIES[] = {
    {"audit_write", CAP_AUDIT_WRITE},
    {"kill", CAP_KILL},
    {"net_bind_service", CAP_NET_BIND_SERVICE},
    {"setgid", CAP_SETGID},
    {"setuid", CAP_SETUID},
    {"sys_chroot", CAP_SYS_CHROOT},
};
static const char *const DEVICES[] = {"null", "zero", "full", "random", "urandom", "tty", NULL};
static const char *const LINKS[][2] = {{"pts/ptmx", "ptmx"},          {"/proc/self/fd", "fd"},
                                       {"/proc/self/fd/0", "stdin"},  {"/proc/self/fd/1", "stdout"},
                                       {"/proc/self/fd/2", "stderr"}, {NULL, NULL}};
/* Root may write these without any capability, or read secrets of the kernel in them. */
static const char *const SETTINGS[] = {"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", NULL};
static const char *const SECRETS[] = {"kcore", "keys", "timer_list", NULL};

static void fail(const char *what, const char *where) {
  fprintf(stderr, "vtax-enter: %s %s: %s\n", what, where, strerror(errno));
  _exit(125);
}

static void join(char *path, const char *first, const char *second) {
  if (snprintf(path, PATH_MAX, "%s%s", first, second) >= PATH_MAX) {
    errno = ENAMETOOLONG;
    fail("cannot use", first);
  }
}

static void bind_over(const char *from, const char *root, const char *to, unsigned long flags) {
  char path[PATH_MAX];
  join(path, root, to);
  if (mount(from, path, NULL, MS_BIND | flags, NULL) != 0) fail("cannot mount on", path);
}

static void mount_new(const char *kind, const char *root, const char *to, unsigned long flags, const char *options) {
  char path[PATH_MAX];
  join(path, root, to);
  if (mount(kind, path, kind, flags, options) != 0) fail("cannot mount", path);
}

static void bind_part(const char *site, const char *root, const char *part) {
  char from[PATH_MAX];
  join(from, site, part);
  bind_over(from, root, part, 0);
}

static void bind_if_there(const char *site, const char *root, const char *part) {
  char from[PATH_MAX];
  join(from, site, part);
  if (access(from, F_OK) == 0) bind_over(from, root, part, MS_REC);
}

static void enter_groups(char *groups) {
  for (char *group = strtok(groups, " "); group; group = strtok(NULL, " ")) {
    char path[PATH_MAX];
    join(path, group, "/cgroup.procs");
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, "0", 1) != 1) fail("cannot enter", group);
    close(file);
  }
}

static void loopback_up(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0 || ioctl(control, SIOCSIFFLAGS, &request) != 0) fail("cannot bring up", "lo");
  close(control);
}

static void enter_network(const char *network) {
  if (!*network) {
    if (unshare(CLONE_NEWNET) != 0) fail("cannot make", "a network namespace");
    loopback_up();
    return;
  }
  int file = open(network, O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0) fail("cannot enter", network);
  close(file);
}

/* A new sysfs shows the interfaces of the namespace that mounts it. Not every user namespace may mount one. */
static void show_system(const char *root, const char *network) {
  if (!*network) {
    bind_over("/sys", root, "/sys", MS_REC);
    return;
  }
  mount_new("sysfs", root, "/sys", HARMLESS, NULL);
  bind_over("/sys/fs/cgroup", root, "/sys/fs/cgroup", MS_REC);
}

/* Devices without a machine behind them, terminals and shared memory that belong to this command alone. */
static void show_devices(const char *root) {
  char place[PATH_MAX], device[PATH_MAX], path[PATH_MAX];
  join(place, root, "/dev/");
  mount_new("tmpfs", root, "/dev", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
  for (int i = 0; DEVICES[i]; i++) {
    join(device, "/dev/", DEVICES[i]);
    join(path, place, DEVICES[i]);
    int file = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) fail("cannot make", path);
    close(file);
    bind_over(device, root, device, 0);
  }
  for (int i = 0; LINKS[i][0]; i++) {
    join(path, place, LINKS[i][1]);
    if (symlink(LINKS[i][0], path) != 0) fail("cannot make", path);
  }
  join(path, place, "pts");
  if (mkdir(path, 0755) != 0) fail("cannot make", path);
  mount_new("devpts", root, "/dev/pts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666");
  join(path, place, "shm");
  if (mkdir(path, 01777) != 0) fail("cannot make", path);
  mount_new("tmpfs", root, "/dev/shm", HARMLESS, "mode=1777");
}

/* What belongs to the process namespace; of the rest of /proc, secrets are covered and settings become mounts, to be
 * made read-only. Not every kernel has all of them. */
static void show_processes(const char *root) {
  char place[PATH_MAX], path[PATH_MAX];
  mount_new("proc", root, "/proc", HARMLESS, NULL);
  join(place, root, "/proc/");
  for (int i = 0; SETTINGS[i]; i++) {
    join(path, place, SETTINGS[i]);
    if (access(path, F_OK) == 0) bind_over(path, path, "", 0);
  }
  for (int i = 0; SECRETS[i]; i++) {
    join(path, place, SECRETS[i]);
    if (access(path, F_OK) == 0) bind_over("/dev/null", path, "", 0);
  }
}

static void take_name(const char *node) {
  if (!*node) return;
  if (unshare(CLONE_NEWUTS) != 0 || sethostname(node, strlen(node)) != 0) fail("cannot take the name", node);
}

/* A user namespace may not drop flags that the file system was mounted with, so they are asked for again. */
static void make_read_only(const char *place) {
  struct statvfs about;
  if (statvfs(place, &about) != 0) fail("cannot examine", place);
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV;
  if (about.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (about.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (about.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
  if (about.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  if (mount(NULL, place, NULL, flags, NULL) != 0) fail("cannot make read-only", place);
}

/* The root file system, the settings in /proc, all of /sys, which has mounts below it, and what describes the image. */
static void make_all_read_only(void) {
  static char line[4 * PATH_MAX];
  char place[PATH_MAX];
  FILE *mounts = fopen("/proc/self/mountinfo", "re");
  if (!mounts) fail("cannot read", "/proc/self/mountinfo");
  while (fgets(line, sizeof line, mounts)) {
    if (sscanf(line, "%*s %*s %*s %*s %4095s", place) != 1) continue;
    if (strcmp(place, "/") == 0 || strcmp(place, "/sys") == 0 || strncmp(place, "/sys/", 5) == 0 ||
        strncmp(place, "/proc/", 6) == 0 || strcmp(place, "/workload") == 0)
      make_read_only(place);
  }
  fclose(mounts);
}

/* Copies of mounts that are read-only, or hide something, do so too. */
static void show_in_workload(const char *shared) {
  const char *const places[] = {"/proc", "/sys", "/dev", "/scratch", "/etc/hosts", shared, NULL};
  if (access("/workload/root", F_OK) != 0) return;
  for (int i = 0; places[i]; i++) bind_over(places[i], "/workload/root", places[i], MS_REC);
}

/* ROOT becomes the only root that there is: the machine's own is no longer mounted in this namespace. */
static void leave_machine(const char *root) {
  if (chdir(root) != 0 || syscall(SYS_pivot_root, ".", ".") != 0) fail("cannot enter", root);
  if (umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) fail("cannot leave what is outside", root);
}

static int capability(const char *word) {
  size_t i = 0, count = sizeof CAPABILITIES / sizeof CAPABILITIES[0];
  while (i < count && strcmp(CAPABILITIES[i].name, word) != 0) i++;
  if (i == count) {
    errno = EINVAL;
    fail("cannot keep the capability", word);
  }
  return CAPABILITIES[i].number;
}

static void set_capabilities(uint64_t permitted, uint64_t inheritable) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2];
  for (int i = 0; i < 2; i++) {
    sets[i].effective = sets[i].permitted = (uint32_t)(permitted >> 32 * i);
    sets[i].inheritable = (uint32_t)(inheritable >> 32 * i);
  }
  if (syscall(SYS_capset, &header, sets) != 0) fail("cannot give up", "capabilities");
}

/* Not only now: what is missing in the bounding set cannot be gained by executing anything, and what is inheritable
 * must be in it at first. */
static void drop_all_but(char *words) {
  uint64_t kept = 0, lent = 0;
  for (char *word = strtok(words, ","); word; word = strtok(NULL, ",")) {
    bool borrowed = *word == '+';
    *(borrowed ? &lent : &kept) |= UINT64_C(1) << capability(word + borrowed);
  }
  set_capabilities(kept | lent | UINT64_C(1) << CAP_SETPCAP, lent);
  for (int number = 0; prctl(PR_CAPBSET_READ, number) >= 0; number++)
    if (!(kept >> number & 1) && prctl(PR_CAPBSET_DROP, number) != 0) fail("cannot give up", "capabilities");
  set_capabilities(kept | lent, lent);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail("cannot give up", "new privileges");
}

static void go_to(const char *directory) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", directory);
  for (char *slash = path + 1; *slash; slash++)
    if (*slash == '/') {
      *slash = 0;
      mkdir(path, 0755);
      *slash = '/';
    }
  mkdir(path, 0755);
  if (chdir(path) != 0) fail("cannot go to", path);
}

static int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/* The other end of the pipe is that of the parent alone: an end of file is the end of the parent. */
static void end_with_parent(int alive) {
  struct pollfd parent = {.fd = alive, .events = POLLIN};
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (poll(&parent, 1, 0) != 0) _exit(125);
  close(alive);
}

/* First process of the namespace: reaps everything, ends when the command does; the kernel then ends all the rest. */
static int first_process(char **argv, int alive) {
  const char *root = argv[2], *site = argv[3];
  char **command = argv + 11;
  end_with_parent(alive);
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0) fail("cannot make namespaces for", command[0]);
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("cannot make private", "/");
  bind_over(root, root, "", 0);
  show_devices(root);
  show_system(root, argv[8]);
  show_processes(root);
  bind_part(site, root, "/scratch");
  bind_part(site, root, "/tmp");
  bind_part(site, root, "/run");
  bind_if_there(site, root, "/etc/hosts");
  bind_if_there(site, root, "/etc/ssh");
  bind_if_there(site, root, "/root");
  bind_over(argv[4], root, argv[5], 0);
  bind_if_there(site, root, "/workload");
  leave_machine(root);
  make_all_read_only();
  show_in_workload(argv[5]);
  drop_all_but(argv[10]);
  go_to(argv[6]);
  pid_t child = fork();
  if (child < 0) fail("cannot fork for", command[0]);
  if (child == 0) {
    execvp(command[0], command);
    fprintf(stderr, "vtax-enter: %s: %s\n", command[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
  }
  for (;;) {
    int status;
    pid_t ended = wait(&status);
    if (ended == child) return code_of(status);
    if (ended < 0 && errno != EINTR) return 125;
  }
}

int main(int argc, char **argv) {
  if (argc < 12) {
    fprintf(stderr,
            "usage: vtax-enter LABEL ROOT SITE SHARED MOUNTPOINT DIRECTORY GROUPS NETWORK NODE KEEP COMMAND...\n");
    return 125;
  }
  char **command = argv + 11;
  int alive[2];
  enter_groups(argv[7]);
  enter_network(argv[8]);
  take_name(argv[9]);
  if (pipe2(alive, O_CLOEXEC) != 0) fail("cannot make a pipe for", command[0]);
  if (unshare(CLONE_NEWPID) != 0) fail("cannot make namespaces for", command[0]);
  pid_t child = fork();
  if (child < 0) fail("cannot fork for", command[0]);
  if (child == 0) {
    close(alive[1]);
    return first_process(argv, alive[0]);
  }
  close(alive[0]);
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("cannot wait for", command[0]);
  return code_of(status);
}
