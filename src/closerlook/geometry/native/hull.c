/*
 * The nearest points of two convex hulls, by an active-set method (Wolfe 1976, with the points of the two hulls kept apart).
 *
 * Unknowns are weights on an active set of points of A and B, each side summing to 1; w is the difference of the two
 * weighted means. A step finds the weights that make |w| least on the affine hulls of the active points, goes there as far
 * as the weights stay positive, and drops the points whose weight has come to zero; then the points that w separates worst
 * come in. A side's points all project to the same place on w when its weights are right, which is what the refinement
 * works on. The Gram matrix of the active points, lifted by one coordinate per side, is held as R'R and updated in place.
 */
#include "hull.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "factor.h"
#include "linear.h"

enum {
    SHORTLIST = 64, /* points of each side that are priced at every step */
    COMING = 3,     /* of which so many may come in at once: more need fewer steps, but more of them leave again */
};
static const double DELICATE = 1e-6; /* |w|^2, in units of the points' own size, below which rounding matters */

struct Solver {
    const double *X;
    const float *single;
    double longest;
    int64_t d, cap;
    Crew *crew;
    /* the active set, in the order of the columns of R */
    int64_t k;
    int64_t *place;
    signed char *side; /* +1: A, -1: B */
    double *weight;
    double **row;  /* its signed row, relative to the origin */
    double *R, *ya, *yb, *x, *g, *z, *t;
    double *rows;
    double lift; /* squared lifting coordinate */
    double *origin, *w, *normal, *point;
    /* the shortlist */
    int64_t *list_a, *list_b, n_list_a, n_list_b;
    float *price, *w_single;
    int64_t priced;
    double lower, upper, low_a, high_b;
    int64_t steps, pricings;
};

Solver *solver_new(const double *X, const float *single, double longest, int64_t d, int64_t most)
{
    Solver *s = calloc(1, sizeof *s);
    int64_t cap = (d + 2 < most ? d + 2 : most) + 2;
    s->X = X, s->single = single, s->longest = longest, s->d = d, s->cap = cap;
    s->place = malloc(sizeof(int64_t) * cap);
    s->side = malloc(cap);
    s->weight = malloc(sizeof(double) * cap);
    s->row = malloc(sizeof(double *) * cap);
    s->rows = aligned_alloc(64, (sizeof(double) * cap * d + 63) / 64 * 64);
    for (int64_t i = 0; i < cap; i++) s->row[i] = s->rows + i * d;
    s->R = malloc(sizeof(double) * cap * cap);
    double **vectors[] = {&s->ya, &s->yb, &s->x, &s->g, &s->z, &s->t};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) *vectors[i] = malloc(sizeof(double) * cap);
    double **wide[] = {&s->origin, &s->w, &s->normal, &s->point};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) *wide[i] = malloc(sizeof(double) * d);
    s->w_single = malloc(sizeof(float) * d);
    s->list_a = malloc(sizeof(int64_t) * SHORTLIST);
    s->list_b = malloc(sizeof(int64_t) * SHORTLIST);
    return s;
}

void solver_free(Solver *s)
{
    void *all[] = {s->place, s->side, s->weight, s->row, s->rows, s->R, s->ya, s->yb, s->x, s->g, s->z, s->t,
                   s->origin, s->w, s->normal, s->point, s->list_a, s->list_b, s->price, s->w_single, s};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

void solver_share(Solver *s, Crew *crew) { s->crew = crew; }

/* ---- passes over the active rows, with the help of other threads where there are many ---- */

typedef struct {
    const Solver *s;
    const double *weight;
    double *out;
    int64_t share;
} Pass;

static int shares(const Solver *s) { return s->crew && s->k * s->d > 1 << 15 ? crew_size(s->crew) : 1; }

static void project_share(void *context, int64_t task, int worker)
{
    (void)worker;
    const Pass *p = context;
    int64_t from = task * p->share, n = p->s->k - from < p->share ? p->s->k - from : p->share;
    if (n > 0) project_rows(p->s->row + from, p->s->d, n, p->weight, p->out + from);
}

static void combine_share(void *context, int64_t task, int worker)
{
    (void)worker;
    const Pass *p = context;
    int64_t from = task * p->share, n = p->s->d - from < p->share ? p->s->d - from : p->share;
    if (n > 0) combine_rows(p->s->row, from, n, p->s->k, p->weight, p->out);
}

/* out = rows . vector */
static void project_active(const Solver *s, const double *vector, double *out)
{
    int n = shares(s);
    Pass pass = {s, vector, out, ((s->k + n - 1) / n + 3) / 4 * 4}; /* four at a time, however many share: same rounding */
    if (n == 1)
        project_share(&pass, 0, 0);
    else
        crew_run(s->crew, project_share, &pass, n);
}

/* out = sum of weight times rows */
static void combine_active(const Solver *s, const double *weight, double *out)
{
    int n = shares(s);
    Pass pass = {s, weight, out, (s->d + n - 1) / n};
    if (n == 1)
        combine_share(&pass, 0, 0);
    else
        crew_run(s->crew, combine_share, &pass, n);
}

/* ---- the active set ---- */

static void set_row(const Solver *s, double *row, int64_t place, signed char side)
{
    const double *x = s->X + place * s->d;
    for (int64_t i = 0; i < s->d; i++) row[i] = side * (x[i] - s->origin[i]);
}

/* Take a point into the active set with weight 0; 0 if it lies in the affine hull of the set already. */
static int enter(Solver *s, int64_t place, signed char side)
{
    int64_t k = s->k, d = s->d;
    if (k >= s->cap) return 0;
    double *q = s->row[k], *g = s->g;
    set_row(s, q, place, side);
    project_active(s, q, g);
    for (int64_t i = 0; i < k; i++) g[i] += s->side[i] == side ? s->lift : 0;
    double own = dot(q, q, d) + s->lift;
    factor_forward(s->R, s->cap, k, g);
    double pivot = own - dot(g, g, k);
    if (pivot < 1e-4 * own) {
        /* Cancellation: take the residual of the point itself, and correct the new column by it. */
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

/* Take the point in column j out of the active set. */
static void leave(Solver *s, int64_t j)
{
    int64_t k = s->k;
    double *row = s->row[j];
    size_t rest = (size_t)(k - 1 - j);
    memmove(s->row + j, s->row + j + 1, sizeof(double *) * rest);
    s->row[k - 1] = row;
    memmove(s->place + j, s->place + j + 1, sizeof(int64_t) * rest);
    memmove(s->side + j, s->side + j + 1, rest);
    memmove(s->weight + j, s->weight + j + 1, sizeof(double) * rest);
    factor_drop(s->R, s->cap, k, j, s->ya, s->yb);
    s->k = k - 1;
}

/* ---- one step ---- */

/* multipliers (la, lb) with M (la, lb) = (ra, rb), M the Gram matrix of ya and yb */
static void multipliers(const Solver *s, double ra, double rb, double *la, double *lb)
{
    double aa = dot(s->ya, s->ya, s->k), bb = dot(s->yb, s->yb, s->k), ab = dot(s->ya, s->yb, s->k);
    double det = aa * bb - ab * ab;
    *la = (ra * bb - rb * ab) / det;
    *lb = (rb * aa - ra * ab) / det;
}

/* x: the weights that make |w| least on the affine hulls of the two active sets */
static void least(Solver *s)
{
    double la, lb;
    multipliers(s, 1, 1, &la, &lb);
    for (int64_t i = 0; i < s->k; i++) s->x[i] = la * s->ya[i] + lb * s->yb[i];
    factor_backward(s->R, s->cap, s->k, s->x);
}

static double renew_w(Solver *s, const double *weight)
{
    combine_active(s, weight, s->w);
    return dot(s->w, s->w, s->d);
}

/*
 * Correct weights x whose w is known until each side projects to one place, to `tolerance` of |w|^2. Rounding only matters
 * where w is small: elsewhere nothing is done.
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
        multipliers(s, -dot(s->ya, s->z, k), -dot(s->yb, s->z, k), &la, &lb);
        for (int64_t i = 0; i < k; i++) s->z[i] += la * s->ya[i] + lb * s->yb[i];
        factor_backward(s->R, s->cap, k, s->z);
        for (int64_t i = 0; i < k; i++) x[i] += s->z[i];
        square = renew_w(s, x);
    }
    return square;
}

/* Go to the least |w| that the active set allows with weights >= 0, dropping points on the way; returns |w|^2. */
static double descend(Solver *s, double tolerance)
{
    for (;;) {
        least(s);
        double square = renew_w(s, s->x);
        square = refine(s, s->x, square, tolerance);
        double step = 1;
        int64_t first = -1;
        for (int64_t i = 0; i < s->k; i++)
            if (s->x[i] <= 0) {
                double reach = s->weight[i] / (s->weight[i] - s->x[i]);
                if (!(reach >= 0)) reach = 0;
                if (first < 0 || reach < step) step = reach, first = i;
            }
        if (first < 0) {
            memcpy(s->weight, s->x, sizeof(double) * s->k);
            return square;
        }
        for (int64_t i = 0; i < s->k; i++) s->weight[i] += step * (s->x[i] - s->weight[i]);
        s->weight[first] = 0;
        for (int64_t i = s->k - 1; i >= 0; i--)
            if (s->weight[i] <= 0 && s->x[i] <= 0) leave(s, i);
    }
}

/* ---- pricing ---- */

/* The places with the smallest keys, at most SHORTLIST of them. */
static int64_t smallest(Points p, const float *key, int64_t *out)
{
    float top[SHORTLIST]; /* a heap, the largest on top */
    int64_t held = 0;
    for (int64_t i = 0; i < p.n; i++) {
        if (held == SHORTLIST && key[i] >= top[0]) continue;
        int64_t hole;
        if (held < SHORTLIST) {
            hole = held++;
            while (hole && top[(hole - 1) / 2] < key[i]) {
                top[hole] = top[(hole - 1) / 2], out[hole] = out[(hole - 1) / 2];
                hole = (hole - 1) / 2;
            }
        } else {
            hole = 0;
            for (;;) {
                int64_t child = 2 * hole + 1;
                if (child >= held) break;
                if (child + 1 < held && top[child + 1] > top[child]) child++;
                if (top[child] <= key[i]) break;
                top[hole] = top[child], out[hole] = out[child];
                hole = child;
            }
        }
        top[hole] = key[i], out[hole] = p.places[i];
    }
    return held;
}

typedef struct {
    const Solver *s;
    Points points;
} Stripe;

enum { STRIPE = 256 };

static void price_stripe(void *context, int64_t task, int worker)
{
    (void)worker;
    const Stripe *stripe = context;
    const Solver *s = stripe->s;
    int64_t from = task * STRIPE, n = stripe->points.n - from < STRIPE ? stripe->points.n - from : STRIPE;
    project_single(s->single, s->d, stripe->points.places + from, n, s->w_single, s->price + from);
}

/*
 * The least projection of some points on sign * w, and the shortlist of those that come near it. All are looked at in single
 * precision; those that its error leaves open are projected again, so that the result is that of double precision.
 */
static double least_of(Solver *s, Points p, double sign, double length, int64_t *list, int64_t *n_list)
{
    if (s->priced < p.n) {
        free(s->price);
        s->price = malloc(sizeof(float) * p.n);
        s->priced = p.n;
    }
    for (int64_t i = 0; i < s->d; i++) s->w_single[i] = (float)(sign * s->w[i]);
    Stripe stripe = {s, p};
    int64_t stripes = (p.n + STRIPE - 1) / STRIPE;
    if (s->crew && p.n * s->d > 1 << 18)
        crew_run(s->crew, price_stripe, &stripe, stripes);
    else
        for (int64_t i = 0; i < stripes; i++) price_stripe(&stripe, i, 0);
    *n_list = smallest(p, s->price, list);
    double low = INFINITY, open = INFINITY;
    double error = 1.01 * (double)(s->d + 16) * 0x1p-24 * s->longest * length; /* (d + 3) roundings at most, and w's own */
    for (int64_t i = 0; i < p.n; i++) open = fmin(open, s->price[i]);
    for (int64_t i = 0; i < p.n; i++)
        if (s->price[i] <= open + 2 * error) low = fmin(low, sign * dot(s->X + p.places[i] * s->d, s->w, s->d));
    return sign * low;
}

/* Project every point on w, renew the shortlists, and keep the hyperplane if it is the best so far. */
static double price_all(Solver *s, Points A, Points B, double length)
{
    double low = least_of(s, A, 1, length, s->list_a, &s->n_list_a);
    double high = least_of(s, B, -1, length, s->list_b, &s->n_list_b);
    s->pricings++;
    double lower = (low - high) / length;
    if (lower > s->lower) {
        s->lower = lower, s->low_a = low / length, s->high_b = high / length;
        for (int64_t i = 0; i < s->d; i++) s->normal[i] = s->w[i] / length;
    }
    return lower;
}

/* The projections of a side's shortlist on sign * w, and the least of them. */
typedef struct {
    double value[SHORTLIST], least;
    int64_t n;
} Prices;

static void price_list(const Solver *s, const int64_t *list, int64_t n, double sign, Prices *p)
{
    p->n = n, p->least = INFINITY;
    project(s->X, s->d, list, n, s->w, p->value);
    for (int64_t i = 0; i < n; i++) {
        p->value[i] *= sign;
        p->least = fmin(p->least, p->value[i]);
    }
}

/* ---- states ---- */

struct State {
    size_t size;
    int64_t k;
    double lift;
    double numbers[]; /* origin, weight, ya, yb, the rows of R; then places and sides */
};

State *solver_save(const Solver *s)
{
    size_t k = (size_t)s->k, d = (size_t)s->d, doubles = d + 3 * k + k * (k + 1) / 2;
    size_t size = sizeof(State) + sizeof(double) * doubles + sizeof(int64_t) * k + k;
    State *state = malloc(size);
    state->size = size, state->k = s->k, state->lift = s->lift;
    double *to = state->numbers;
    memcpy(to, s->origin, sizeof(double) * d), to += d;
    memcpy(to, s->weight, sizeof(double) * k), to += k;
    memcpy(to, s->ya, sizeof(double) * k), to += k;
    memcpy(to, s->yb, sizeof(double) * k), to += k;
    for (size_t i = 0; i < k; to += k - i, i++) memcpy(to, s->R + i * s->cap + i, sizeof(double) * (k - i));
    memcpy(to, s->place, sizeof(int64_t) * k);
    memcpy((int64_t *)to + k, s->side, k);
    return state;
}

size_t state_size(const State *state) { return state->size; }
int64_t state_active(const State *state) { return state->k; }

static void load(Solver *s, const State *state)
{
    size_t k = (size_t)state->k, d = (size_t)s->d;
    const double *from = state->numbers;
    s->k = state->k, s->lift = state->lift;
    memcpy(s->origin, from, sizeof(double) * d), from += d;
    memcpy(s->weight, from, sizeof(double) * k), from += k;
    memcpy(s->ya, from, sizeof(double) * k), from += k;
    memcpy(s->yb, from, sizeof(double) * k), from += k;
    for (size_t i = 0; i < k; from += k - i, i++) memcpy(s->R + i * s->cap + i, from, sizeof(double) * (k - i));
    memcpy(s->place, from, sizeof(int64_t) * k);
    memcpy(s->side, (const int64_t *)from + k, k);
    for (size_t i = 0; i < k; i++) set_row(s, s->row[i], s->place[i], s->side[i]);
}

/* Start from a state, or from the two points that face each other along the line of the means. */
static int start(Solver *s, Points A, Points B, const Wanted *wanted, const State *from, Points news, int side)
{
    double clear = wanted->tau + 2 * wanted->slack;
    s->steps = 0, s->pricings = 0;
    s->lower = -INFINITY, s->upper = INFINITY;
    if (from) {
        load(s, from);
        double length = sqrt(renew_w(s, s->weight));
        s->n_list_a = s->n_list_b = 0;
        if (length > 0) {
            least_of(s, news, side, length, side > 0 ? s->list_a : s->list_b, side > 0 ? &s->n_list_a : &s->n_list_b);
            return UNDECIDED;
        }
    }
    for (int64_t i = 0; i < s->d; i++) {
        s->origin[i] = 0.5 * (A.mean[i] + B.mean[i]);
        s->w[i] = A.mean[i] - B.mean[i];
    }
    s->k = 0;
    double length = sqrt(dot(s->w, s->w, s->d));
    double lower = price_all(s, A, B, length > 0 ? length : 1);
    if (length > 0 && lower > clear && wanted->gap == 0) return SEPARABLE;
    if (!(length > 0)) s->lower = -INFINITY;
    s->lift = fmax(squared_distance(s->X + s->list_a[0] * s->d, s->origin, s->d),
                   squared_distance(s->X + s->list_b[0] * s->d, s->origin, s->d));
    if (!(s->lift > 0)) s->lift = 1;
    enter(s, s->list_a[0], 1), enter(s, s->list_b[0], -1);
    s->weight[0] = s->weight[1] = 1;
    return UNDECIDED;
}

/* How far w may be from the difference of two points of the hulls, as the weights do not sum to 1 exactly. */
static double astray(const Solver *s)
{
    double sum_a = 0, sum_b = 0;
    for (int64_t i = 0; i < s->k; i++) *(s->side[i] > 0 ? &sum_a : &sum_b) += s->weight[i];
    return 2 * s->longest * (fabs(sum_a - 1) + fabs(sum_b - 1));
}

/* Where the active points of a side lie on w: with the right weights all at one place, so one of them tells. */
static double level_of(const Solver *s, signed char side)
{
    int64_t heaviest = -1;
    for (int64_t i = 0; i < s->k; i++)
        if (s->side[i] == side && (heaviest < 0 || s->weight[i] > s->weight[heaviest])) heaviest = i;
    return dot(s->X + s->place[heaviest] * s->d, s->w, s->d);
}

/* Take in the points of a side that lie worst, none far better than the worst of all; how many came. */
static int take_in(Solver *s, const int64_t *list, Prices *p, signed char side, double level, double worst)
{
    int came = 0;
    for (int turn = 0; turn < COMING; turn++) {
        int64_t next = -1;
        for (int64_t i = 0; i < p->n; i++)
            if (next < 0 || p->value[i] < p->value[next]) next = i;
        if (next < 0 || !(level - p->value[next] > (turn ? 0.5 : 0.1) * worst)) break;
        came += enter(s, list[next], side);
        p->value[next] = INFINITY;
    }
    return came;
}

int solve(Solver *s, Points A, Points B, const Wanted *wanted, const State *from, Points news, int side)
{
    double tau = wanted->tau, slack = 2 * wanted->slack, gap = wanted->gap;
    if (start(s, A, B, wanted, from, news, side) == SEPARABLE) return SEPARABLE;
    double fine = gap > 0 ? 0.1 * gap : 1e-3, before = INFINITY;
    int stalled = 0, pressed = gap > 0;
    for (s->steps = 0; s->steps < wanted->max_steps; s->steps++) {
        double square = descend(s, fine), length = sqrt(square);
        s->upper = length + astray(s);
        if (s->upper + slack <= tau || length == 0) return OVERLAPPING;
        stalled = square < before * (1 - 1e-12) ? 0 : stalled + 1;
        before = fmin(before, square);
        if (stalled == 5 && !pressed) stalled = 0, pressed = 1, fine = 1e-7; /* near the limit: look closer */
        Prices a, b;
        double level_a = level_of(s, 1), level_b = -level_of(s, -1);
        price_list(s, s->list_a, s->n_list_a, 1, &a);
        price_list(s, s->list_b, s->n_list_b, -1, &b);
        double lower = (fmin(a.least, level_a) + fmin(b.least, level_b)) / length;
        int good = gap > 0 ? lower >= length * (1 - 0.5 * gap) - slack : lower > fmax(0.3 * length, tau + slack);
        double worst = fmax(fmax(level_a - a.least, level_b - b.least), 0);
        if (!good && stalled < 5) {
            int came = take_in(s, s->list_a, &a, 1, level_a, worst);
            came += take_in(s, s->list_b, &b, -1, level_b, worst);
            if (came) continue;
        }
        double all = price_all(s, A, B, length);
        if (gap > 0 ? all >= length * (1 - gap) - slack : all > tau + slack) break;
        if (stalled >= 10) break;
    }
    return s->lower > tau + slack ? SEPARABLE : UNDECIDED;
}

const double *solver_normal(const Solver *s) { return s->normal; }
double solver_lower(const Solver *s) { return s->lower; }
double solver_upper(const Solver *s) { return s->upper; }
double solver_low_a(const Solver *s) { return s->low_a; }
double solver_high_b(const Solver *s) { return s->high_b; }
int64_t solver_steps(const Solver *s) { return s->steps; }
int64_t solver_pricings(const Solver *s) { return s->pricings; }

int64_t solver_active(const Solver *s, int64_t *places, double *weight, signed char *side)
{
    memcpy(places, s->place, sizeof(int64_t) * s->k);
    memcpy(weight, s->weight, sizeof(double) * s->k);
    memcpy(side, s->side, (size_t)s->k);
    return s->k;
}
