/* vtax-enter LABEL ROOT SITE SHARED MOUNTPOINT DIRECTORY GROUPS NETWORK NODE COMMAND...
 *
 * Runs COMMAND in DIRECTORY inside the root file system at ROOT, on this machine, without virtualization: in a mount and
 * process namespace of its own, so nothing stays mounted or running when it ends. ROOT is read-only; SITE holds the
 * node's own scratch, tmp and run directories, and what replaces ROOT's etc/hosts, etc/ssh and root on this node; SHARED
 * appears at MOUNTPOINT; GROUPS are control groups to enter, separated by spaces ("" is none). NETWORK is the file of a
 * network namespace to enter ("" makes one with nothing but loopback, which ends with the command), NODE the host name
 * ("" keeps that of the machine). LABEL makes the process easy to find. Exits as COMMAND does, 128 + n for signal n.
 *
 * One static program, because a shell with ten calls of mount costs more than a short benchmark step.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what, const char *where) {
  fprintf(stderr, "vtax-enter: %s %s: %s\n", what, where, strerror(errno));
  _exit(125);
}

static void bind_over(const char *from, const char *root, const char *to, unsigned long flags) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%s", root, to);
  if (mount(from, path, NULL, MS_BIND | flags, NULL) != 0) fail("cannot mount on", path);
}

static void bind_part(const char *site, const char *root, const char *part) {
  char from[PATH_MAX];
  snprintf(from, sizeof from, "%s%s", site, part);
  bind_over(from, root, part, 0);
}

static void bind_if_there(const char *site, const char *root, const char *part) {
  char from[PATH_MAX];
  snprintf(from, sizeof from, "%s%s", site, part);
  if (access(from, F_OK) == 0) bind_over(from, root, part, 0);
}

static void enter_groups(char *groups) {
  for (char *group = strtok(groups, " "); group; group = strtok(NULL, " ")) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
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
  char path[PATH_MAX];
  if (!*network) {
    bind_over("/sys", root, "/sys", MS_REC);
    return;
  }
  snprintf(path, sizeof path, "%s/sys", root);
  if (mount("sysfs", path, "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) fail("cannot mount", path);
  bind_over("/sys/fs/cgroup", root, "/sys/fs/cgroup", MS_REC);
}

static void take_name(const char *node) {
  if (!*node) return;
  if (unshare(CLONE_NEWUTS) != 0 || sethostname(node, strlen(node)) != 0) fail("cannot take the name", node);
}

/* A user namespace may not drop flags that the file system was mounted with, so they are asked for again. */
static void make_read_only(const char *root) {
  struct statvfs about;
  if (statvfs(root, &about) != 0) fail("cannot examine", root);
  unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY;
  if (about.f_flag & ST_NOSUID) flags |= MS_NOSUID;
  if (about.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (about.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  if (about.f_flag & ST_NOATIME) flags |= MS_NOATIME;
  if (about.f_flag & ST_NODIRATIME) flags |= MS_NODIRATIME;
  if (about.f_flag & ST_RELATIME) flags |= MS_RELATIME;
  if (mount(NULL, root, NULL, flags, NULL) != 0) fail("cannot make read-only", root);
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

/* First process of the namespace: reaps everything, ends when the command does; the kernel then ends all the rest. */
static int first_process(const char *root, const char *directory, char **command) {
  char proc[PATH_MAX];
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  snprintf(proc, sizeof proc, "%s/proc", root);
  if (mount("proc", proc, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) fail("cannot mount", proc);
  make_read_only(root);
  if (chroot(root) != 0) fail("cannot enter", root);
  go_to(directory);
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
  if (argc < 11) {
    fprintf(stderr, "usage: vtax-enter LABEL ROOT SITE SHARED MOUNTPOINT DIRECTORY GROUPS NETWORK NODE COMMAND...\n");
    return 125;
  }
  const char *root = argv[2], *site = argv[3], *network = argv[8];
  char **command = argv + 10;
  enter_groups(argv[7]);
  enter_network(network);
  take_name(argv[9]);
  if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) fail("cannot make namespaces for", command[0]);
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) fail("cannot make private", "/");
  bind_over(root, root, "", 0);
  bind_over("/dev", root, "/dev", MS_REC);
  show_system(root, network);
  bind_part(site, root, "/scratch");
  bind_part(site, root, "/tmp");
  bind_part(site, root, "/run");
  bind_if_there(site, root, "/etc/hosts");
  bind_if_there(site, root, "/etc/ssh");
  bind_if_there(site, root, "/root");
  bind_over(argv[4], root, argv[5], 0);
  pid_t child = fork();
  if (child < 0) fail("cannot fork for", command[0]);
  if (child == 0) return first_process(root, argv[6], command);
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) fail("cannot wait for", command[0]);
  return code_of(status);
}
