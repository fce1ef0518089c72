/* The functions of factor.h for one kind of number: REAL; NAMED gives them distinct names. */
/* The next n unknowns of t, those before them being known; 1 / row[j] does not wait for the unknown before. */
static inline void NAMED(next_forward)(const REAL *R, int64_t cap, int64_t i, int64_t n, REAL *t)
{
    for (int64_t j = i; j < i + n; j++) {
        const REAL *row = R + j * cap;
        t[j] *= 1 / row[j];
        for (int64_t c = j + 1; c < i + n; c++) t[c] -= t[j] * row[c];
    }
}

/* Four unknowns at a time: each pass over the rest of t serves four rows, and the same four rows serve all vectors. */
void NAMED(factor_forward_several)(const REAL *R, int64_t cap, int64_t k, REAL *t, int64_t m, int64_t stride)
{
    int64_t i = 0;
    for (; i + 4 <= k; i += 4)
        for (REAL *u = t; u < t + m * stride; u += stride) {
            NAMED(next_forward)(R, cap, i, 4, u);
            NAMED(subtract_four)(u + i + 4, u + i, R + i * cap + i + 4, cap, k - i - 4);
        }
    for (REAL *u = t; u < t + m * stride; u += stride) NAMED(next_forward)(R, cap, i, k - i, u);
}

void NAMED(factor_forward)(const REAL *R, int64_t cap, int64_t k, REAL *t)
{
    NAMED(factor_forward_several)(R, cap, k, t, 1, cap);
}

/* The last n unknowns of t before `end`, those from `end` to k being known. */
static inline void NAMED(next_backward)(const REAL *R, int64_t cap, int64_t k, int64_t end, int n, REAL *t)
{
    REAL known[4] = {0}, *rows[4];
    for (int j = 0; j < n; j++) rows[j] = (REAL *)R + (end - n + j) * cap + end;
    NAMED(project_rows)(rows, k - end, n, t + end, known);
    for (int j = n - 1; j >= 0; j--) {
        const REAL *row = rows[j] - n; /* from column end - n on */
        REAL *u = t + end - n, sum = known[j];
        for (int c = j + 1; c < n; c++) sum += row[c] * u[c];
        u[j] = (u[j] - sum) * (1 / row[j]);
    }
}

/* Likewise from the end; the first rows that do not make four are taken one at a time. */
void NAMED(factor_backward)(const REAL *R, int64_t cap, int64_t k, REAL *t)
{
    int64_t end = k;
    for (; end >= 4; end -= 4) NAMED(next_backward)(R, cap, k, end, 4, t);
    for (; end > 0; end--) NAMED(next_backward)(R, cap, k, end, 1, t);
}

void NAMED(factor_drop)(REAL *R, int64_t cap, int64_t k, int64_t j, REAL *y, REAL *z)
{
    for (int64_t i = 0; i < k; i++) {
        int64_t from = i > j + 1 ? i : j + 1; /* entries below the diagonal are not stored */
        memmove(R + i * cap + from - 1, R + i * cap + from, sizeof(REAL) * (size_t)(k - from));
    }
    for (int64_t i = j; i < k - 1; i++) {
        REAL *a = R + i * cap, *b = a + cap;
        REAL h = SQUARE_ROOT(a[i] * a[i] + b[i] * b[i]), c = a[i] / h, s = b[i] / h;
        a[i] = h;
        NAMED(rotate)(a + i + 1, b + i + 1, c, s, k - 2 - i);
        NAMED(rotate)(y + i, y + i + 1, c, s, 1);
        if (z) NAMED(rotate)(z + i, z + i + 1, c, s, 1);
    }
}
