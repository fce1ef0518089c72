/* The upper triangular factor R of the Gram matrix R'R of k points; rows are `cap` numbers apart. */
#ifndef CLOSERLOOK_FACTOR_H
#define CLOSERLOOK_FACTOR_H

#include <stdint.h>

void factor_forward(const double *R, int64_t cap, int64_t k, double *t);  /* t <- R'^-1 t */
void factor_backward(const double *R, int64_t cap, int64_t k, double *t); /* t <- R^-1 t */

/* Remove the point in column j; y and z (or NULL) are right-hand sides R'^-1 e, and are rotated with it. */
void factor_drop(double *R, int64_t cap, int64_t k, int64_t j, double *y, double *z);

#endif
