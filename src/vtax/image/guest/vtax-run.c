/* vtax-run [--report FILE] [--image DIR] [--user USER[:GROUP]] [--directory DIR] [--set NAME=VALUE]... [--] COMMAND...
 *
 * Becomes COMMAND, as another user, in another directory, with other variables, or in another root file system; nothing
 * else changes. With --report it stays the parent, passes signals on, ends as COMMAND does, and writes what the kernel
 * counted for it into FILE, which must be new: one JSON object, with `status` an exit code or minus a signal. What
 * COMMAND leaves behind in the background is not counted, but in `memory_peak_bytes`: the most memory that all programs
 * of a virtual machine had at once meanwhile. It is left out where PEAK is not there, or cannot begin anew (before
 * Linux 6.12).
 *
 * --image: DIR/root becomes the root directory. DIR/config holds options that the image asks for, each ended by a zero
 * byte; those of the command line come later and win. DIR/entry holds the command that runs where none is given. The
 * environment is then that of the options alone, as an OCI runtime makes it. Users and groups are those of the image;
 * they are read here, because a static program has no name service.
 *
 * Nothing needs a capability but --image (sys_chroot, setgid, setuid) and --user (setgid, setuid). Those that are lent
 * for this (inheritable, outside the bounding set; see vtax-enter) are given back before COMMAND starts; it has what
 * the bounding set allows its user, as without this program.
 *
 * Exits 125 when it fails itself, 126 when COMMAND cannot be executed, 127 when it does not exist.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATH_OF_IMAGES "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" /* where an image names none */
#define GROUPS_MAX 65536
#define PEAK "/sys/fs/cgroup/node/memory.peak" /* of the control group that vm-init makes */

static const int PASSED_ON[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static struct {
  const char *report, *image, *user, *directory;
  char **settings;
  size_t count;
} asked;

static struct {
  uid_t id;
  gid_t group, groups[GROUPS_MAX];
  size_t count;
  char name[256], home[PATH_MAX];
} user = {.home = "/"};

static void fail(const char *what, const char *where) {
  fprintf(stderr, "vtax-run: %s %s: %s\n", what, where, strerror(errno));
  _exit(125);
}

static void refuse(const char *what, const char *where) {
  fprintf(stderr, "vtax-run: %s %s\n", what, where);
  _exit(125);
}

static void *room(size_t count, size_t size) {
  void *found = calloc(count, size);
  if (!found) fail("no memory for", "the command");
  return found;
}

/* The words of a file in which each is ended by a zero byte. The array ends with NULL. */
static char **words_of(const char *directory, const char *name, size_t *count) {
  char path[PATH_MAX];
  struct stat about;
  if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path) refuse("too long:", directory);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 || fstat(file, &about) != 0) fail("cannot read", path);
  size_t size = (size_t)about.st_size, done = 0;
  char *text = room(size + 1, 1);
  while (done < size) {
    ssize_t got = read(file, text + done, size - done);
    if (got <= 0) fail("cannot read", path);
    done += (size_t)got;
  }
  close(file);
  char **words = room(size + 1, sizeof *words);
  *count = 0;
  for (char *word = text; word < text + size; word += strlen(word) + 1) words[(*count)++] = word;
  return words;
}

/* Takes the options at the beginning of `words`. Returns how many words they are. */
static size_t take_options(char **words, size_t count, bool of_image) {
  size_t i = 0;
  for (; i < count && strncmp(words[i], "--", 2) == 0; i += 2) {
    const char *option = words[i] + 2;
    char *value = i + 1 < count ? words[i + 1] : NULL;
    if (!*option) return i + 1;
    if (!value) refuse("a value is missing after", words[i]);
    if (strcmp(option, "user") == 0) asked.user = value;
    else if (strcmp(option, "directory") == 0) asked.directory = value;
    else if (strcmp(option, "set") == 0) asked.settings[asked.count++] = value;
    else if (strcmp(option, "report") == 0 && !of_image) asked.report = value;
    else if (strcmp(option, "image") == 0 && !of_image) asked.image = value;
    else refuse("there is no option", words[i]);
    if (strcmp(option, "set") == 0 && (*value == '=' || !strchr(value, '='))) refuse("not NAME=VALUE:", value);
  }
  return i;
}

static void enter_image(void) {
  if (chdir(asked.image) != 0 || chroot("root") != 0 || chdir("/") != 0) fail("cannot enter the image in", asked.image);
}

static bool number_of(const char *text, unsigned *number) {
  char *end;
  errno = 0;
  unsigned long found = strtoul(text, &end, 10);
  if (*text < '0' || *text > '9' || *end || errno || found >= UINT_MAX) return false;
  *number = (unsigned)found;
  return true;
}

/* Splits a line at colons. Returns whether it has as many fields. */
static bool fields_of(char *line, char **fields, size_t count) {
  line[strcspn(line, "\n")] = 0;
  size_t found = 0;
  while (found < count && line) fields[found++] = strsep(&line, ":");
  return found == count;
}

static bool in_list(char *list, const char *name) {
  for (char *one; (one = strsep(&list, ","));)
    if (*one && strcmp(one, name) == 0) return true;
  return false;
}

/* A user by name or number, as OCI runtimes read it: a number need not be in the file, and is then in group 0. */
static void find_user(const char *wanted) {
  char *line = NULL, *fields[6];
  size_t size = 0;
  unsigned number = 0, id, group;
  bool numeric = number_of(wanted, &number), found = false;
  FILE *file = fopen("/etc/passwd", "re");
  while (file && !found && getline(&line, &size, file) > 0) {
    if (!fields_of(line, fields, 6) || !number_of(fields[2], &id) || !number_of(fields[3], &group)) continue;
    if (strcmp(fields[0], wanted) != 0 && !(numeric && id == number)) continue;
    found = true;
    user.id = id;
    user.group = group;
    snprintf(user.name, sizeof user.name, "%s", fields[0]);
    if (*fields[5]) snprintf(user.home, sizeof user.home, "%s", fields[5]);
  }
  if (file) fclose(file);
  free(line);
  if (!found && !numeric) refuse("/etc/passwd does not name the user", wanted);
  if (!found) user.id = number;
}

/* The group that is asked for, and no other; without one, all groups that the user is a member of. */
static void find_groups(const char *wanted) {
  char *line = NULL, *fields[4];
  size_t size = 0;
  unsigned number = 0, id;
  bool numeric = wanted && number_of(wanted, &number), found = false;
  FILE *file = fopen("/etc/group", "re");
  while (file && !found && getline(&line, &size, file) > 0) {
    if (!fields_of(line, fields, 4) || !number_of(fields[2], &id)) continue;
    found = wanted && (strcmp(fields[0], wanted) == 0 || (numeric && id == number));
    if (found) user.group = id;
    else if (!wanted && *user.name && in_list(fields[3], user.name) && user.count < GROUPS_MAX)
      user.groups[user.count++] = id;
  }
  if (file) fclose(file);
  free(line);
  if (wanted && !found && !numeric) refuse("/etc/group does not name the group", wanted);
  if (wanted && !found) user.group = number;
}

static void find(const char *text) {
  char copy[512];
  if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) refuse("too long:", text);
  char *group = strchr(copy, ':');
  if (group) *group++ = 0;
  find_user(*copy ? copy : "0");
  find_groups(group && *group ? group : NULL);
}

static void become_user(void) {
  if (setgroups(user.count, user.groups) != 0) fail("cannot set the groups of", asked.user);
  if (setgid(user.group) != 0 || setuid(user.id) != 0) fail("cannot become", asked.user);
}

/* What is outside the bounding set was lent to this program alone; being inheritable, it would stay with root. */
static void give_back_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2];
  uint32_t bounds[2] = {0, 0};
  for (int number = 0; number < 64 && prctl(PR_CAPBSET_READ, number) >= 0; number++)
    if (prctl(PR_CAPBSET_READ, number) == 1) bounds[number / 32] |= UINT32_C(1) << number % 32;
  if (syscall(SYS_capget, &header, sets) != 0) fail("cannot read", "capabilities");
  for (int i = 0; i < 2; i++) {
    sets[i].permitted &= bounds[i];
    sets[i].effective &= bounds[i];
    sets[i].inheritable = 0;
  }
  if (syscall(SYS_capset, &header, sets) != 0) fail("cannot give up", "capabilities");
}

/* Images may name a directory that they do not hold; OCI runtimes make it. */
static void make_directory(const char *directory) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s", directory) >= (int)sizeof path) refuse("too long:", directory);
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = 0;
    mkdir(path, 0755);
    *slash = '/';
  }
  mkdir(path, 0755);
}

static void set_variables(void) {
  if (asked.image && (clearenv() != 0 || setenv("PATH", PATH_OF_IMAGES, 1) != 0)) fail("cannot set", "PATH");
  if (asked.user && setenv("HOME", user.home, 1) != 0) fail("cannot set", "HOME");
  for (size_t i = 0; i < asked.count; i++)
    if (putenv(asked.settings[i]) != 0) fail("cannot set", asked.settings[i]);
}

/* Where a shell would look for it, but a file that is no program is not taken for a script. Returns if nothing starts:
 * whether there is such a file. */
static bool search(char **command) {
  char path[PATH_MAX];
  const char *from = strchr(command[0], '/') ? "" : getenv("PATH");
  int error = ENOENT;
  bool exists = false;
  for (const char *to; from && *command[0]; from = *to ? to + 1 : NULL) {
    to = from + strcspn(from, ":");
    const char *between = to > from ? "/" : "";
    if (snprintf(path, sizeof path, "%.*s%s%s", (int)(to - from), from, between, command[0]) >= (int)sizeof path)
      continue;
    execve(path, command, environ);
    if (errno == ENOENT || errno == ENOTDIR) {
      if (access(path, F_OK) != 0) continue;
      errno = ENOENT;
    }
    exists = true;
    error = errno;
    if (error != EACCES) break;
  }
  errno = error;
  return exists;
}

static int execute(char **command) {
  bool exists = search(command);
  int code = errno == ENOENT ? 127 : 126;
  const char *why = code == 126 ? strerror(errno) : exists ? "its loader or interpreter does not exist" : "not found";
  fprintf(stderr, "vtax-run: %s: %s\n", command[0], why);
  return code;
}

static long long ns_of(struct timespec time) { return time.tv_sec * 1000000000LL + time.tv_nsec; }

/* The kernel's mark, which begins anew for this file descriptor alone; -1 where it cannot. */
static int begin_peak(void) {
  int peak = open(PEAK, O_RDWR | O_CLOEXEC);
  if (peak >= 0 && write(peak, "0", 1) == 1) return peak;
  if (peak >= 0) close(peak);
  return -1;
}

static void write_peak(int file, int peak) {
  char text[32];
  ssize_t got = peak < 0 ? 0 : pread(peak, text, sizeof text - 1, 0);
  text[got > 0 ? got : 0] = 0;
  long long bytes = strtoll(text, NULL, 10);
  if (bytes > 0) dprintf(file, "\"memory_peak_bytes\": %lld, ", bytes);
}

static void write_report(int file, int peak, long long wall_ns, const struct rusage *used, int status) {
  int written = dprintf(
      file,
      "{\"wall_s\": %lld.%09lld, \"user_s\": %ld.%06ld, \"system_s\": %ld.%06ld, \"max_rss_bytes\": %lld, "
      "\"minor_faults\": %ld, \"major_faults\": %ld, \"voluntary_switches\": %ld, \"involuntary_switches\": %ld, ",
      wall_ns / 1000000000, wall_ns % 1000000000, (long)used->ru_utime.tv_sec, (long)used->ru_utime.tv_usec,
      (long)used->ru_stime.tv_sec, (long)used->ru_stime.tv_usec, used->ru_maxrss * 1024LL, used->ru_minflt,
      used->ru_majflt, used->ru_nvcsw, used->ru_nivcsw);
  write_peak(file, peak);
  int ended = dprintf(file, "\"status\": %d}\n", WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
  if (written < 0 || ended < 0 || close(file) != 0) fail("cannot write", asked.report);
}

static int end_as(int status) {
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  int number = WTERMSIG(status);
  sigset_t only;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* the command has left one, if any */
  signal(number, SIG_DFL);
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, NULL);
  return 128 + number;
}

/* Signals stay blocked here and are fetched one by one, so that none is lost between the fork and the wait. */
static int watch(char **command, int report, int peak) {
  sigset_t awaited, before;
  struct sigaction of_children, usual = {.sa_handler = SIG_DFL};
  struct timespec began, ended;
  struct rusage used;
  int status;
  pid_t self = getpid();
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (size_t i = 0; i < sizeof PASSED_ON / sizeof PASSED_ON[0]; i++) sigaddset(&awaited, PASSED_ON[i]);
  sigprocmask(SIG_BLOCK, &awaited, &before);
  sigaction(SIGCHLD, &usual, &of_children);
  clock_gettime(CLOCK_MONOTONIC, &began);
  pid_t child = fork();
  if (child < 0) fail("cannot fork for", command[0]);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != self) _exit(125);
    sigaction(SIGCHLD, &of_children, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    _exit(execute(command));
  }
  for (;;) {
    int number = sigwaitinfo(&awaited, NULL);
    if (number == SIGCHLD && wait4(child, &status, WNOHANG, &used) == child) break;
    if (number > 0 && number != SIGCHLD) kill(child, number);
  }
  clock_gettime(CLOCK_MONOTONIC, &ended);
  write_report(report, peak, ns_of(ended) - ns_of(began), &used, status);
  return end_as(status);
}

int main(int argc, char **argv) {
  char **command, **of_image = NULL;
  size_t words = 0, entry = 0;
  int report = -1;
  asked.settings = room((size_t)argc, sizeof *asked.settings);
  command = argv + 1 + take_options(argv + 1, (size_t)argc - 1, false);
  if (asked.report && (report = open(asked.report, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644)) < 0)
    fail("cannot make", asked.report);
  if (asked.image) {
    of_image = words_of(asked.image, "config", &words);
    if (!*command) command = words_of(asked.image, "entry", &entry);
    asked.user = "0";
    asked.directory = "/";
    asked.settings = room(words + (size_t)argc, sizeof *asked.settings);
    asked.count = 0;
    if (take_options(of_image, words, true) < words) refuse("more than options are in the config of", asked.image);
    take_options(argv + 1, (size_t)argc - 1, false);
  }
  if (!*command && asked.image) refuse("no command is given, and the image names none:", asked.image);
  if (!*command) refuse("usage: vtax-run [--report FILE] [--image DIR] [--user USER[:GROUP]] [--directory DIR]",
                        "[--set NAME=VALUE]... [--] COMMAND ARG...");
  int peak = report < 0 ? -1 : begin_peak();
  if (asked.image) enter_image();
  if (asked.user) find(asked.user);
  if (asked.image) make_directory(asked.directory);
  if (asked.user) become_user();
  if (asked.user) give_back_capabilities();
  if (asked.directory && chdir(asked.directory) != 0) fail("cannot go to", asked.directory);
  set_variables();
  return report < 0 ? execute(command) : watch(command, report, peak);
}
