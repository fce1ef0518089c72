#include "rough.h"

#include <math.h>
#include <string.h>

#include "active.h"
#include "factor.h"
#include "linear.h"

enum { TURNS = 8 };

struct Rough {
    float **row; /* the signed rows of the active points, relative to the origin */
    float *R, *ya, *yb, *x, *g, *w, *origin;
    double **exact; /* their rows in X */
};

static const float DEPENDENT = 1e-5f; /* a point with a smaller part outside the affine hull of the set is left to active.c */

static Rough *rough_new(const Solver *s)
{
    Rough *r = allocate_zeros(1, sizeof *r);
    float *rows = allocate(s->cap * s->d + 16, sizeof(float));
    rows = (float *)(((uintptr_t)rows + 63) / 64 * 64); /* a cache line */
    r->row = allocate(s->cap, sizeof(float *));
    r->exact = allocate(s->cap, sizeof(double *));
    for (int64_t i = 0; i < s->cap; i++) r->row[i] = rows + i * s->d;
    r->R = allocate(s->cap * s->cap, sizeof(float));
    float **vectors[] = {&r->ya, &r->yb, &r->x};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) *vectors[i] = allocate(s->cap, sizeof(float));
    r->g = allocate(COMING * s->cap, sizeof(float));
    r->w = allocate(s->d, sizeof(float));
    r->origin = allocate(s->d, sizeof(float));
    return r;
}

void rough_begin(Solver *s)
{
    s->rough = 1, s->exact_w = 0, s->k = 0;
    if (!s->single_stage) s->single_stage = rough_new(s);
    for (int64_t i = 0; i < s->d; i++) s->single_stage->origin[i] = (float)s->origin[i];
}

/*
 * Add the point whose row is in row[from], with weight 0. g: its column of the factor in the rows of the first `known` active points;
 * columns: those of the points that entered after them, from the same side. Returns 0 if it nearly lies in the affine hull of the set.
 */
static int enter_row(Solver *s, int64_t place, signed char side, int64_t from, float *g, int64_t known, float *const *columns)
{
    Rough *r = s->single_stage;
    int64_t k = s->k;
    float *q = r->row[from], lift = (float)s->lift;
    r->row[from] = r->row[k], r->row[k] = q;
    for (int64_t i = known; i < k; i++)
        g[i] = (dot_single(r->row[i], q, s->d) + lift - dot_single(columns[i - known], g, i)) / r->R[i * s->cap + i];
    float own = dot_single(q, q, s->d) + lift, pivot = own - dot_single(g, g, k);
    if (!(pivot > DEPENDENT * own)) return 0;
    pivot = sqrtf(pivot);
    for (int64_t i = 0; i < k; i++) r->R[i * s->cap + k] = g[i];
    r->R[k * s->cap + k] = pivot;
    r->ya[k] = ((float)(side > 0) - dot_single(g, r->ya, k)) / pivot;
    r->yb[k] = ((float)(side < 0) - dot_single(g, r->yb, k)) / pivot;
    s->place[k] = place, s->side[k] = side, s->weight[k] = 0;
    s->k = k + 1;
    return 1;
}

int rough_enter(Solver *s, const int64_t *places, int64_t n, signed char side)
{
    Rough *r = s->single_stage;
    int64_t k = s->k;
    float *columns[COMING], lift = (float)s->lift;
    n = s->cap - k < n ? s->cap - k : n;
    if (n <= 0) return 0;
    for (int64_t j = 0; j < n; j++) {
        const float *x = s->single + places[j] * s->d;
        for (int64_t i = 0; i < s->d; i++) r->row[k + j][i] = side * (x[i] - r->origin[i]);
    }
    project_on_several_single(r->row, s->d, k, r->row + k, n, r->g, s->cap);
    for (float *g = r->g; g < r->g + n * s->cap; g += s->cap)
        for (int64_t i = 0; i < k; i++) g[i] += s->side[i] == side ? lift : 0;
    factor_forward_several_single(r->R, s->cap, k, r->g, n, s->cap);
    for (int64_t j = 0; j < n; j++) {
        float *g = r->g + j * s->cap;
        int64_t at = s->k - k;
        if (enter_row(s, places[j], side, k + j, g, k, columns)) columns[at] = g;
    }
    return (int)(s->k - k);
}

void rough_leave(Solver *s, int64_t j)
{
    Rough *r = s->single_stage;
    float *row = r->row[j];
    memmove(r->row + j, r->row + j + 1, sizeof(float *) * (size_t)(s->k - 1 - j));
    r->row[s->k - 1] = row;
    factor_drop_single(r->R, s->cap, s->k, j, r->ya, r->yb);
}

/* The multipliers (la, lb) with M (la, lb) = (ra, rb), M the Gram matrix of ya and yb. */
static void multipliers(const Solver *s, float ra, float rb, float *la, float *lb)
{
    const Rough *r = s->single_stage;
    float aa = dot_single(r->ya, r->ya, s->k), bb = dot_single(r->yb, r->yb, s->k), ab = dot_single(r->ya, r->yb, s->k);
    float det = aa * bb - ab * ab;
    *la = (ra * bb - rb * ab) / det;
    *lb = (rb * aa - ra * ab) / det;
}

double rough_level(const Solver *s, int64_t i)
{
    return dot_single(s->single + s->place[i] * s->d, s->single_stage->w, s->d);
}

/* Set w from x in single precision; returns |w|^2. */
static double combine(Solver *s)
{
    Rough *r = s->single_stage;
    combine_rows_single(r->row, 0, s->d, s->k, r->x, r->w);
    for (int64_t i = 0; i < s->d; i++) s->w[i] = r->w[i];
    return dot_single(r->w, r->w, s->d);
}

/*
 * Scale the weights x of each side to sum to 1, set w from them in double precision, and write to r->x what each active point's
 * projection on w lacks to the mean of its side; returns the largest.
 */
static double residuals(Solver *s)
{
    Rough *r = s->single_stage;
    double sum[2] = {0, 0}, mean[2] = {0, 0}, worst = 0;
    for (int64_t i = 0; i < s->k; i++) sum[s->side[i] < 0] += s->x[i];
    for (int64_t i = 0; i < s->k; i++) {
        r->exact[i] = (double *)s->X + s->place[i] * s->d;
        s->x[i] /= sum[s->side[i] < 0];
        s->z[i] = s->side[i] * s->x[i];
    }
    combine_rows(r->exact, 0, s->d, s->k, s->z, s->w);
    project_rows(r->exact, s->d, s->k, s->w, s->t);
    for (int64_t i = 0; i < s->k; i++) mean[s->side[i] < 0] += s->x[i] * s->t[i];
    for (int64_t i = 0; i < s->k; i++) {
        double off = s->side[i] * (mean[s->side[i] < 0] - s->t[i]);
        r->x[i] = (float)off;
        worst = fmax(worst, fabs(off));
    }
    return worst;
}

/* Set w from x, after corrections of x with the factor, in double precision; returns |w|^2. */
static double correct(Solver *s, double tolerance)
{
    Rough *r = s->single_stage;
    double last = INFINITY;
    for (int turn = 0;; turn++) {
        double worst = residuals(s), square = dot(s->w, s->w, s->d);
        if (worst <= tolerance * square || !(worst < 0.5 * last) || turn == TURNS) return square;
        last = worst;
        float la, lb;
        factor_forward_single(r->R, s->cap, s->k, r->x);
        multipliers(s, -dot_single(r->ya, r->x, s->k), -dot_single(r->yb, r->x, s->k), &la, &lb);
        for (int64_t i = 0; i < s->k; i++) r->x[i] += la * r->ya[i] + lb * r->yb[i];
        factor_backward_single(r->R, s->cap, s->k, r->x);
        for (int64_t i = 0; i < s->k; i++) s->x[i] += r->x[i];
    }
}

double rough_descend(Solver *s, double tolerance)
{
    Rough *r = s->single_stage;
    for (;;) {
        float la, lb;
        multipliers(s, 1, 1, &la, &lb);
        for (int64_t i = 0; i < s->k; i++) r->x[i] = la * r->ya[i] + lb * r->yb[i];
        factor_backward_single(r->R, s->cap, s->k, r->x);
        for (int64_t i = 0; i < s->k; i++) s->x[i] = r->x[i];
        double square = NAN;
        if (s->exact_w) square = correct(s, tolerance);
        if (active_cut(s)) continue;
        if (!s->exact_w) square = combine(s);
        if (square >= 0) memcpy(s->weight, s->x, sizeof(double) * s->k);
        return square;
    }
}
