/* What short paths through the kernel cost, in ns, and how late a sleeping process wakes up.
 *
 *     kernel-paths SECONDS PATH...      getpid read mmap page_fault pipe_switch futex_switch fork_exec
 *     kernel-paths SECONDS wakeup       sleeps of 1 ms, and how long after its time each ended
 *
 * Each path is repeated in batches. A batch is long enough for the clock: at least 2 ms, and a thousand times the
 * smallest step that the clock was seen to make. The result is the median of the batches. Everything runs on one CPU, the
 * first that is allowed, so that a switch is a switch and not a message to another CPU. One JSON object is printed, a number
 * on a line. Nothing is printed before all has been measured.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH_NS 2000000ULL
#define STEPS 1000          /* of the clock, in a batch at least */
#define BATCHES 2000        /* kept at most */
#define FEWEST 5
#define PAGES 256           /* touched in one operation of page_fault */
#define MAPPED (64 * 1024)
#define PERIOD_NS 1000000ULL
#define SLEEPS 100000

static int zero, ping[2], pong[2];
static uint32_t *word;      /* shared with the partner of futex_switch */
static char *self;
static long page;

static void fail(const char *what)
{
    fprintf(stderr, "kernel-paths: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t now(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t))
        fail("clock_gettime");
    return (uint64_t)t.tv_sec * 1000000000ULL + (uint64_t)t.tv_nsec;
}

/* The smallest step between two readings that differ, of a thousand. */
static uint64_t clock_step(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = now(), after;
        while ((after = now()) == before)
            ;
        if (after - before < least)
            least = after - before;
    }
    return least;
}

static uint64_t getpids(uint64_t n)
{
    uint64_t start = now();
    for (uint64_t i = 0; i < n; i++)
        syscall(SYS_getpid);
    return now() - start;
}

static uint64_t reads(uint64_t n)
{
    char byte;
    uint64_t start = now();
    for (uint64_t i = 0; i < n; i++)
        if (read(zero, &byte, 1) != 1)
            fail("read of /dev/zero");
    return now() - start;
}

static uint64_t mmaps(uint64_t n)
{
    uint64_t start = now();
    for (uint64_t i = 0; i < n; i++) {
        void *place = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED || munmap(place, MAPPED))
            fail("mmap");
    }
    return now() - start;
}

/* First touches of small pages; mapping and unmapping them is not counted. */
static uint64_t page_faults(uint64_t n)
{
    uint64_t taken = 0;
    for (uint64_t done = 0; done < n; done += PAGES) {
        char *place = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (place == MAP_FAILED)
            fail("mmap");
        madvise(place, PAGES * page, MADV_NOHUGEPAGE); /* where the kernel has none it cannot refuse */
        uint64_t start = now();
        for (long at = 0; at < PAGES; at++)
            ((volatile char *)place)[at * page] = 1;
        taken += now() - start;
        munmap(place, PAGES * page);
    }
    return taken;
}

static uint64_t pipe_switches(uint64_t n)
{
    char byte = 0;
    uint64_t start = now();
    for (uint64_t i = 0; i < n; i += 2)
        if (write(ping[1], &byte, 1) != 1 || read(pong[0], &byte, 1) != 1)
            fail("pipe");
    return now() - start;
}

static void pipe_partner(void)
{
    char byte;
    while (read(ping[0], &byte, 1) == 1)
        if (write(pong[1], &byte, 1) != 1)
            break;
    _exit(0);
}

/* Waits until the word is another one than `old`. */
static void futex_wait(uint32_t old)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == old)
        if (syscall(SYS_futex, word, FUTEX_WAIT, old, NULL, NULL, 0) && errno != EAGAIN && errno != EINTR)
            fail("futex");
}

static void futex_set(uint32_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
    if (syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0) < 0)
        fail("futex");
}

static uint64_t futex_switches(uint64_t n)
{
    uint64_t start = now();
    for (uint64_t i = 0; i < n; i += 2) {
        futex_set(1);
        futex_wait(1);
    }
    return now() - start;
}

static void futex_partner(void)
{
    for (;;) {
        futex_wait(0);
        futex_set(0);
    }
}

static uint64_t fork_execs(uint64_t n)
{
    uint64_t start = now();
    for (uint64_t i = 0; i < n; i++) {
        int status;
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            execl(self, self, "end", (char *)NULL);
            _exit(127);
        }
        if (waitpid(child, &status, 0) != child || status != 0)
            fail("fork and exec of itself");
    }
    return now() - start;
}

static const struct path {
    const char *name;
    uint64_t (*run)(uint64_t n);
    uint64_t least;         /* operations that belong together */
    void (*partner)(void);
} PATHS[] = {
    {"getpid", getpids, 1, NULL},
    {"read", reads, 1, NULL},
    {"mmap", mmaps, 1, NULL},
    {"page_fault", page_faults, PAGES, NULL},
    {"pipe_switch", pipe_switches, 2, pipe_partner},
    {"futex_switch", futex_switches, 2, futex_partner},
    {"fork_exec", fork_execs, 1, NULL},
};

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void measure(const struct path *path, double seconds, uint64_t step, char *line, size_t size)
{
    static double each[BATCHES];
    uint64_t wanted = step * STEPS > BATCH_NS ? step * STEPS : BATCH_NS, n = path->least, taken;
    pid_t partner = path->partner ? fork() : 0;
    if (path->partner && partner == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        path->partner();
    }
    if (partner < 0)
        fail("fork");
    do { /* the shortest of three, so that an interruption does not make a batch look long enough */
        taken = UINT64_MAX;
        for (int i = 0; i < 3; i++) {
            uint64_t once = path->run(n);
            taken = once < taken ? once : taken;
        }
    } while (taken < wanted && (n *= 2));
    uint64_t end = now() + (uint64_t)(seconds * 1e9);
    int count = 0;
    while (count < FEWEST || (count < BATCHES && now() < end))
        each[count++] = (double)path->run(n) / (double)n;
    if (partner) {
        kill(partner, SIGKILL);
        waitpid(partner, NULL, 0);
    }
    qsort(each, (size_t)count, sizeof *each, by_size);
    double median = count % 2 ? each[count / 2] : (each[count / 2 - 1] + each[count / 2]) / 2;
    snprintf(line, size, "\"%s\": {\n\"median_ns\": %.3f,\n\"least_ns\": %.3f,\n\"most_ns\": %.3f,\n\"batches\": %d,\n\"operations\": %llu\n }",
             path->name, median, each[0], each[count - 1], count, (unsigned long long)n);
}

/* How late sleeps of a millisecond end: quantiles are the smallest lateness that so many are not above. */
static void wakeups(double seconds, char *line, size_t size)
{
    static double late[SLEEPS];
    int count = 0;
    uint64_t due = now() + PERIOD_NS, end = due + (uint64_t)(seconds * 1e9);
    while (due < end && count < SLEEPS) {
        struct timespec until = {(time_t)(due / 1000000000ULL), (long)(due % 1000000000ULL)};
        int refused = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        if (refused) {
            errno = refused;
            fail("clock_nanosleep");
        }
        uint64_t woken = now();
        if (woken < due) {
            fprintf(stderr, "kernel-paths: it woke up before its time: the clock is not one\n");
            exit(1);
        }
        late[count++] = (double)(woken - due);
        due += PERIOD_NS;
        if (due < woken) /* sleeps that were missed are one late one, not many */
            due += (woken - due + PERIOD_NS - 1) / PERIOD_NS * PERIOD_NS;
    }
    if (count < 1000) {
        fprintf(stderr, "kernel-paths: %d sleeps are too few for a quantile of 99.9 %%\n", count);
        exit(1);
    }
    qsort(late, (size_t)count, sizeof *late, by_size);
    snprintf(line, size, "\"wakeup\": {\n\"p50_ns\": %.0f,\n\"p99_ns\": %.0f,\n\"p99.9_ns\": %.0f,\n\"most_ns\": %.0f,\n\"sleeps\": %d,\n\"period_ns\": %llu\n }",
             late[(count + 1) / 2 - 1], late[(int)((count * 99LL + 99) / 100) - 1],
             late[(int)((count * 999LL + 999) / 1000) - 1], late[count - 1], count, PERIOD_NS);
}

static const char *policy(void)
{
    switch (sched_getscheduler(0)) {
    case SCHED_OTHER: return "SCHED_OTHER";
    case SCHED_FIFO: return "SCHED_FIFO";
    case SCHED_RR: return "SCHED_RR";
    case SCHED_BATCH: return "SCHED_BATCH";
    case SCHED_IDLE: return "SCHED_IDLE";
    default: return "unknown";
    }
}

/* Stay on the first CPU that is allowed; whether that worked. */
static int stay(void)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(0, sizeof allowed, &allowed))
        return 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed)) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            return sched_setaffinity(0, sizeof one, &one) == 0;
        }
    return 0;
}

int main(int argc, char **argv)
{
    static char lines[16][400];
    char *rest;
    if (argc == 2 && strcmp(argv[1], "end") == 0)
        return 0;
    double seconds = argc > 2 ? strtod(argv[1], &rest) : 0;
    if (argc < 3 || argc > 18 || *rest || !(seconds > 0 && seconds < 1000)) {
        fprintf(stderr, "usage: kernel-paths SECONDS PATH...\n");
        return 2;
    }
    self = argv[0];
    page = sysconf(_SC_PAGESIZE);
    zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    if (zero < 0)
        fail("/dev/zero");
    word = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (word == MAP_FAILED || pipe2(ping, O_CLOEXEC) || pipe2(pong, O_CLOEXEC))
        fail("a pipe");
    int pinned = stay();
    uint64_t step = clock_step();
    double share = seconds / (argc - 2);
    for (int i = 2; i < argc; i++) {
        const struct path *found = NULL;
        for (size_t at = 0; at < sizeof PATHS / sizeof *PATHS; at++)
            if (strcmp(argv[i], PATHS[at].name) == 0)
                found = &PATHS[at];
        if (found)
            measure(found, share, step, lines[i - 2], sizeof *lines);
        else if (strcmp(argv[i], "wakeup") == 0)
            wakeups(share, lines[i - 2], sizeof *lines);
        else {
            fprintf(stderr, "kernel-paths: there is no path %s\n", argv[i]);
            return 2;
        }
    }
    printf("{\n\"kernel-paths\": 1,\n\"compiler\": \"%s\",\n\"policy\": \"%s\",\n\"timer_slack_ns\": %d,\n", __VERSION__,
           policy(), prctl(PR_GET_TIMERSLACK));
    printf("\"pinned\": %s,\n\"clock_step_ns\": %llu,\n\"paths\": {\n", pinned ? "true" : "false", (unsigned long long)step);
    for (int i = 2; i < argc; i++)
        printf("%s%s\n", lines[i - 2], i + 1 < argc ? "," : "");
    printf(" }\n}\n");
    return fflush(stdout) || ferror(stdout) ? 1 : 0;
}
