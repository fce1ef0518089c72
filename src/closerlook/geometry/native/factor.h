/* The upper triangular factor R of the Gram matrix R'R of k points; rows are `cap` numbers apart. */
#ifndef CLOSERLOOK_FACTOR_H
#define CLOSERLOOK_FACTOR_H

#include <stdint.h>

void factor_forward(const double *R, int64_t cap, int64_t k, double *t);  /* t <- R'^-1 t */
/* The same for m vectors that are `stride` numbers apart. */
void factor_forward_several(const double *R, int64_t cap, int64_t k, double *t, int64_t m, int64_t stride);
void factor_backward(const double *R, int64_t cap, int64_t k, double *t); /* t <- R^-1 t */

/* Remove the point in column j; y and z (or NULL) are right-hand sides R'^-1 e, and are rotated with it. */
void factor_drop(double *R, int64_t cap, int64_t k, int64_t j, double *y, double *z);

/* The same in single precision. */
void factor_forward_single(const float *R, int64_t cap, int64_t k, float *t);
void factor_forward_several_single(const float *R, int64_t cap, int64_t k, float *t, int64_t m, int64_t stride);
void factor_backward_single(const float *R, int64_t cap, int64_t k, float *t);
void factor_drop_single(float *R, int64_t cap, int64_t k, int64_t j, float *y, float *z);

#endif
