/* First process of the initial RAM disk, for kernels that cannot mount the root file system without modules.
 *
 * Loads what /modules lists, one file a line, in that order; waits for the device that root= names (a path, or
 * PARTLABEL= and the name of a partition, where the order of disks is nobody's promise); mounts it (ext4) and becomes the
 * program that init= names there, as the kernel would. Everything in the RAM disk is forgotten on the way.
 * One static program: a shell with its library and tools would be ten times as large.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fail(const char *what, const char *which) {
  fprintf(stderr, "vtax-init 0.00 failed: %s %s: %s\n", what, which, strerror(errno));
  sleep(1);
  _exit(1); /* the kernel panics, which ends the machine */
}

static void load(const char *path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("cannot open", path);
  if (syscall(SYS_finit_module, file, "", 0) != 0 && errno != EEXIST) fail("cannot load", path);
  close(file);
  unlink(path);
}

/* The value of a word of the kernel's command line. */
static char *word(char *line, const char *name) {
  size_t length = strlen(name);
  for (char *one = strtok(line, " \n"); one; one = strtok(NULL, " \n"))
    if (strncmp(one, name, length) == 0) return one + length;
  errno = EINVAL;
  fail("the kernel was not told", name);
  return NULL;
}

/* Whether the block device that root= names is there; `device` is then its path. */
static int there(const char *root, char *device, size_t size) {
  if (strncmp(root, "PARTLABEL=", 10) != 0) {
    snprintf(device, size, "%s", root);
    return access(device, F_OK) == 0;
  }
  DIR *all = opendir("/sys/class/block");
  if (!all) fail("cannot read", "/sys/class/block");
  int found = 0;
  for (struct dirent *one; !found && (one = readdir(all));) {
    char path[PATH_MAX], line[256];
    snprintf(path, sizeof path, "/sys/class/block/%s/uevent", one->d_name);
    FILE *said = fopen(path, "r");
    while (said && !found && fgets(line, sizeof line, said)) {
      line[strcspn(line, "\n")] = 0;
      found = strncmp(line, "PARTNAME=", 9) == 0 && strcmp(line + 9, root + 10) == 0;
    }
    if (said) fclose(said);
    if (found) snprintf(device, size, "/dev/%s", one->d_name);
  }
  closedir(all);
  return found && access(device, F_OK) == 0;
}

int main(void) {
  char line[PATH_MAX], device[PATH_MAX], said[4096], again[4096];
  mkdir("/proc", 0755);
  mkdir("/dev", 0755);
  mkdir("/root", 0755);
  mkdir("/sys", 0755);
  if (mount("dev", "/dev", "devtmpfs", 0, NULL) != 0 && errno != EBUSY) fail("cannot mount", "/dev");
  int console = open("/dev/console", O_RDWR);
  for (int standard = 0; console >= 0 && standard < 3; standard++) dup2(console, standard);
  if (mount("proc", "/proc", "proc", 0, NULL) != 0) fail("cannot mount", "/proc");
  if (mount("sys", "/sys", "sysfs", 0, NULL) != 0) fail("cannot mount", "/sys");
  FILE *list = fopen("/modules", "r");
  if (!list) fail("cannot read", "/modules");
  while (fgets(line, sizeof line, list)) {
    line[strcspn(line, "\n")] = 0;
    load(line);
  }
  fclose(list);
  FILE *command = fopen("/proc/cmdline", "r");
  if (!command || !fgets(said, sizeof said, command)) fail("cannot read", "/proc/cmdline");
  fclose(command);
  strcpy(again, said);
  char *root = word(said, "root="), *init = word(again, "init=");
  for (int waited = 0; !there(root, device, sizeof device); waited++) {
    errno = ENODEV;
    if (waited == 6000) fail("there is no", root);
    usleep(10000);
  }
  if (mount(device, "/root", "ext4", 0, NULL) != 0) fail("cannot mount", root);
  umount("/proc");
  umount2("/sys", MNT_DETACH);
  umount2("/dev", MNT_DETACH);
  unlink("/modules");
  unlink("/init");
  if (chdir("/root") != 0 || mount(".", "/", NULL, MS_MOVE, NULL) != 0 || chroot(".") != 0 || chdir("/") != 0)
    fail("cannot enter", root);
  execl(init, init, (char *)NULL);
  fail("cannot run", init);
}
