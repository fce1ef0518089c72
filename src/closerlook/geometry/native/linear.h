/* Dense inner loops as function pointers, chosen for the processor when the library is loaded; see linear.c. */
#ifndef CLOSERLOOK_LINEAR_H
#define CLOSERLOOK_LINEAR_H

#include <stdint.h>

#include "engine.h"

extern double (*dot)(const double *a, const double *b, int64_t d);
extern double (*squared_distance)(const double *a, const double *b, int64_t d);
extern float (*squared_single)(const float *a, const float *b, int64_t d); /* the same in single precision */
extern void (*add_scaled)(double *y, double a, const double *x, int64_t d); /* y += a x */

/* y -= a[0] row 0 + ... + a[3] row 3, for rows that are `stride` numbers apart. */
extern void (*subtract_four)(double *y, const double *a, const double *rows, int64_t stride, int64_t d);

extern void (*rotate)(double *a, double *b, double c, double s, int64_t d); /* (a, b) <- (c a + s b, c b - s a) */

/* out[i] = rows[i] . w for n rows given by their indices in X (rows 0..n-1 if places is NULL). */
extern void (*project)(const double *X, int64_t d, const int64_t *places, int64_t n, const double *w, double *out);

/* The same in single precision. */
extern void (*project_single)(const float *X, int64_t d, const int64_t *places, int64_t n, const float *w, float *out);

/* out[i] = rows[i] . w for n rows given by pointers. */
extern void (*project_rows)(double *const *rows, int64_t d, int64_t n, const double *w, double *out);

/* The same for m vectors w; the results for each are `stride` numbers after those for the one before. */
extern void (*project_on_several)(double *const *rows, int64_t d, int64_t n, double *const *w, int64_t m, double *out,
                                  int64_t stride);

/* w = sum of weight[i] rows[i] over n rows, in `width` columns from `first` on. */
extern void (*combine_rows)(double *const *rows, int64_t first, int64_t width, int64_t n, const double *weight, double *w);

/* The same in single precision. */
extern float (*dot_single)(const float *a, const float *b, int64_t d);
extern void (*subtract_four_single)(float *y, const float *a, const float *rows, int64_t stride, int64_t d);
extern void (*rotate_single)(float *a, float *b, float c, float s, int64_t d);
extern void (*project_rows_single)(float *const *rows, int64_t d, int64_t n, const float *w, float *out);
extern void (*project_on_several_single)(float *const *rows, int64_t d, int64_t n, float *const *w, int64_t m, float *out,
                                         int64_t stride);
extern void (*combine_rows_single)(float *const *rows, int64_t first, int64_t width, int64_t n, const float *weight, float *w);

/* out[i] = squared distance of a to row places[i] (row i if places is NULL), for short rows of LEADS numbers. */
extern void (*lead_distances)(const float *a, const float *rows, const int64_t *places, int64_t n, float *out);

#endif
