/* stream ELEMENTS REPETITIONS THREADS: the STREAM of HPC Challenge alone, in one process, into stream.txt.
 *
 * Thread t is pinned to the t-th CPU that the process may use, whatever the environment says. More threads than CPUs are
 * an error: two threads on one CPU measure the scheduler.
 *
 * STREAM is Copyright 1991-2013: John D. McCalpin. HPC Challenge modified its code, so by item 3b of the licence results
 * of this program are "based on a variant of the STREAM benchmark code", which its output says first. The kernels and the
 * checks are as they are there. What they take from hpcc and MPI is here: one process needs no messages.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HPCC_H 1 /* instead of hpcc.h */
#define HPCC_XMALLOC(type, count) ((type *)aligned(sizeof(type) * (size_t)(count)))
#define HPCC_free free
#define Mmin(x, y) ((x) < (y) ? (x) : (y))
#define Mmax(x, y) ((x) > (y) ? (x) : (y))

typedef struct {
  const char *outFname;
  int StreamVectorSize, StreamThreads;
} HPCC_Params;
typedef int MPI_Comm;

static int elements, repetitions;

static void *aligned(size_t bytes) {
  void *place = NULL;
  return posix_memalign(&place, 64, bytes) == 0 ? place : NULL;
}

static int HPCC_LocalVectorSize(HPCC_Params *params, int vectors, size_t size, int pow2) { return elements; }

static double MPI_Wtime(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#define MPI_Comm_size(comm, size) (*(size) = 1)
#define MPI_Comm_rank(comm, rank) (*(rank) = 0)
#define MPI_Barrier(comm) ((void)0) /* each parallel loop ends with one of its threads */
#define MPI_Allreduce(from, to, count, type, operation, comm) memcpy(to, from, sizeof(double) * (size_t)(count))
#define MPI_Gather(from, count, type, to, count_to, type_to, root, comm) \
  memcpy(to, from, sizeof(double) * (size_t)(count))
#define MPI_Abort(comm, code) exit(code)

#include "STREAM/stream.c" /* with NTIMES as `repetitions`, see build.sh */

static int whole(const char *text, int least) {
  char *end;
  long value = strtol(text, &end, 10);
  return *text && !*end && value >= least && value <= INT_MAX ? (int)value : 0;
}

/* Start the threads of all loops, each on its own CPU. Returns how many could not be pinned. */
static int pin(int threads) {
  cpu_set_t allowed;
  int failed = 0;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < threads) return threads;
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
#pragma omp parallel reduction(+ : failed)
  {
    cpu_set_t mine;
    int cpu = 0;
    for (int left = omp_get_thread_num(); !CPU_ISSET(cpu, &allowed) || left-- > 0; cpu++);
    CPU_ZERO(&mine);
    CPU_SET(cpu, &mine);
    failed += sched_setaffinity(0, sizeof mine, &mine) != 0;
  }
  return failed;
}

int main(int argc, char **argv) {
  HPCC_Params params = {"stream.txt", 0, 0};
  double copy, scale, add, triad;
  int failure = 0, threads = argc == 4 ? whole(argv[3], 1) : 0;
  elements = argc == 4 ? whole(argv[1], 1) : 0;
  repetitions = argc == 4 ? whole(argv[2], 2) : 0;
  if (!elements || !repetitions || !threads) {
    fprintf(stderr, "usage: stream ELEMENTS REPETITIONS (at least 2) THREADS\n");
    return 2;
  }
  if (pin(threads) != 0) {
    fprintf(stderr, "stream: %d threads cannot each have a CPU of their own here\n", threads);
    return 3;
  }
  FILE *out = fopen(params.outFname, "w");
  if (!out || fprintf(out, HLINE "STREAM of HPC Challenge " VTAX_HPCC
                                 ": based on a variant of the STREAM benchmark code\n") < 0 || fclose(out) != 0) {
    perror(params.outFname);
    return 3;
  }
  if (HPCC_Stream(&params, 1, 0, 0, &copy, &scale, &add, &triad, &failure) != 0) {
    fprintf(stderr, "stream: no memory for three arrays of %d elements\n", elements);
    return 3;
  }
  return failure;
}
