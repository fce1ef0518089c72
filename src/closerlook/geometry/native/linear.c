#include "linear.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define WIDE
#endif

WIDE double dot(const double *a, const double *b, int64_t d)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < d; i++) s += a[i] * b[i];
    return s;
}

WIDE double squared_distance(const double *a, const double *b, int64_t d)
{
    double s = 0;
#pragma omp simd reduction(+ : s)
    for (int64_t i = 0; i < d; i++) s += (a[i] - b[i]) * (a[i] - b[i]);
    return s;
}

WIDE void add_scaled(double *restrict y, double a, const double *restrict x, int64_t d)
{
#pragma omp simd
    for (int64_t i = 0; i < d; i++) y[i] += a * x[i];
}

WIDE void rotate(double *restrict a, double *restrict b, double c, double s, int64_t d)
{
#pragma omp simd
    for (int64_t i = 0; i < d; i++) {
        double t = c * a[i] + s * b[i];
        b[i] = c * b[i] - s * a[i];
        a[i] = t;
    }
}

/* Four rows at a time: each load of w serves four products. */
#define FOUR_ROWS(kind, r0, r1, r2, r3)               \
    kind s0 = 0, s1 = 0, s2 = 0, s3 = 0;            \
    _Pragma("omp simd reduction(+ : s0, s1, s2, s3)") \
    for (int64_t k = 0; k < d; k++) {                 \
        s0 += (r0)[k] * w[k];                         \
        s1 += (r1)[k] * w[k];                         \
        s2 += (r2)[k] * w[k];                         \
        s3 += (r3)[k] * w[k];                         \
    }                                                 \
    out[i] = s0, out[i + 1] = s1, out[i + 2] = s2, out[i + 3] = s3;

WIDE void project(const double *X, int64_t d, const int64_t *places, int64_t n, const double *w, double *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *r0 = X + (places ? places[i] : i) * d, *r1 = X + (places ? places[i + 1] : i + 1) * d;
        const double *r2 = X + (places ? places[i + 2] : i + 2) * d, *r3 = X + (places ? places[i + 3] : i + 3) * d;
        FOUR_ROWS(double, r0, r1, r2, r3)
    }
    for (; i < n; i++) out[i] = dot(X + (places ? places[i] : i) * d, w, d);
}

WIDE void project_single(const float *X, int64_t d, const int64_t *places, int64_t n, const float *w, float *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float *r0 = X + places[i] * d, *r1 = X + places[i + 1] * d;
        const float *r2 = X + places[i + 2] * d, *r3 = X + places[i + 3] * d;
        FOUR_ROWS(float, r0, r1, r2, r3)
    }
    for (; i < n; i++) {
        const float *row = X + places[i] * d;
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int64_t k = 0; k < d; k++) s += row[k] * w[k];
        out[i] = s;
    }
}

WIDE void project_rows(double *const *rows, int64_t d, int64_t n, const double *w, double *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        FOUR_ROWS(double, rows[i], rows[i + 1], rows[i + 2], rows[i + 3])
    }
    for (; i < n; i++) out[i] = dot(rows[i], w, d);
}

WIDE void combine_rows(double *const *rows, int64_t first, int64_t width, int64_t n, const double *weight,
                       double *restrict w)
{
    w += first;
    memset(w, 0, (size_t)width * sizeof *w);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *r0 = rows[i] + first, *r1 = rows[i + 1] + first, *r2 = rows[i + 2] + first, *r3 = rows[i + 3] + first;
        double a0 = weight[i], a1 = weight[i + 1], a2 = weight[i + 2], a3 = weight[i + 3];
#pragma omp simd
        for (int64_t k = 0; k < width; k++) w[k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k];
    }
    for (; i < n; i++) add_scaled(w, weight[i], rows[i] + first, width);
}

WIDE void lead_distances(const float *a, const float *rows, const int64_t *places, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float *b = rows + places[i] * LEADS;
        float s = 0;
#pragma omp simd reduction(+ : s)
        for (int k = 0; k < LEADS; k++) s += (a[k] - b[k]) * (a[k] - b[k]);
        out[i] = s;
    }
}
