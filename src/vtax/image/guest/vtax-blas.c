/* vtax-blas: which kernel OpenBLAS has really chosen for this CPU, and how it was built. One line each. */
#include <stdio.h>

char *openblas_get_corename(void);
char *openblas_get_config(void);

int main(void) {
  printf("%s\n%s\n", openblas_get_corename(), openblas_get_config());
  return 0;
}
