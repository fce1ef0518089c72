#include "price.h"

#include <math.h>

#include "digits.h"
#include "linear.h"

/* The places with the smallest keys, at most SHORTLIST of them, and the smallest first. */
static int64_t smallest(Points p, const float *key, int64_t *out)
{
    float top[SHORTLIST]; /* a max-heap */
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
    int64_t least = 0;
    for (int64_t i = 1; i < held; i++)
        if (top[i] < top[least]) least = i;
    int64_t place = out[least];
    out[least] = out[0], out[0] = place;
    return held;
}

typedef struct {
    const Solver *s;
    Points points;
} Stripe;

enum { STRIPE = SIZE(256, 4) };

static void price_stripe(void *context, int64_t task, int worker)
{
    (void)worker;
    const Stripe *stripe = context;
    const Solver *s = stripe->s;
    int64_t from = task * STRIPE, n = stripe->points.n - from < STRIPE ? stripe->points.n - from : STRIPE;
    project_single(s->single, s->d, stripe->points.places + from, n, s->w_single, s->price + from);
}

/* The projection of a point on w, with the present number of digits. */
static double value(const Solver *s, int64_t place)
{
    const double *row = s->X + place * s->d;
    if (!s->precise) return dot(row, s->w, s->d);
    check_stop();
    return digits_round(digits_dot(row, s->w, s->w_low, s->d));
}

/* Project points on sign * w in single precision; returns the index of the smallest projection. */
static int64_t scan(Solver *s, Points p, double sign)
{
    if (s->priced < p.n) {
        release(s->price);
        s->price = allocate(p.n, sizeof(float));
        s->priced = p.n;
    }
    for (int64_t i = 0; i < s->d; i++) s->w_single[i] = (float)(sign * s->w[i]);
    Stripe stripe = {s, p};
    int64_t stripes = (p.n + STRIPE - 1) / STRIPE, first = 0;
    if (s->crew && p.n * s->d > SIZE(1 << 18, 0))
        crew_run(s->crew, price_stripe, &stripe, stripes);
    else
        for (int64_t i = 0; i < stripes; i++) price_stripe(&stripe, i, 0);
    for (int64_t i = 1; i < p.n; i++)
        if (s->price[i] < s->price[first]) first = i;
    return first;
}

/*
 * Points are scanned in single precision; those within its error bound are projected again, so the result is that of double
 * precision.
 */
double price_points(Solver *s, Points p, double sign, double length, int64_t *list, int64_t *n_list)
{
    int64_t first = scan(s, p, sign);
    double error = 1.01 * (double)(s->d + 16) * 0x1p-24 * s->longest * length; /* at most d + 3 roundings, and that of w */
    double near = s->price[first] + 2 * error, base = sign * value(s, p.places[first]), low = base;
    for (int64_t i = 0; i < p.n; i++) {
        double key = s->price[i];
        if (key <= near) key = sign * value(s, p.places[i]), low = fmin(low, key);
        s->price[i] = (float)(key - base); /* relative to the first, the order of near points survives in a float */
    }
    *n_list = smallest(p, s->price, list);
    return sign * low;
}

void price_roughly(Solver *s, Points A, Points B)
{
    scan(s, A, 1);
    s->n_list_a = smallest(A, s->price, s->list_a);
    scan(s, B, -1);
    s->n_list_b = smallest(B, s->price, s->list_b);
}

double price_all(Solver *s, Points A, Points B, double length)
{
    double low = price_points(s, A, 1, length, s->list_a, &s->n_list_a);
    double high = price_points(s, B, -1, length, s->list_b, &s->n_list_b);
    s->pricings++;
    double lower = (low - high) / length;
    if (lower - s->slack > s->lower) {
        s->lower = lower - s->slack, s->low_a = low / length, s->high_b = high / length;
        for (int64_t i = 0; i < s->d; i++) s->normal[i] = s->w[i] / length;
    }
    return lower;
}

void price_list(const Solver *s, const int64_t *list, int64_t n, double sign, Prices *p)
{
    p->n = n, p->least = INFINITY;
    if (s->rough && !s->exact_w) {
        float values[SHORTLIST];
        for (int64_t i = 0; i < s->d; i++) s->w_single[i] = (float)s->w[i];
        project_single(s->single, s->d, list, n, s->w_single, values);
        for (int64_t i = 0; i < n; i++) p->value[i] = values[i];
    } else {
        project(s->X, s->d, list, n, s->w, p->value);
    }
    for (int64_t i = 0; i < n; i++) {
        p->value[i] *= sign;
        p->least = fmin(p->least, p->value[i]);
    }
}
