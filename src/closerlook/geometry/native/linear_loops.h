/*
 * The functions of linear.h, included once for each set of instructions. FOR_THIS gives them distinct names; BYTES is the
 * width of the vectors.
 */
typedef double FOR_THIS(Doubles) __attribute__((vector_size(BYTES), aligned(8), may_alias));
typedef float FOR_THIS(Floats) __attribute__((vector_size(BYTES), aligned(4), may_alias));

#define D FOR_THIS(Doubles)
#define F FOR_THIS(Floats)
#define LANES ((int64_t)(BYTES / sizeof(double)))
#define SINGLE_LANES ((int64_t)(BYTES / sizeof(float)))
#define AT(kind, p) (*(const kind *)(p))

/* Sums of all lanes, by halves: fewer instructions, which wait for each other less, than lane by lane. */
static inline double FOR_THIS(sum)(D v)
{
    TwoDoubles part[BYTES / 16];
    memcpy(part, &v, BYTES);
    if (BYTES == 32) part[0] += part[BYTES / 16 - 1];
    return part[0][0] + part[0][1];
}

static inline float FOR_THIS(sum_single)(F v)
{
    FourFloats part[BYTES / 16];
    memcpy(part, &v, BYTES);
    if (BYTES == 32) part[0] += part[BYTES / 16 - 1];
    return (part[0][0] + part[0][2]) + (part[0][1] + part[0][3]);
}

static double FOR_THIS(dot)(const double *a, const double *b, int64_t d)
{
    D s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}; /* four sums: an addition need not wait for the one before */
    int64_t k = 0;
    for (; k + 4 * LANES <= d; k += 4 * LANES) {
        s0 += AT(D, a + k) * AT(D, b + k);
        s1 += AT(D, a + k + LANES) * AT(D, b + k + LANES);
        s2 += AT(D, a + k + 2 * LANES) * AT(D, b + k + 2 * LANES);
        s3 += AT(D, a + k + 3 * LANES) * AT(D, b + k + 3 * LANES);
    }
    for (; k + LANES <= d; k += LANES) s0 += AT(D, a + k) * AT(D, b + k);
    double s = FOR_THIS(sum)((s0 + s1) + (s2 + s3));
    for (; k < d; k++) s += a[k] * b[k];
    return s;
}

static double FOR_THIS(squared_distance)(const double *a, const double *b, int64_t d)
{
    D s0 = {0}, s1 = {0};
    int64_t k = 0;
    for (; k + 2 * LANES <= d; k += 2 * LANES) {
        D x = AT(D, a + k) - AT(D, b + k), y = AT(D, a + k + LANES) - AT(D, b + k + LANES);
        s0 += x * x;
        s1 += y * y;
    }
    double s = FOR_THIS(sum)(s0 + s1);
    for (; k < d; k++) s += (a[k] - b[k]) * (a[k] - b[k]);
    return s;
}

static void FOR_THIS(add_scaled)(double *restrict y, double a, const double *restrict x, int64_t d)
{
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) *(D *)(y + k) += a * AT(D, x + k);
    for (; k < d; k++) y[k] += a * x[k];
}

static void FOR_THIS(subtract_four)(double *restrict y, const double *restrict a, const double *restrict rows, int64_t stride,
                                    int64_t d)
{
    const double *r0 = rows, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
    double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        D s = AT(D, y + k) - a0 * AT(D, r0 + k), u = a1 * AT(D, r1 + k);
        s -= a2 * AT(D, r2 + k), u += a3 * AT(D, r3 + k);
        *(D *)(y + k) = s - u;
    }
    for (; k < d; k++) y[k] -= a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k];
}

static void FOR_THIS(rotate)(double *restrict a, double *restrict b, double c, double s, int64_t d)
{
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        D x = AT(D, a + k), y = AT(D, b + k);
        *(D *)(a + k) = c * x + s * y;
        *(D *)(b + k) = c * y - s * x;
    }
    for (; k < d; k++) {
        double x = a[k], y = b[k];
        a[k] = c * x + s * y;
        b[k] = c * y - s * x;
    }
}

/* Four rows at a time: each load of w serves four products. */
static inline void FOR_THIS(four_rows)(const double *r0, const double *r1, const double *r2, const double *r3,
                                       const double *w, int64_t d, double *out)
{
    D s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        D x = AT(D, w + k);
        s0 += AT(D, r0 + k) * x;
        s1 += AT(D, r1 + k) * x;
        s2 += AT(D, r2 + k) * x;
        s3 += AT(D, r3 + k) * x;
    }
    out[0] = FOR_THIS(sum)(s0), out[1] = FOR_THIS(sum)(s1), out[2] = FOR_THIS(sum)(s2), out[3] = FOR_THIS(sum)(s3);
    for (; k < d; k++) out[0] += r0[k] * w[k], out[1] += r1[k] * w[k], out[2] += r2[k] * w[k], out[3] += r3[k] * w[k];
}

static void FOR_THIS(project)(const double *X, int64_t d, const int64_t *places, int64_t n, const double *w, double *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *r0 = X + (places ? places[i] : i) * d, *r1 = X + (places ? places[i + 1] : i + 1) * d;
        const double *r2 = X + (places ? places[i + 2] : i + 2) * d, *r3 = X + (places ? places[i + 3] : i + 3) * d;
        FOR_THIS(four_rows)(r0, r1, r2, r3, w, d, out + i);
    }
    for (; i < n; i++) out[i] = FOR_THIS(dot)(X + (places ? places[i] : i) * d, w, d);
}

static void FOR_THIS(project_rows)(double *const *rows, int64_t d, int64_t n, const double *w, double *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) FOR_THIS(four_rows)(rows[i], rows[i + 1], rows[i + 2], rows[i + 3], w, d, out + i);
    for (; i < n; i++) out[i] = FOR_THIS(dot)(rows[i], w, d);
}

/* Two rows and m vectors at a time: each load serves several products. */
static inline __attribute__((always_inline)) void FOR_THIS(two_rows)(const double *r0, const double *r1, int64_t d,
                                                                     double *const *w, int m, double *o0, double *o1,
                                                                     int64_t stride)
{
    D s0[3] = {{0}, {0}, {0}}, s1[3] = {{0}, {0}, {0}};
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        D x0 = AT(D, r0 + k), x1 = AT(D, r1 + k);
        for (int j = 0; j < m; j++) s0[j] += x0 * AT(D, w[j] + k), s1[j] += x1 * AT(D, w[j] + k);
    }
    for (int j = 0; j < m; j++) {
        double t0 = FOR_THIS(sum)(s0[j]), t1 = FOR_THIS(sum)(s1[j]);
        for (int64_t l = k; l < d; l++) t0 += r0[l] * w[j][l], t1 += r1[l] * w[j][l];
        o0[j * stride] = t0, o1[j * stride] = t1;
    }
}

static void FOR_THIS(project_on_several)(double *const *rows, int64_t d, int64_t n, double *const *w, int64_t m, double *out,
                                         int64_t stride)
{
    for (; m > 3; m -= 3, w += 3, out += 3 * stride) FOR_THIS(project_on_several)(rows, d, n, w, 3, out, stride);
    if (m == 1) FOR_THIS(project_rows)(rows, d, n, w[0], out);
    if (m < 2) return;
    for (int64_t i = 0; i < n; i += 2) {
        int64_t next = i + 1 < n ? i + 1 : i; /* an odd last row is taken twice */
        if (m == 2)
            FOR_THIS(two_rows)(rows[i], rows[next], d, w, 2, out + i, out + next, stride);
        else
            FOR_THIS(two_rows)(rows[i], rows[next], d, w, 3, out + i, out + next, stride);
    }
}

static void FOR_THIS(project_single)(const float *X, int64_t d, const int64_t *places, int64_t n, const float *w, float *out)
{
    for (int64_t i = 0; i < n; i += 4) {
        const float *r[4]; /* the last group repeats its last row */
        F s[4] = {{0}, {0}, {0}, {0}};
        for (int64_t j = 0; j < 4; j++) r[j] = X + places[i + j < n ? i + j : n - 1] * d;
        int64_t k = 0;
        for (; k + SINGLE_LANES <= d; k += SINGLE_LANES) {
            F x = AT(F, w + k);
            s[0] += AT(F, r[0] + k) * x;
            s[1] += AT(F, r[1] + k) * x;
            s[2] += AT(F, r[2] + k) * x;
            s[3] += AT(F, r[3] + k) * x;
        }
        for (int64_t j = 0; j < 4 && i + j < n; j++) {
            out[i + j] = FOR_THIS(sum_single)(s[j]);
            for (int64_t l = k; l < d; l++) out[i + j] += r[j][l] * w[l];
        }
    }
}

static void FOR_THIS(combine_rows)(double *const *rows, int64_t first, int64_t width, int64_t n, const double *weight,
                                   double *restrict w)
{
    w += first;
    memset(w, 0, (size_t)width * sizeof *w);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const double *r0 = rows[i] + first, *r1 = rows[i + 1] + first, *r2 = rows[i + 2] + first, *r3 = rows[i + 3] + first;
        double a0 = weight[i], a1 = weight[i + 1], a2 = weight[i + 2], a3 = weight[i + 3];
        int64_t k = 0;
        for (; k + LANES <= width; k += LANES)
            *(D *)(w + k) += a0 * AT(D, r0 + k) + a1 * AT(D, r1 + k) + a2 * AT(D, r2 + k) + a3 * AT(D, r3 + k);
        for (; k < width; k++) w[k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k];
    }
    for (; i < n; i++) FOR_THIS(add_scaled)(w, weight[i], rows[i] + first, width);
}

static float FOR_THIS(squared_single)(const float *a, const float *b, int64_t d)
{
    F s0 = {0}, s1 = {0};
    int64_t k = 0;
    for (; k + 2 * SINGLE_LANES <= d; k += 2 * SINGLE_LANES) {
        F x = AT(F, a + k) - AT(F, b + k), y = AT(F, a + k + SINGLE_LANES) - AT(F, b + k + SINGLE_LANES);
        s0 += x * x;
        s1 += y * y;
    }
    float s = FOR_THIS(sum_single)(s0 + s1);
    for (; k < d; k++) s += (a[k] - b[k]) * (a[k] - b[k]);
    return s;
}

static void FOR_THIS(lead_distances)(const float *a, const float *rows, const int64_t *places, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float *b = rows + (places ? places[i] : i) * LEADS;
        F s = {0};
        for (int k = 0; k < LEADS; k += (int)SINGLE_LANES) {
            F x = AT(F, a + k) - AT(F, b + k);
            s += x * x;
        }
        out[i] = FOR_THIS(sum_single)(s);
    }
}

#undef D
#undef F
#undef LANES
#undef SINGLE_LANES
#undef AT
