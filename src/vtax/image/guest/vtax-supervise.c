/* vtax-supervise [--control] COMMAND ARG...
 *
 * Runs COMMAND with nothing as its standard input, and ends when it does, as it does; 128 + n for signal n. Whatever
 * COMMAND started and left running is ended then, wherever it has hidden (a session of its own, a second fork), and
 * named on standard error: so a command leaves the same behind everywhere, which is nothing.
 *
 * SIGTERM, SIGINT and SIGHUP are passed on once; GRACE_S later everything is killed. With --control, standard input has
 * orders: a line with the number of a signal sends that to COMMAND, and its end kills everything, because who gave
 * orders is gone.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GRACE_S 2
#define NAMED 8 /* of what was left running */
#define SEEN 256 /* of it, to count each once */
#define PAUSE_NS 5000000
#define WAIT 10 /* pauses in which it may end by itself */
#define ROUNDS 200 /* of looking for more, while what is killed may still fork */

static const int PASSED_ON[] = {SIGTERM, SIGINT, SIGHUP};

static struct {
  pid_t seen[SEEN];
  char names[NAMED][32];
  int count;
} rest;

static void fail(const char *what, const char *where) {
  fprintf(stderr, "vtax-supervise: %s %s: %s\n", what, where, strerror(errno));
  _exit(125);
}

/* The parent of a process, its name and its state. 0 where there is no such process. */
static pid_t parent_of(const char *pid, char *name, size_t size, char *state) {
  char path[300], line[512];
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  size_t got = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[got] = 0;
  char *open = strchr(line, '('), *close = strrchr(line, ')');
  int parent = 0;
  if (!open || !close || sscanf(close + 1, " %c %d", state, &parent) != 2) return 0;
  *close = 0;
  snprintf(name, size, "%s", open + 1);
  for (char *letter = name; *letter; letter++)
    if (!isprint((unsigned char)*letter) || *letter == ',') *letter = '?';
  return parent;
}

static void note(pid_t pid, const char *name) {
  for (int i = 0; i < rest.count && i < SEEN; i++)
    if (rest.seen[i] == pid) return;
  if (rest.count < SEEN) rest.seen[rest.count] = pid;
  if (rest.count < NAMED) snprintf(rest.names[rest.count], sizeof rest.names[0], "%s", name);
  rest.count++;
}

/* Kills the children of this process, to which all orphans below it come. */
static void kill_children(void) {
  char name[32], state;
  pid_t self = getpid();
  DIR *processes = opendir("/proc");
  if (!processes) fail("cannot read", "/proc");
  for (struct dirent *one; (one = readdir(processes));) {
    if (!isdigit((unsigned char)*one->d_name) || parent_of(one->d_name, name, sizeof name, &state) != self) continue;
    if (state == 'Z' || state == 'X') continue;
    pid_t pid = (pid_t)atol(one->d_name);
    kill(pid, SIGKILL);
    note(pid, name);
  }
  closedir(processes);
}

/* Until there is no child left, or none that can be ended. */
static void end_rest(void) {
  for (int round = 0; round < ROUNDS; round++) {
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) break;
    if (round >= WAIT) kill_children();
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
  }
  if (rest.count == 0) return;
  dprintf(STDERR_FILENO, "\nvtax-supervise: ended what was still running: ");
  for (int i = 0; i < rest.count && i < NAMED; i++) dprintf(STDERR_FILENO, "%s%s", i ? ", " : "", rest.names[i]);
  dprintf(STDERR_FILENO, "%s\n", rest.count > NAMED ? ", and more" : "");
}

static int code_of(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

static pid_t start(char **command, const sigset_t *before) {
  pid_t self = getpid(), child = fork();
  if (child < 0) fail("cannot fork for", command[0]);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != self) _exit(125);
  int nothing = open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) fail("cannot open", "/dev/null");
  if (nothing != STDIN_FILENO) close(nothing);
  sigprocmask(SIG_SETMASK, before, NULL);
  execvp(command[0], command);
  fprintf(stderr, "vtax-supervise: %s: %s\n", command[0], strerror(errno));
  _exit(errno == ENOENT ? 127 : 126);
}

/* Obeys what standard input says. Returns false at its end. */
static bool obey(pid_t child) {
  static int number = 0;
  char text[64];
  ssize_t got = read(STDIN_FILENO, text, sizeof text);
  if (got <= 0) return got < 0 && (errno == EINTR || errno == EAGAIN);
  for (ssize_t i = 0; i < got; i++) {
    if (isdigit((unsigned char)text[i])) number = (number * 10 + text[i] - '0') % 1000;
    if (text[i] != '\n') continue;
    if (number > 0) kill(child, number);
    number = 0;
  }
  return true;
}

/* Everything below this process, the command included. */
static int end_all(pid_t child) {
  int status = 0;
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  end_rest();
  return code_of(status);
}

int main(int argc, char **argv) {
  bool control = argc > 1 && strcmp(argv[1], "--control") == 0;
  char **command = argv + 1 + control;
  if (!*command) {
    fprintf(stderr, "usage: vtax-supervise [--control] COMMAND ARG...\n");
    return 125;
  }
  sigset_t awaited, before;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (size_t i = 0; i < sizeof PASSED_ON / sizeof PASSED_ON[0]; i++) sigaddset(&awaited, PASSED_ON[i]);
  sigprocmask(SIG_BLOCK, &awaited, &before);
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int signals = signalfd(-1, &awaited, SFD_CLOEXEC);
  if (signals < 0) fail("cannot wait for", "signals");
  pid_t child = start(command, &before);
  struct pollfd sources[] = {{.fd = signals, .events = POLLIN}, {.fd = control ? STDIN_FILENO : -1, .events = POLLIN}};
  bool told = false;
  struct timespec now, deadline = {0, 0};
  for (;;) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    long left_ms = (deadline.tv_sec - now.tv_sec) * 1000 + (deadline.tv_nsec - now.tv_nsec) / 1000000;
    if (told && left_ms <= 0) return end_all(child);
    if (poll(sources, 2, told ? (int)left_ms + 1 : -1) < 0 && errno != EINTR) fail("cannot wait for", command[0]);
    if (sources[1].revents && !obey(child)) return end_all(child);
    struct signalfd_siginfo about;
    if (!(sources[0].revents & POLLIN) || read(signals, &about, sizeof about) != sizeof about) continue;
    if (about.ssi_signo != SIGCHLD) {
      kill(child, (int)about.ssi_signo);
      if (!told) clock_gettime(CLOCK_MONOTONIC, &deadline), deadline.tv_sec += GRACE_S;
      told = true;
      continue;
    }
    int status;
    for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (ended != child) continue; /* an orphan */
      end_rest();
      return code_of(status);
    }
  }
}
