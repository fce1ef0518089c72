/*
 * With the right weights, all active points of a side have the same projection on w; the refinement uses this. The Gram
 * matrix of the active points, lifted by one coordinate per side, is stored as R'R and updated in place.
 */
#include "active.h"

#include <math.h>
#include <string.h>

#include "factor.h"
#include "linear.h"
#include "rough.h"
#include "sizes.h"

static const double DELICATE = 1e-6; /* |w|^2, in units of the points' own size, below which rounding matters */

/* ---- passes over the active rows, on several threads if there are many rows ---- */

typedef struct {
    const Solver *s;
    const double *weight;
    double *const *vector;
    int64_t n; /* of vectors */
    double *out;
    int64_t share;
} Pass;

static int shares(const Solver *s) { return s->crew && s->k * s->d > SIZE(1 << 15, 0) ? crew_size(s->crew) : 1; }

static void project_share(void *context, int64_t task, int worker)
{
    (void)worker;
    const Pass *p = context;
    int64_t from = task * p->share, n = p->s->k - from < p->share ? p->s->k - from : p->share;
    if (n > 0) project_on_several(p->s->row + from, p->s->d, n, p->vector, p->n, p->out + from, p->s->cap);
}

static void combine_share(void *context, int64_t task, int worker)
{
    (void)worker;
    const Pass *p = context;
    int64_t from = task * p->share, n = p->s->d - from < p->share ? p->s->d - from : p->share;
    if (n > 0) combine_rows(p->s->row, from, n, p->s->k, p->weight, p->out);
}

/* out = rows . vector, `cap` numbers for each of some vectors */
static void project_several(const Solver *s, double *const *vector, int64_t vectors, double *out)
{
    int n = shares(s);
    /* always four at a time: same rounding */
    Pass pass = {.s = s, .vector = vector, .n = vectors, .out = out, .share = ((s->k + n - 1) / n + 3) / 4 * 4};
    if (n == 1)
        project_share(&pass, 0, 0);
    else
        crew_run(s->crew, project_share, &pass, n);
}

static void project_active(const Solver *s, double *vector, double *out) { project_several(s, &vector, 1, out); }

/* out = sum of weight times rows */
static void combine_active(const Solver *s, const double *weight, double *out)
{
    int n = shares(s);
    Pass pass = {.s = s, .weight = weight, .out = out, .share = (s->d + n - 1) / n};
    if (n == 1)
        combine_share(&pass, 0, 0);
    else
        crew_run(s->crew, combine_share, &pass, n);
}

/* ---- adding and removing points ---- */

void active_row(const Solver *s, double *row, int64_t place, signed char side)
{
    const double *x = s->X + place * s->d;
    for (int64_t i = 0; i < s->d; i++) row[i] = side * (x[i] - s->origin[i]);
}

/*
 * Add the point whose row is in row[from], with weight 0. g: its inner products with the first `known` active points.
 * Returns 0 if it lies in the affine hull of the set already.
 */
static int enter_row(Solver *s, int64_t place, signed char side, int64_t from, double *g, int64_t known)
{
    int64_t k = s->k, d = s->d;
    double *q = s->row[from];
    s->row[from] = s->row[k], s->row[k] = q;
    project_rows(s->row + known, d, k - known, q, g + known);
    for (int64_t i = 0; i < k; i++) g[i] += s->side[i] == side ? s->lift : 0;
    double own = dot(q, q, d) + s->lift;
    factor_forward(s->R, s->cap, k, g);
    double pivot = own - dot(g, g, k);
    if (pivot < 1e-4 * own) {
        /* Cancellation: compute the residual from the point itself, and correct the new column by it. */
        memcpy(s->t, g, sizeof(double) * k);
        factor_backward(s->R, s->cap, k, s->t);
        combine_active(s, s->t, s->point);
        double sum_a = 0, sum_b = 0;
        for (int64_t i = 0; i < k; i++) *(s->side[i] > 0 ? &sum_a : &sum_b) += s->t[i];
        double lift_a = (side > 0) - sum_a, lift_b = (side < 0) - sum_b;
        for (int64_t i = 0; i < d; i++) s->point[i] = q[i] - s->point[i];
        project_active(s, s->point, s->z);
        for (int64_t i = 0; i < k; i++) s->z[i] += s->lift * (s->side[i] > 0 ? lift_a : lift_b);
        factor_forward(s->R, s->cap, k, s->z);
        for (int64_t i = 0; i < k; i++) g[i] += s->z[i];
        pivot = dot(s->point, s->point, d) + s->lift * (lift_a * lift_a + lift_b * lift_b) - dot(s->z, s->z, k);
        if (!(pivot > 1e-22 * own)) return 0;
    }
    double r = sqrt(pivot);
    for (int64_t i = 0; i < k; i++) s->R[i * s->cap + k] = g[i];
    s->R[k * s->cap + k] = r;
    s->ya[k] = ((side > 0) - dot(g, s->ya, k)) / r;
    s->yb[k] = ((side < 0) - dot(g, s->yb, k)) / r;
    s->place[k] = place, s->side[k] = side, s->weight[k] = 0;
    s->k = k + 1;
    return 1;
}

int active_enter(Solver *s, const int64_t *places, int64_t n, signed char side)
{
    if (s->rough) return rough_enter(s, places, n, side);
    int64_t k = s->k, came = 0;
    n = s->cap - k < n ? s->cap - k : n;
    for (int64_t j = 0; j < n; j++) active_row(s, s->row[k + j], places[j], side);
    if (n > 0) project_several(s, s->row + k, n, s->g);
    for (int64_t j = 0; j < n; j++) came += enter_row(s, places[j], side, k + j, s->g + j * s->cap, k);
    return (int)came;
}

/* Remove the point in column j from the active set. */
static void leave(Solver *s, int64_t j)
{
    int64_t k = s->k;
    size_t rest = (size_t)(k - 1 - j);
    memmove(s->place + j, s->place + j + 1, sizeof(int64_t) * rest);
    memmove(s->side + j, s->side + j + 1, rest);
    memmove(s->weight + j, s->weight + j + 1, sizeof(double) * rest);
    if (s->rough) {
        rough_leave(s, j);
    } else {
        double *row = s->row[j];
        memmove(s->row + j, s->row + j + 1, sizeof(double *) * rest);
        s->row[k - 1] = row;
        factor_drop(s->R, s->cap, k, j, s->ya, s->yb);
    }
    s->k = k - 1;
}

/* ---- one step ---- */

void active_multipliers(const Solver *s, double ra, double rb, double *la, double *lb)
{
    double aa = dot(s->ya, s->ya, s->k), bb = dot(s->yb, s->yb, s->k), ab = dot(s->ya, s->yb, s->k);
    double det = aa * bb - ab * ab;
    *la = (ra * bb - rb * ab) / det;
    *lb = (rb * aa - ra * ab) / det;
}

/*
 * x: the weights that minimise |w| on the affine hulls of the two active sets; returns |w|^2, which is less exact than that of
 * w itself: x' G x = la + lb is |w|^2 plus the lifts of both sides.
 */
static double least(Solver *s)
{
    double la, lb;
    active_multipliers(s, 1, 1, &la, &lb);
    for (int64_t i = 0; i < s->k; i++) s->x[i] = la * s->ya[i] + lb * s->yb[i];
    factor_backward(s->R, s->cap, s->k, s->x);
    return la + lb - 2 * s->lift;
}

double active_combine(Solver *s, const double *weight)
{
    combine_active(s, weight, s->w);
    return dot(s->w, s->w, s->d);
}

/*
 * Correct weights x whose w is known until the projections of each side agree to `tolerance` of |w|^2. Rounding matters only
 * if w is small; otherwise nothing is done.
 */
static double refine(Solver *s, double *x, double square, double tolerance)
{
    if (square > DELICATE * s->lift) return square;
    double last = INFINITY;
    for (int turn = 0; turn < 4; turn++) {
        int64_t k = s->k;
        project_active(s, s->w, s->t);
        double mean_a = 0, mean_b = 0, worst = 0;
        for (int64_t i = 0; i < k; i++) *(s->side[i] > 0 ? &mean_a : &mean_b) += x[i] * s->t[i];
        for (int64_t i = 0; i < k; i++) {
            s->z[i] = (s->side[i] > 0 ? mean_a : mean_b) - s->t[i];
            worst = fmax(worst, fabs(s->z[i]));
        }
        if (worst <= tolerance * square || worst > 0.5 * last) break;
        last = worst;
        factor_forward(s->R, s->cap, k, s->z);
        double la, lb;
        active_multipliers(s, -dot(s->ya, s->z, k), -dot(s->yb, s->z, k), &la, &lb);
        for (int64_t i = 0; i < k; i++) s->z[i] += la * s->ya[i] + lb * s->yb[i];
        factor_backward(s->R, s->cap, k, s->z);
        for (int64_t i = 0; i < k; i++) x[i] += s->z[i];
        square = active_combine(s, x);
    }
    return square;
}

int active_cut(Solver *s)
{
    double step = 1;
    int64_t first = -1;
    for (int64_t i = 0; i < s->k; i++)
        if (s->x[i] <= 0) {
            double reach = s->weight[i] / (s->weight[i] - s->x[i]);
            if (!(reach >= 0)) reach = 0;
            if (first < 0 || reach < step) step = reach, first = i;
        }
    if (first < 0) return 0;
    for (int64_t i = 0; i < s->k; i++) s->weight[i] += step * (s->x[i] - s->weight[i]);
    s->weight[first] = 0;
    for (int64_t i = s->k - 1; i >= 0; i--)
        if (s->weight[i] <= 0 && s->x[i] <= 0) leave(s, i);
    return 1;
}

double active_descend(Solver *s, double tolerance)
{
    if (s->rough) return rough_descend(s, tolerance);
    for (;;) {
        double about = least(s);
        if (!s->precise && about > 2 * DELICATE * s->lift && active_cut(s)) continue; /* x needs no refinement, and so no w */
        double square = s->precise ? active_refine_precisely(s, tolerance)
                                   : refine(s, s->x, active_combine(s, s->x), tolerance);
        if (active_cut(s)) continue;
        memcpy(s->weight, s->x, sizeof(double) * s->k);
        return square;
    }
}
