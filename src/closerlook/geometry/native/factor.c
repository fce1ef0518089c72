#include "factor.h"

#include <math.h>
#include <string.h>

#include "linear.h"

/* Four unknowns at a time: each pass over the rest of t serves four rows. */
void factor_forward(const double *R, int64_t cap, int64_t k, double *t)
{
    for (int64_t i = 0; i < k; i += 4) {
        int64_t n = k - i < 4 ? k - i : 4;
        for (int64_t j = i; j < i + n; j++) {
            const double *row = R + j * cap;
            t[j] /= row[j];
            for (int64_t c = j + 1; c < i + n; c++) t[c] -= t[j] * row[c];
        }
        if (n == 4) subtract_four(t + i + 4, t + i, R + i * cap + i + 4, cap, k - i - 4);
    }
}

/* Likewise from the end; the first rows that do not make four are taken one at a time. */
void factor_backward(const double *R, int64_t cap, int64_t k, double *t)
{
    for (int64_t end = k, n; end > 0; end -= n) {
        n = end < 4 ? 1 : 4;
        double known[4] = {0}, *rows[4];
        for (int64_t j = 0; j < n; j++) rows[j] = (double *)R + (end - n + j) * cap + end;
        project_rows(rows, k - end, n, t + end, known);
        for (int64_t i = end - 1; i >= end - n; i--) {
            const double *row = R + i * cap;
            double sum = known[i - end + n];
            for (int64_t c = i + 1; c < end; c++) sum += row[c] * t[c];
            t[i] = (t[i] - sum) / row[i];
        }
    }
}

void factor_drop(double *R, int64_t cap, int64_t k, int64_t j, double *y, double *z)
{
    for (int64_t i = 0; i < k; i++) {
        int64_t from = i > j + 1 ? i : j + 1; /* entries below the diagonal are not stored */
        memmove(R + i * cap + from - 1, R + i * cap + from, sizeof(double) * (size_t)(k - from));
    }
    for (int64_t i = j; i < k - 1; i++) {
        double *a = R + i * cap, *b = a + cap;
        double h = hypot(a[i], b[i]), c = a[i] / h, s = b[i] / h;
        a[i] = h;
        rotate(a + i + 1, b + i + 1, c, s, k - 2 - i);
        rotate(y + i, y + i + 1, c, s, 1);
        if (z) rotate(z + i, z + i + 1, c, s, 1);
    }
}
