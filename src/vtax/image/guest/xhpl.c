/* xhpl: High-Performance Linpack alone, from the HPL that hpcc carries.
 *
 * Reads hpccinf.txt and writes hpccoutf.txt, as HPL does inside hpcc. HPL's reader asks for defaults when it cannot
 * read its input; a run with a problem that nobody asked for is worse than none, so that ends the program.
 */
#include <hpcc.h>

int HPCC_Defaults(HPL_T_test *test, int *ns, int *n, int *nbs, int *nb, HPL_T_ORDER *order, int *npqs, int *p, int *q,
                  int *npfs, HPL_T_FACT *pf, int *nbms, int *nbm, int *ndvs, int *ndv, int *nrfs, HPL_T_FACT *rf,
                  int *ntps, HPL_T_TOP *tp, int *ndhs, int *dh, HPL_T_SWAP *swap, int *tswap, int *l1notran,
                  int *unotran, int *equil, int *align, MPI_Comm comm) {
  fprintf(stderr, "xhpl: hpccinf.txt in the working directory is missing or not usable\n");
  MPI_Abort(comm, 2);
  return 1;
}

int main(int argc, char **argv) {
  HPL_RuntimeData best = {0};
  int failure = 0;
  MPI_Init(&argc, &argv);
  HPL_main(argc, argv, &best, &failure);
  MPI_Finalize();
  return failure ? 1 : 0;
}
