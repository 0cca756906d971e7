/* What messages between ranks of MPI cost: latency and bandwidth between the first rank and the last, and allreduce of all.
 *
 *     mpirun -np 2 mpi-messages SECONDS
 *
 * Each of the four parts takes a quarter of the time. Latency is that of single round trips of 8 bytes, halved. Bandwidth is
 * that of 16 messages of 1 MiB at a time, from the announcement of the first to the answer to the last. Allreduce (sums of
 * doubles) is repeated in batches, which are long enough for the clock: at least 2 ms, and a thousand of its smallest steps;
 * the result is the median of the batches. One JSON object is printed, a number on a line.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL 8
#define LARGE (1 << 20)
#define WINDOW 16
#define WARMING 200         /* round trips that are not counted */
#define TRIPS 1000000       /* kept at most */
#define BATCHES 10000
#define FEWEST 5
#define BATCH_NS 2000000ULL
#define STEPS 1000          /* of the clock, in a batch at least */
#define REDUCED (64 * 1024) /* bytes of the large allreduce */
enum { MORE = 1, STOP = 2, ANSWER = 3 };

static int rank, last;
static double each[TRIPS];

static uint64_t now(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_MONOTONIC, &t)) {
        perror("mpi-messages: clock_gettime");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
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

static int by_size(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double middle(int count)
{
    qsort(each, (size_t)count, sizeof *each, by_size);
    return count % 2 ? each[count / 2] : (each[count / 2 - 1] + each[count / 2]) / 2;
}

/* Half the time of single round trips; the last rank answers until it is told to stop. */
static int round_trips(uint64_t time)
{
    char message[SMALL] = {0};
    int count = 0;
    if (rank == last) {
        MPI_Status status;
        for (;;) {
            MPI_Recv(message, SMALL, MPI_CHAR, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == STOP)
                return 0;
            MPI_Send(message, SMALL, MPI_CHAR, 0, ANSWER, MPI_COMM_WORLD);
        }
    }
    uint64_t end = now() + time;
    for (int trip = -WARMING; trip < FEWEST || (now() < end && count < TRIPS); trip++) {
        uint64_t start = now();
        MPI_Send(message, SMALL, MPI_CHAR, last, MORE, MPI_COMM_WORLD);
        MPI_Recv(message, SMALL, MPI_CHAR, last, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (trip >= 0)
            each[count++] = (double)(now() - start) / 2;
    }
    MPI_Send(message, SMALL, MPI_CHAR, last, STOP, MPI_COMM_WORLD);
    return count;
}

/* Bytes per second of windows of large messages to the last rank. */
static int windows(uint64_t time)
{
    static char data[WINDOW][LARGE];
    MPI_Request requests[WINDOW];
    char word = 0;
    int count = 0;
    if (rank == last) {
        MPI_Status status;
        for (;;) {
            MPI_Recv(&word, 1, MPI_CHAR, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == STOP)
                return 0;
            for (int i = 0; i < WINDOW; i++)
                MPI_Irecv(data[i], LARGE, MPI_CHAR, 0, ANSWER, MPI_COMM_WORLD, &requests[i]);
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
            MPI_Send(&word, 1, MPI_CHAR, 0, ANSWER, MPI_COMM_WORLD);
        }
    }
    uint64_t end = now() + time;
    memset(data, 1, sizeof data);
    for (int window = -2; window < FEWEST || (now() < end && count < TRIPS); window++) {
        uint64_t start = now();
        MPI_Send(&word, 1, MPI_CHAR, last, MORE, MPI_COMM_WORLD);
        for (int i = 0; i < WINDOW; i++)
            MPI_Isend(data[i], LARGE, MPI_CHAR, last, ANSWER, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        MPI_Recv(&word, 1, MPI_CHAR, last, ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (window >= 0)
            each[count++] = (double)WINDOW * LARGE * 1e9 / (double)(now() - start);
    }
    MPI_Send(&word, 1, MPI_CHAR, last, STOP, MPI_COMM_WORLD);
    return count;
}

static uint64_t reductions(long n, int bytes)
{
    static double mine[REDUCED / sizeof(double)], sum[REDUCED / sizeof(double)];
    MPI_Barrier(MPI_COMM_WORLD);
    uint64_t start = now();
    for (long i = 0; i < n; i++)
        MPI_Allreduce(mine, sum, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return now() - start;
}

/* The time of one allreduce in ns, by the first rank's clock; `n` is how many a batch has. */
static int allreduces(uint64_t time, int bytes, uint64_t step, long *n)
{
    uint64_t wanted = step * STEPS > BATCH_NS ? step * STEPS : BATCH_NS, taken, end = 0;
    int count = 0, go = 1;
    for (*n = 1; go; *n *= 2) { /* the shortest of five, so that an interruption does not make a batch look long enough */
        taken = UINT64_MAX;
        for (int i = 0; i < 5; i++) {
            uint64_t once = reductions(*n, bytes);
            taken = once < taken ? once : taken;
        }
        go = taken < wanted;
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!go)
            break;
    }
    end = now() + time;
    for (go = 1; go;) {
        each[count++] = (double)reductions(*n, bytes) / (double)*n;
        go = count < FEWEST || (count < BATCHES && now() < end);
        MPI_Bcast(&go, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    return count;
}

static void print_allreduce(const char *name, int bytes, int count, long n, const char *after)
{
    double median = middle(count);
    printf("\"%s\": {\n\"bytes\": %d,\n\"median_ns\": %.1f,\n\"least_ns\": %.1f,\n\"most_ns\": %.1f,\n\"batches\": %d,\n"
           "\"operations\": %ld\n }%s\n", name, bytes, median, each[0], each[count - 1], count, n, after);
}

int main(int argc, char **argv)
{
    char *rest = "", library[MPI_MAX_LIBRARY_VERSION_STRING], *comma;
    int length, ranks, count;
    long n;
    double seconds = argc == 2 ? strtod(argv[1], &rest) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    last = ranks - 1;
    if (argc != 2 || *rest || !(seconds > 0 && seconds < 1000) || ranks < 2) {
        if (rank == 0)
            fprintf(stderr, "usage: mpirun -np 2 mpi-messages SECONDS, with two ranks or more\n");
        MPI_Finalize();
        return 2;
    }
    MPI_Get_library_version(library, &length);
    if ((comma = strpbrk(library, ",\n\"")))
        *comma = 0;
    uint64_t step = clock_step(), time = (uint64_t)(seconds * 1e9 / 4);
    static char said[500];
    count = rank == 0 || rank == last ? round_trips(time) : 0;
    if (rank == 0) {
        middle(count);
        snprintf(said, sizeof said, "\"latency\": {\n\"bytes\": %d,\n\"p50_ns\": %.1f,\n\"p99_ns\": %.1f,\n\"most_ns\": %.1f,\n"
                 "\"round_trips\": %d\n },", SMALL, each[(count + 1) / 2 - 1], each[(count * 99LL + 99) / 100 - 1],
                 each[count - 1], count);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    count = rank == 0 || rank == last ? windows(time) : 0;
    if (rank == 0) {
        double median = middle(count);
        printf("{\n\"mpi-messages\": 1,\n\"library\": \"%s\",\n\"ranks\": %d,\n\"clock_step_ns\": %llu,\n%s\n", library, ranks,
               (unsigned long long)step, said);
        printf("\"bandwidth\": {\n\"bytes\": %d,\n\"window\": %d,\n\"median_byte_s\": %.0f,\n\"least_byte_s\": %.0f,\n"
               "\"most_byte_s\": %.0f,\n\"windows\": %d\n },\n", LARGE, WINDOW, median, each[0], each[count - 1], count);
    }
    count = allreduces(time, SMALL, step, &n);
    if (rank == 0)
        print_allreduce("allreduce", SMALL, count, n, ",");
    count = allreduces(time, REDUCED, step, &n);
    if (rank == 0)
        print_allreduce("allreduce_large", REDUCED, count, n, "\n}");
    int failed = fflush(stdout) || ferror(stdout);
    MPI_Finalize();
    return failed ? 1 : 0;
}
