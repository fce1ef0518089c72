/*
 * The loops of linear.h for one kind of number, included once for each kind and each set of instructions: REAL is the kind, V a vector
 * of LANES numbers, NAMED gives the functions distinct names, and sum adds the numbers of a vector.
 */
static REAL NAMED(dot)(const REAL *a, const REAL *b, int64_t d)
{
    V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}; /* four sums: an addition need not wait for the one before */
    int64_t k = 0;
    for (; k + 4 * LANES <= d; k += 4 * LANES) {
        s0 += AT(V, a + k) * AT(V, b + k);
        s1 += AT(V, a + k + LANES) * AT(V, b + k + LANES);
        s2 += AT(V, a + k + 2 * LANES) * AT(V, b + k + 2 * LANES);
        s3 += AT(V, a + k + 3 * LANES) * AT(V, b + k + 3 * LANES);
    }
    for (; k + LANES <= d; k += LANES) s0 += AT(V, a + k) * AT(V, b + k);
    REAL s = NAMED(sum)((s0 + s1) + (s2 + s3));
    for (; k < d; k++) s += a[k] * b[k];
    return s;
}

static REAL NAMED(squared_distance)(const REAL *a, const REAL *b, int64_t d)
{
    V s0 = {0}, s1 = {0};
    int64_t k = 0;
    for (; k + 2 * LANES <= d; k += 2 * LANES) {
        V x = AT(V, a + k) - AT(V, b + k), y = AT(V, a + k + LANES) - AT(V, b + k + LANES);
        s0 += x * x;
        s1 += y * y;
    }
    REAL s = NAMED(sum)(s0 + s1);
    for (; k < d; k++) s += (a[k] - b[k]) * (a[k] - b[k]);
    return s;
}

static void NAMED(add_scaled)(REAL *restrict y, REAL a, const REAL *restrict x, int64_t d)
{
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) *(V *)(y + k) += a * AT(V, x + k);
    for (; k < d; k++) y[k] += a * x[k];
}

static void NAMED(subtract_four)(REAL *restrict y, const REAL *restrict a, const REAL *restrict rows, int64_t stride,
                                    int64_t d)
{
    const REAL *r0 = rows, *r1 = r0 + stride, *r2 = r1 + stride, *r3 = r2 + stride;
    REAL a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        V s = AT(V, y + k) - a0 * AT(V, r0 + k), u = a1 * AT(V, r1 + k);
        s -= a2 * AT(V, r2 + k), u += a3 * AT(V, r3 + k);
        *(V *)(y + k) = s - u;
    }
    for (; k < d; k++) y[k] -= a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k];
}

static void NAMED(rotate)(REAL *restrict a, REAL *restrict b, REAL c, REAL s, int64_t d)
{
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        V x = AT(V, a + k), y = AT(V, b + k);
        *(V *)(a + k) = c * x + s * y;
        *(V *)(b + k) = c * y - s * x;
    }
    for (; k < d; k++) {
        REAL x = a[k], y = b[k];
        a[k] = c * x + s * y;
        b[k] = c * y - s * x;
    }
}

/* Four rows at a time: each load of w serves four products. */
static inline void NAMED(four_rows)(const REAL *r0, const REAL *r1, const REAL *r2, const REAL *r3,
                                       const REAL *w, int64_t d, REAL *out)
{
    V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        V x = AT(V, w + k);
        s0 += AT(V, r0 + k) * x;
        s1 += AT(V, r1 + k) * x;
        s2 += AT(V, r2 + k) * x;
        s3 += AT(V, r3 + k) * x;
    }
    out[0] = NAMED(sum)(s0), out[1] = NAMED(sum)(s1), out[2] = NAMED(sum)(s2), out[3] = NAMED(sum)(s3);
    for (; k < d; k++) out[0] += r0[k] * w[k], out[1] += r1[k] * w[k], out[2] += r2[k] * w[k], out[3] += r3[k] * w[k];
}

static void NAMED(project)(const REAL *X, int64_t d, const int64_t *places, int64_t n, const REAL *w, REAL *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const REAL *r0 = X + (places ? places[i] : i) * d, *r1 = X + (places ? places[i + 1] : i + 1) * d;
        const REAL *r2 = X + (places ? places[i + 2] : i + 2) * d, *r3 = X + (places ? places[i + 3] : i + 3) * d;
        NAMED(four_rows)(r0, r1, r2, r3, w, d, out + i);
    }
    for (; i < n; i++) out[i] = NAMED(dot)(X + (places ? places[i] : i) * d, w, d);
}

static void NAMED(project_rows)(REAL *const *rows, int64_t d, int64_t n, const REAL *w, REAL *out)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) NAMED(four_rows)(rows[i], rows[i + 1], rows[i + 2], rows[i + 3], w, d, out + i);
    for (; i < n; i++) out[i] = NAMED(dot)(rows[i], w, d);
}

/* Two rows and m vectors at a time: each load serves several products. */
static inline __attribute__((always_inline)) void NAMED(two_rows)(const REAL *r0, const REAL *r1, int64_t d,
                                                                     REAL *const *w, int m, REAL *o0, REAL *o1,
                                                                     int64_t stride)
{
    V s0[3] = {{0}, {0}, {0}}, s1[3] = {{0}, {0}, {0}};
    int64_t k = 0;
    for (; k + LANES <= d; k += LANES) {
        V x0 = AT(V, r0 + k), x1 = AT(V, r1 + k);
        for (int j = 0; j < m; j++) s0[j] += x0 * AT(V, w[j] + k), s1[j] += x1 * AT(V, w[j] + k);
    }
    for (int j = 0; j < m; j++) {
        REAL t0 = NAMED(sum)(s0[j]), t1 = NAMED(sum)(s1[j]);
        for (int64_t l = k; l < d; l++) t0 += r0[l] * w[j][l], t1 += r1[l] * w[j][l];
        o0[j * stride] = t0, o1[j * stride] = t1;
    }
}

static void NAMED(project_on_several)(REAL *const *rows, int64_t d, int64_t n, REAL *const *w, int64_t m, REAL *out,
                                         int64_t stride)
{
    for (; m > 3; m -= 3, w += 3, out += 3 * stride) NAMED(project_on_several)(rows, d, n, w, 3, out, stride);
    if (m == 1) NAMED(project_rows)(rows, d, n, w[0], out);
    if (m < 2) return;
    for (int64_t i = 0; i < n; i += 2) {
        int64_t next = i + 1 < n ? i + 1 : i; /* an odd last row is taken twice */
        if (m == 2)
            NAMED(two_rows)(rows[i], rows[next], d, w, 2, out + i, out + next, stride);
        else
            NAMED(two_rows)(rows[i], rows[next], d, w, 3, out + i, out + next, stride);
    }
}

static void NAMED(combine_rows)(REAL *const *rows, int64_t first, int64_t width, int64_t n, const REAL *weight,
                                   REAL *restrict w)
{
    w += first;
    memset(w, 0, (size_t)width * sizeof *w);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const REAL *r0 = rows[i] + first, *r1 = rows[i + 1] + first, *r2 = rows[i + 2] + first, *r3 = rows[i + 3] + first;
        REAL a0 = weight[i], a1 = weight[i + 1], a2 = weight[i + 2], a3 = weight[i + 3];
        int64_t k = 0;
        for (; k + LANES <= width; k += LANES)
            *(V *)(w + k) += a0 * AT(V, r0 + k) + a1 * AT(V, r1 + k) + a2 * AT(V, r2 + k) + a3 * AT(V, r3 + k);
        for (; k < width; k++) w[k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k];
    }
    for (; i < n; i++) NAMED(add_scaled)(w, weight[i], rows[i] + first, width);
}
