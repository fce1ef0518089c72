/* The factor R of a Gram matrix R'R, upper triangular, in rows `cap` apart; of k points. */
#ifndef CLOSERLOOK_FACTOR_H
#define CLOSERLOOK_FACTOR_H

#include <stdint.h>

void factor_forward(const double *R, int64_t cap, int64_t k, double *t);  /* t <- R'^-1 t */
void factor_backward(const double *R, int64_t cap, int64_t k, double *t); /* t <- R^-1 t */

/* Take out the point in column j; y and z (NULL: none) are right-hand sides R'^-1 e, and are turned with it. */
void factor_drop(double *R, int64_t cap, int64_t k, int64_t j, double *y, double *z);

#endif
