/* vtax-rank THREADS PROGRAM [ARG...]: pins this MPI rank to its own CPUs, then becomes PROGRAM.
 *
 * Local rank r of a node gets the r-th group of THREADS CPUs out of those that the node may use. Open MPI's own binding
 * takes one node's CPU numbers for all nodes, which fails where cpusets differ. More ranks than groups is an error:
 * two ranks on one CPU measure each other. VTAX_OVERCOMMIT=1 allows it (the groups are then taken again in turn).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
  const char *by_mpirun = getenv("OMPI_COMM_WORLD_LOCAL_RANK"), *by_srun = getenv("SLURM_LOCALID");
  const char *rank_text = by_mpirun ? by_mpirun : by_srun;
  int threads = argc > 1 ? atoi(argv[1]) : 0, rank = rank_text ? atoi(rank_text) : 0;
  cpu_set_t allowed, mine;
  if (argc < 3 || threads < 1) {
    fprintf(stderr, "usage: vtax-rank THREADS PROGRAM [ARG...]\n");
    return 2;
  }
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    perror("vtax-rank: sched_getaffinity");
    return 3;
  }
  int groups = CPU_COUNT(&allowed) / threads;
  if (groups < 1 || (rank >= groups && !getenv("VTAX_OVERCOMMIT"))) {
    fprintf(stderr, "vtax-rank: local rank %d wants %d CPUs of its own, the node has %d\n", rank, threads,
            CPU_COUNT(&allowed));
    return 3;
  }
  int first = (rank % groups) * threads, seen = 0;
  CPU_ZERO(&mine);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (seen >= first && seen < first + threads) CPU_SET(cpu, &mine);
    seen++;
  }
  if (sched_setaffinity(0, sizeof mine, &mine) != 0) {
    perror("vtax-rank: sched_setaffinity");
    return 3;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
