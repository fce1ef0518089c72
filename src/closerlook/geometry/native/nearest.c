/*
 * Distances from many points to one hull: the active-set method of hull.c with a single point on one side, from inner
 * products alone. Those of the hull's points are computed once, so a scan of all points costs a few additions for each active
 * point in any number of dimensions.
 */
#include <math.h>
#include <string.h>

#include "engine.h"
#include "factor.h"
#include "linear.h"
#include "parallel.h"

typedef struct {
    int64_t cap, k;
    int64_t *active;
    double *R, *y, *x, *weight, *g;
    double *value; /* w . x_j for every point of the hull */
} Search;

typedef struct {
    const double *K; /* n x n inner products of the hull's points */
    int64_t n;
    const double *S; /* queries x n inner products of queries and points */
    const double *square; /* |query|^2 */
    const double *cutoff; /* stop once the lower bound exceeds this distance */
    double gap;
    int64_t max_steps;
    double *lower, *upper;
    Search *search;
} Job;

static double inner(const Job *job, const double *S, double square, int64_t i, int64_t j)
{
    return job->K[i * job->n + j] - S[i] - S[j] + square + 1; /* lifted by one, as all distances are near one */
}

static int enter(const Job *job, Search *s, const double *S, double square, int64_t point)
{
    int64_t k = s->k;
    if (k >= s->cap) return 0;
    double *g = s->g;
    for (int64_t i = 0; i < k; i++) g[i] = inner(job, S, square, s->active[i], point);
    double own = inner(job, S, square, point, point);
    factor_forward(s->R, s->cap, k, g);
    double pivot = own - dot(g, g, k);
    if (!(pivot > 1e-12 * own)) return 0;
    double r = sqrt(pivot);
    for (int64_t i = 0; i < k; i++) s->R[i * s->cap + k] = g[i];
    s->R[k * s->cap + k] = r;
    s->y[k] = (1 - dot(g, s->y, k)) / r;
    s->active[k] = point, s->weight[k] = 0;
    s->k = k + 1;
    return 1;
}

static void leave(Search *s, int64_t j)
{
    int64_t k = s->k;
    size_t rest = (size_t)(k - 1 - j);
    memmove(s->active + j, s->active + j + 1, sizeof(int64_t) * rest);
    memmove(s->weight + j, s->weight + j + 1, sizeof(double) * rest);
    factor_drop(s->R, s->cap, k, j, s->y, NULL);
    s->k = k - 1;
}

/* Weights that minimise the distance on the active points, as far as they stay positive. */
static void descend(Search *s)
{
    for (;;) {
        int64_t k = s->k, first = -1;
        double total = dot(s->y, s->y, k), step = 1;
        for (int64_t i = 0; i < k; i++) s->x[i] = s->y[i] / total;
        factor_backward(s->R, s->cap, k, s->x);
        for (int64_t i = 0; i < k; i++)
            if (s->x[i] <= 0) {
                double reach = s->weight[i] / (s->weight[i] - s->x[i]);
                if (!(reach >= 0)) reach = 0;
                if (first < 0 || reach < step) step = reach, first = i;
            }
        if (first < 0) {
            memcpy(s->weight, s->x, sizeof(double) * k);
            return;
        }
        for (int64_t i = 0; i < k; i++) s->weight[i] += step * (s->x[i] - s->weight[i]);
        s->weight[first] = 0;
        for (int64_t i = k - 1; i >= 0; i--)
            if (s->weight[i] <= 0 && s->x[i] <= 0) leave(s, i);
    }
}

/* Bounds of the distance from one query to the hull; upper is infinite if rounding stopped the search. */
static void search_one(void *context, int64_t task, int worker)
{
    Job *job = context;
    Search *s = &job->search[worker];
    const double *S = job->S + task * job->n;
    double square = job->square[task], cutoff = job->cutoff[task], best = INFINITY;
    int64_t n = job->n, start = 0;
    for (int64_t j = 0; j < n; j++) {
        double apart = job->K[j * n + j] - 2 * S[j];
        if (apart < best) best = apart, start = j;
    }
    s->k = 0;
    enter(job, s, S, square, start);
    s->weight[0] = 1;
    double lower = 0;
    job->lower[task] = 0, job->upper[task] = INFINITY;
    for (int64_t step = 0; step < job->max_steps; step++) {
        check_stop();
        descend(s);
        for (int64_t j = 0; j < n; j++) s->value[j] = -S[j];
        for (int64_t i = 0; i < s->k; i++) add_scaled(s->value, s->weight[i], job->K + s->active[i] * n, n);
        double at_query = -square, at_hull = 0, least = INFINITY;
        int64_t worst = 0;
        for (int64_t i = 0; i < s->k; i++) {
            at_query += s->weight[i] * S[s->active[i]];
            at_hull += s->weight[i] * s->value[s->active[i]];
        }
        for (int64_t j = 0; j < n; j++)
            if (s->value[j] < least) least = s->value[j], worst = j;
        double length2 = at_hull - at_query;
        if (!(length2 > 1e-7 * (1 + square))) return; /* inside or nearly so: inner products do not have enough digits */
        double length = sqrt(length2), bound = (least - at_query) / length;
        if (bound > lower) lower = bound;
        job->lower[task] = lower;
        if (lower >= cutoff || lower >= length * (1 - job->gap) || !enter(job, s, S, square, worst)) {
            job->upper[task] = lower >= cutoff || lower >= length * (1 - job->gap) ? length : INFINITY;
            return;
        }
    }
}

typedef struct {
    Job job;
    int64_t m, d;
    int threads;
} Queries;

static void search_all(void *arguments)
{
    Queries *q = arguments;
    Job *job = &q->job;
    int64_t n = job->n, cap = (q->d + 2 < n ? q->d + 2 : n) + 1;
    Crew *crew = crew_new(q->threads < q->m ? q->threads : (int)q->m);
    job->search = allocate_zeros(crew_size(crew), sizeof(Search));
    for (int i = 0; i < crew_size(crew); i++) {
        Search *s = &job->search[i];
        s->cap = cap;
        s->active = allocate(cap, sizeof(int64_t));
        s->R = allocate(cap * cap, sizeof(double));
        double **vectors[] = {&s->y, &s->x, &s->weight, &s->g};
        for (size_t v = 0; v < 4; v++) *vectors[v] = allocate(cap, sizeof(double));
        s->value = allocate(n, sizeof(double));
    }
    crew_run(crew, search_one, job, q->m);
}

Status nearest(const double *K, int64_t n, const double *S, const double *square, const double *cutoff, int64_t m, int64_t d,
               double gap, int threads, double *lower, double *upper)
{
    Queries queries = {{K, n, S, square, cutoff, gap, 20 * (d + 20), lower, upper, NULL}, m, d, threads};
    return call_single(search_all, &queries);
}
