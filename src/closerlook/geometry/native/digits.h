/* Double-double arithmetic: a number is the sum of two doubles, and has about 32 decimal digits. */
#ifndef CLOSERLOOK_DIGITS_H
#define CLOSERLOOK_DIGITS_H

#include <stdint.h>

typedef struct {
    double high, low;
} Digits;

Digits digits_add(Digits a, Digits b);
Digits digits_scale(Digits a, double b);
double digits_round(Digits a);

/* The inner product of a row of doubles with the vector high + low. */
Digits digits_dot(const double *row, const double *high, const double *low, int64_t d);

/* (high, low) += weight * row */
void digits_add_scaled(double *high, double *low, Digits weight, const double *row, int64_t d);

/* The squared length of the vector high + low. */
double digits_square(const double *high, const double *low, int64_t d);

#endif
