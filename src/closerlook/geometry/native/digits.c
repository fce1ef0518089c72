/*
 * Sums are those of Knuth, products those of Dekker. A factor is cut by masking bits, so that its two parts multiply without
 * rounding; a compiler that fuses these products with additions computes the same numbers. The relative error of an operation
 * is below 2^-100.
 */
#include "digits.h"

#include <string.h>

/* a + b exactly: the rounded sum and its error */
static inline Digits sum_exactly(double a, double b)
{
    double s = a + b, t = s - a;
    return (Digits){s, (a - (s - t)) + (b - t)};
}

/* The upper half of the digits of a number. */
static inline double upper_half(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    bits &= ~(uint64_t)0x7ffffff;
    memcpy(&a, &bits, sizeof bits);
    return a;
}

/* a * b exactly, up to 2^-106 of the product */
static inline Digits multiply_exactly(double a, double b)
{
    double p = a * b, a1 = upper_half(a), b1 = upper_half(b), a2 = a - a1, b2 = b - b1;
    return (Digits){p, ((a1 * b1 - p) + a1 * b2 + a2 * b1) + a2 * b2};
}

Digits digits_add(Digits a, Digits b)
{
    Digits s = sum_exactly(a.high, b.high), t = sum_exactly(a.low, b.low);
    s = sum_exactly(s.high, s.low + t.high);
    return sum_exactly(s.high, s.low + t.low);
}

Digits digits_scale(Digits a, double b)
{
    Digits p = multiply_exactly(a.high, b);
    return sum_exactly(p.high, p.low + a.low * b);
}

double digits_round(Digits a) { return a.high + a.low; }

Digits digits_dot(const double *row, const double *high, const double *low, int64_t d)
{
    Digits sum = {0, 0};
    for (int64_t i = 0; i < d; i++) {
        Digits p = multiply_exactly(row[i], high[i]);
        p.low += row[i] * low[i];
        sum = digits_add(sum, p);
    }
    return sum;
}

void digits_add_scaled(double *high, double *low, Digits weight, const double *row, int64_t d)
{
    for (int64_t i = 0; i < d; i++) {
        Digits sum = digits_add((Digits){high[i], low[i]}, digits_scale(weight, row[i]));
        high[i] = sum.high, low[i] = sum.low;
    }
}

double digits_square(const double *high, const double *low, int64_t d)
{
    Digits sum = {0, 0};
    for (int64_t i = 0; i < d; i++) {
        Digits p = multiply_exactly(high[i], high[i]);
        p.low += 2 * high[i] * low[i];
        sum = digits_add(sum, p);
    }
    return digits_round(sum);
}
