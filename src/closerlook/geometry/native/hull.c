/*
 * The nearest points of two convex hulls by an active-set method (Wolfe 1976, with separate weights for the two hulls).
 *
 * Unknowns are weights on an active set of points of A and B, each side summing to 1; w is the difference of the two
 * weighted means. A step finds the weights that minimise |w| on the affine hulls of the active points, moves towards them as
 * far as the weights stay positive, and drops the points whose weight becomes zero. Then the points that w separates worst
 * are added.
 */
#include "hull.h"

#include <math.h>
#include <string.h>

#include "active.h"
#include "linear.h"
#include "price.h"
#include "rough.h"

Solver *solver_new(const double *X, const float *single, double longest, int64_t d, int64_t most)
{
    Solver *s = allocate_zeros(1, sizeof *s);
    int64_t cap = (d + 2 < most ? d + 2 : most) + 2;
    s->X = X, s->single = single, s->longest = longest, s->d = d, s->cap = cap;
    s->place = allocate(cap, sizeof(int64_t));
    s->side = allocate(cap, 1);
    s->weight = allocate(cap, sizeof(double));
    s->row = allocate(cap, sizeof(double *));
    double *rows = allocate(cap * d + 8, sizeof(double));
    rows = (double *)(((uintptr_t)rows + 63) / 64 * 64); /* a cache line */
    for (int64_t i = 0; i < cap; i++) s->row[i] = rows + i * d;
    s->R = allocate(cap * cap, sizeof(double));
    s->old_place = allocate(cap, sizeof(int64_t));
    s->old_side = allocate(cap, 1);
    double **vectors[] = {&s->ya, &s->yb, &s->x, &s->z, &s->t, &s->x_low, &s->t_low};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) *vectors[i] = allocate(cap, sizeof(double));
    s->g = allocate(COMING * cap, sizeof(double));
    double **wide[] = {&s->origin, &s->w, &s->normal, &s->point, &s->w_low};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) *wide[i] = allocate(d, sizeof(double));
    s->w_single = allocate(d, sizeof(float));
    s->list_a = allocate(SHORTLIST, sizeof(int64_t));
    s->list_b = allocate(SHORTLIST, sizeof(int64_t));
    return s;
}

void solver_share(Solver *s, Crew *crew) { s->crew = crew; }

/* Start from a state, with the points that were added since on the shortlist; returns 0 if its hulls meet. */
static int start_warm(Solver *s, const State *from, Points news, int side)
{
    solver_load(s, from);
    double length = sqrt(active_combine(s, s->weight));
    s->n_list_a = s->n_list_b = 0;
    if (!(length > 0)) return 0;
    price_points(s, news, side, length, side > 0 ? s->list_a : s->list_b, side > 0 ? &s->n_list_a : &s->n_list_b);
    return 1;
}

/* Start from the two points that are closest along the line of the means; SEPARABLE if that line is proof enough. */
static int start_cold(Solver *s, Points A, Points B, const Wanted *wanted, int rough)
{
    for (int64_t i = 0; i < s->d; i++) {
        s->origin[i] = 0.5 * (A.mean[i] + B.mean[i]);
        s->w[i] = A.mean[i] - B.mean[i];
    }
    s->k = 0, s->rough = 0;
    double length = sqrt(dot(s->w, s->w, s->d));
    price_all(s, A, B, length > 0 ? length : 1);
    if (!(length > 0)) s->lower = -INFINITY;
    if (s->lower > wanted->tau && wanted->gap == 0) return SEPARABLE;
    s->lift = fmax(squared_distance(s->X + s->list_a[0] * s->d, s->origin, s->d),
                   squared_distance(s->X + s->list_b[0] * s->d, s->origin, s->d));
    if (!(s->lift > 0)) s->lift = 1;
    if (rough) rough_begin(s);
    active_enter(s, s->list_a, 1, 1), active_enter(s, s->list_b, 1, -1);
    if (s->k < 2) { /* too long or too short for a square in single precision */
        s->rough = 0, s->k = 0;
        active_enter(s, s->list_a, 1, 1), active_enter(s, s->list_b, 1, -1);
    }
    s->weight[0] = s->weight[1] = 1;
    return UNDECIDED;
}

/* A bound of the error of w that comes from weights that do not sum to exactly 1. */
static double astray(const Solver *s)
{
    double sum_a = 0, sum_b = 0;
    for (int64_t i = 0; i < s->k; i++) *(s->side[i] > 0 ? &sum_a : &sum_b) += s->weight[i];
    return 2 * s->longest * (fabs(sum_a - 1) + fabs(sum_b - 1));
}

/* The projection of a side's active points on w: with the right weights it is the same for all, so one is enough. */
static double level_of(const Solver *s, signed char side)
{
    int64_t heaviest = -1;
    for (int64_t i = 0; i < s->k; i++)
        if (s->side[i] == side && (heaviest < 0 || s->weight[i] > s->weight[heaviest])) heaviest = i;
    if (heaviest < 0) return NAN; /* rounding emptied the side: nothing enters any more, and the search ends as stalled */
    if (s->rough && !s->exact_w) return rough_level(s, heaviest);
    return dot(s->X + s->place[heaviest] * s->d, s->w, s->d);
}

/* Add points of a side, at most `most`: the worst, and others at least `share` as bad as `worst`; returns their number. */
static int take_in(Solver *s, const int64_t *list, Prices *p, signed char side, double level, double worst, double share, int most)
{
    int64_t coming[COMING];
    int n = 0;
    for (; n < most; n++) {
        int64_t next = -1;
        for (int64_t i = 0; i < p->n; i++)
            if (next < 0 || p->value[i] < p->value[next]) next = i;
        if (next < 0 || !(level - p->value[next] > (n ? share : 0.1) * worst)) break;
        coming[n] = list[next];
        p->value[next] = INFINITY;
    }
    return active_enter(s, coming, n, side);
}

static const double ROUGH_GAP = 1e-5; /* the relative gap to which the rough stage works */
static const double FAINT = 1e-10;    /* and the |w|^2, in units of the points' own size */

/* How hard the solver tries; it goes one step up when it stalls. ROUGH and CORRECTED: rough.h, without and with exact_w. */
enum { ROUGH, CORRECTED, PLAIN, REBUILT, RESTARTED, PRECISE };

typedef struct {
    int stage;
    double fine;   /* how well the projections of the active points must agree, as a part of |w|^2 */
    double before; /* the smallest |w|^2 of this stage */
    double began;  /* the smallest |w|^2 when the factor was last computed anew */
    int stalled;   /* steps that did not make it smaller */
    int pressed;   /* whether `fine` is small already */
    int patience;  /* stalled steps after which no more points enter; after twice as many the stage ends */
} Effort;

/* A bound on the rounding error of a distance; with more digits only numbers that are rounded once contribute. */
static double slack_of(const Solver *s, const Wanted *wanted)
{
    return s->precise ? 16 * 0x1p-53 * s->longest : 2 * wanted->slack;
}

/* Whether a side has no active points. */
static int is_one_sided(const Solver *s)
{
    int64_t of_a = 0;
    for (int64_t i = 0; i < s->k; i++) of_a += s->side[i] > 0;
    return of_a == 0 || of_a == s->k;
}

/* Compute the factor anew in double precision. */
static void rebuild(Solver *s, Points A, Points B, const Wanted *wanted)
{
    s->rough = 0;
    if (is_one_sided(s)) /* rounding emptied a side */
        start_cold(s, A, B, wanted, 0);
    else
        active_rebuild(s);
}

/* Whether |w| fell much since the factor was last computed anew, so that doing this again may be enough. */
static int fell(const Effort *e) { return e->stage >= REBUILT && e->before < 0.9 * e->began; }

/* Go on to the next stage, or to `least` if that is later; returns 0 if there is none. */
static int try_harder(Solver *s, Points A, Points B, const Wanted *wanted, Effort *e, int warm, int least)
{
    int again = e->stage >= least && fell(e);
    if (e->stage == PRECISE && !again) return 0;
    e->began = e->before, e->before = INFINITY, e->stalled = 0;
    if (again) {
        rebuild(s, A, B, wanted);
        return 1;
    }
    e->stage = e->stage + 1 > least ? e->stage + 1 : least;
    if (e->stage == RESTARTED && !warm) e->stage = PRECISE;
    if (e->stage == CORRECTED) {
        s->exact_w = 1;
        return 1;
    }
    if (e->stage > PLAIN) e->pressed = 1, e->fine = fmin(e->fine, 1e-7);
    if (e->stage == RESTARTED) {
        start_cold(s, A, B, wanted, 0);
        return 1;
    }
    rebuild(s, A, B, wanted);
    /* near the end |w| falls by less than its last digit, though the bounds still improve: be patient */
    if (e->stage == PRECISE)
        s->precise = 1, s->slack = slack_of(s, wanted), e->fine = 1e-10, e->patience = (int)s->d + 50;
    return 1;
}

/* Add the points of the shortlists that w separates worst; returns their number, 0 if w may be good enough. */
static int take_violators(Solver *s, const Wanted *wanted, const Effort *e, double length)
{
    Prices a, b;
    double level_a = level_of(s, 1), level_b = -level_of(s, -1), gap = wanted->gap, tau = wanted->tau;
    price_list(s, s->list_a, s->n_list_a, 1, &a);
    price_list(s, s->list_b, s->n_list_b, -1, &b);
    double lower = (fmin(a.least, level_a) + fmin(b.least, level_b)) / length, aim = 0.5 * gap, slack = s->slack;
    if (s->precise && gap > 0) aim = fmin(aim, 0.25 * fabs(length - tau) / length);
    if (s->rough && !s->exact_w) aim = fmax(aim, ROUGH_GAP), slack = 0x1p-21 * s->longest; /* no closer than these digits allow */
    int good = gap > 0 ? lower >= length * (1 - aim) - slack : lower > fmax(0.3 * length, tau + slack);
    if (good || e->stalled >= e->patience) return 0;
    double worst = fmax(fmax(level_a - a.least, level_b - b.least), 0);
    double share = gap > 0 ? 0.2 : 0.5; /* measured: a distance needs more of the points on the list than a verdict does */
    int single = e->stage >= REBUILT && e->stalled > 1; /* of several points each may keep the others from helping */
    int from_a = !single || level_a - a.least >= level_b - b.least, from_b = !single || !from_a, most = single ? 1 : COMING;
    int came = from_a ? take_in(s, s->list_a, &a, 1, level_a, worst, share, most) : 0;
    return came + (from_b ? take_in(s, s->list_b, &b, -1, level_b, worst, share, most) : 0);
}

/* Whether the bounds prove the hulls separable and, if a distance is wanted, are as close as promised. */
static int is_done(const Solver *s, const Wanted *wanted)
{
    return s->lower > wanted->tau && (wanted->gap == 0 || s->upper - s->lower <= wanted->gap * s->upper);
}

/*
 * A step of the rough stage, with w in single precision; returns SEPARABLE if w is proof enough. Its end: no more points enter, or |w|
 * is too small for its digits.
 */
static int step_roughly(Solver *s, Points A, Points B, const Wanted *wanted, Effort *e)
{
    double square = active_descend(s, e->fine), length = sqrt(square);
    e->stalled = square < e->before ? 0 : e->stalled + 1;
    e->before = fmin(e->before, square);
    if (square > FAINT * s->lift && e->stalled < e->patience) {
        if (take_violators(s, wanted, e, length)) return UNDECIDED;
        if (wanted->gap > 0)
            price_roughly(s, A, B);
        else
            price_all(s, A, B, length);
        if (wanted->gap == 0 && is_done(s, wanted)) return SEPARABLE;
        if (take_violators(s, wanted, e, length)) return UNDECIDED;
    }
    try_harder(s, A, B, wanted, e, 0, 0);
    return UNDECIDED;
}

int solve(Solver *s, Points A, Points B, const Wanted *wanted, const State *from, Points news, int side)
{
    double tau = wanted->tau, gap = wanted->gap;
    s->steps = 0, s->pricings = 0, s->precise = 0, s->rough = 0, s->slack = slack_of(s, wanted);
    s->lower = -INFINITY, s->upper = INFINITY;
    int warm = from && start_warm(s, from, news, side);
    if (!warm && start_cold(s, A, B, wanted, wanted->rough) == SEPARABLE) return SEPARABLE;
    Effort e = {s->rough ? ROUGH : PLAIN, gap > 0 ? 0.1 * gap : 1e-3, INFINITY, INFINITY, 0, gap > 0, 5};
    for (; s->steps < wanted->max_steps; s->steps++) {
        check_stop();
        if (e.stage == ROUGH) {
            if (step_roughly(s, A, B, wanted, &e) == SEPARABLE) return SEPARABLE;
            continue;
        }
        double square = active_descend(s, s->rough && gap > 0 ? 1e-10 : e.fine), length = sqrt(square);
        if (s->rough && (is_one_sided(s) || !(square >= 0))) { /* the factor is useless */
            try_harder(s, A, B, wanted, &e, warm, 0);
            continue;
        }
        s->upper = length + (s->precise ? 0 : astray(s)) + s->slack;
        if (s->upper <= tau || length == 0) return OVERLAPPING;
        e.stalled = square < e.before * (s->precise ? 1 : 1 - 1e-12) ? 0 : e.stalled + 1;
        e.before = fmin(e.before, square);
        if (e.stalled == 3 && e.stage >= REBUILT) rebuild(s, A, B, wanted);
        if (e.stalled == 5 && !e.pressed) e.stalled = 0, e.pressed = 1, e.fine = 1e-7; /* near the limit: refine */
        if (take_violators(s, wanted, &e, length)) continue;
        double all = price_all(s, A, B, length);
        if (is_done(s, wanted)) return SEPARABLE;
        /* the distance is known as well as these digits allow, but not as well as promised */
        int exhausted = gap > 0 && !s->precise && all >= length * (1 - 0.9 * gap) - s->slack;
        if (exhausted || e.stalled >= 2 * e.patience)
            if (!try_harder(s, A, B, wanted, &e, warm, exhausted ? PRECISE : 0)) break;
    }
    return s->lower > tau ? SEPARABLE : UNDECIDED;
}

const double *solver_normal(const Solver *s) { return s->normal; }
double solver_lower(const Solver *s) { return s->lower; }
double solver_upper(const Solver *s) { return s->upper; }
double solver_low_a(const Solver *s) { return s->low_a; }
double solver_high_b(const Solver *s) { return s->high_b; }
int64_t solver_active_n(const Solver *s) { return s->k; }
int64_t solver_steps(const Solver *s) { return s->steps; }
int64_t solver_pricings(const Solver *s) { return s->pricings; }

int64_t solver_active(const Solver *s, int64_t *places, double *weight, signed char *side)
{
    memcpy(places, s->place, sizeof(int64_t) * s->k);
    memcpy(weight, s->weight, sizeof(double) * s->k);
    memcpy(side, s->side, (size_t)s->k);
    return s->k;
}
