/* vtax-fetch MOST FILE
 *
 * Copies FILE, whose path begins in the working directory, to standard output, if it is a regular file of at most MOST
 * bytes. A command may have left anything with that name, and root reads it: so no symbolic link is followed, in no part
 * of the path, and nothing is opened before it is known to be a regular file (a pipe would be waited for, a device may
 * do anything).
 *
 * Exits 0 when it was copied whole, 3 when it does not exist, 4 when the path has a symbolic link, 5 when it is no
 * regular file, 6 when it has more than MOST bytes (what was copied is then a part), 1 when it cannot be read.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHOLE = 0, FAILED = 1, ABSENT = 3, LINK = 4, SPECIAL = 5, LARGE = 6 };

static int fail(const char *what, const char *where) {
  fprintf(stderr, "vtax-fetch: %s %s: %s\n", what, where, strerror(errno));
  return FAILED;
}

/* A place in a directory, neither followed nor opened for reading; `about` says what it is. -1 where there is none. */
static int look(int directory, const char *name, struct stat *about) {
  int place = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (place >= 0 && fstat(place, about) != 0) {
    close(place);
    return -1;
  }
  return place;
}

static int copy(int from, long long most, const char *name) {
  static char block[1 << 16];
  long long left = most;
  for (;;) {
    ssize_t got = read(from, block, sizeof block), done = 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail("cannot read", name);
    if (got == 0) return WHOLE;
    if (got > left) return LARGE;
    left -= got;
    while (done < got) {
      ssize_t put = write(STDOUT_FILENO, block + done, (size_t)(got - done));
      if (put < 0 && errno != EINTR) return fail("cannot copy", name);
      if (put > 0) done += put;
    }
  }
}

int main(int argc, char **argv) {
  char *end, again[64], *path, *part;
  long long most = argc == 3 ? strtoll(argv[1], &end, 10) : -1;
  if (argc != 3 || most < 0 || *end || !*argv[2] || *argv[2] == '/') {
    fprintf(stderr, "usage: vtax-fetch MOST FILE\n");
    return FAILED;
  }
  struct stat about;
  int place = AT_FDCWD;
  if (!(path = strdup(argv[2]))) return fail("no memory for", argv[2]);
  while ((part = strsep(&path, "/"))) {
    if (!*part || strcmp(part, ".") == 0) continue;
    if (strcmp(part, "..") == 0) return SPECIAL; /* no path of a study has it */
    int inner = look(place, part, &about);
    if (inner < 0) return errno == ENOENT || errno == ENOTDIR ? ABSENT : fail("cannot look at", argv[2]);
    if (S_ISLNK(about.st_mode)) return LINK;
    if (place != AT_FDCWD) close(place);
    place = inner;
  }
  if (place == AT_FDCWD || !S_ISREG(about.st_mode)) return SPECIAL;
  if (about.st_size > most) return LARGE;
  snprintf(again, sizeof again, "/proc/self/fd/%d", place); /* the very file that was looked at */
  int from = open(again, O_RDONLY | O_CLOEXEC);
  return from < 0 ? fail("cannot open", argv[2]) : copy(from, most, argv[2]);
}
