/* Many pairs of hulls on several threads; called from Python. */
#include <stdlib.h>
#include <string.h>

#include "hull.h"
#include "linear.h"
#include "parallel.h"

typedef struct {
    const double *X;
    int64_t d;
    const int64_t *group_start, *places, *pairs;
    Wanted wanted;
    Solver **solver;
    signed char *verdict;
    double *lower, *upper, *normal, *weight;
    double *mean;     /* mean of each group of several points */
    int64_t *mean_at; /* index of a group's mean */
    int64_t *steps, *active, *place;
    signed char *side;
} Batch;

static void solve_pair(void *context, int64_t task, int worker)
{
    Batch *b = context;
    Solver *s = b->solver[worker];
    Points hull[2];
    for (int i = 0; i < 2; i++) {
        int64_t group = b->pairs[2 * task + i], from = b->group_start[group];
        int64_t n = b->group_start[group + 1] - from;
        const double *mean = n > 1 ? b->mean + b->mean_at[group] * b->d : b->X + b->places[from] * b->d;
        hull[i] = (Points){b->places + from, n, mean};
    }
    b->verdict[task] = (signed char)solve(s, hull[0], hull[1], &b->wanted, NULL, (Points){0}, 1);
    b->lower[task] = solver_lower(s), b->upper[task] = solver_upper(s), b->steps[task] = solver_steps(s);
    if (!b->normal) return;
    int64_t room = b->d + 4;
    memcpy(b->normal + task * b->d, solver_normal(s), sizeof(double) * b->d);
    b->active[task] = solver_active(s, b->place + task * room, b->weight + task * room, b->side + task * room);
}

static void find_mean(void *context, int64_t task, int worker)
{
    (void)worker;
    Batch *b = context;
    int64_t from = b->group_start[task], n = b->group_start[task + 1] - from;
    if (n < 2) return;
    double *mean = b->mean + b->mean_at[task] * b->d;
    for (int64_t i = 0; i < n; i++) add_scaled(mean, 1.0 / (double)n, b->X + b->places[from + i] * b->d, b->d);
}

/* Decide pairs of groups of rows of X. Certificates (normal, active points and weights) are written unless NULL. */
void solve_pairs(const double *X, const float *single, double longest, int64_t d, const int64_t *group_start,
                 int64_t groups, const int64_t *places, const int64_t *pairs, int64_t n_pairs, double tau, double slack,
                 double gap, int64_t max_steps, int threads,
                 signed char *verdict, double *lower, double *upper, int64_t *steps, double *normal, int64_t *active,
                 int64_t *place, double *weight, signed char *side)
{
    Crew *crew = crew_new(threads);
    threads = crew_size(crew);
    Batch b = {X, d, group_start, places, pairs, {tau, slack, gap, max_steps}, NULL, verdict, lower, upper, normal, weight,
               NULL, malloc(sizeof(int64_t) * (groups + 1)), steps, active, place, side};
    int64_t means = 0, most = 0;
    for (int64_t i = 0; i < groups; i++) {
        b.mean_at[i] = means;
        means += group_start[i + 1] - group_start[i] > 1;
    }
    b.mean = calloc((size_t)(means * d) + 1, sizeof(double));
    for (int64_t i = 0; i < n_pairs; i++) {
        int64_t one = pairs[2 * i], other = pairs[2 * i + 1];
        int64_t both = group_start[one + 1] - group_start[one] + group_start[other + 1] - group_start[other];
        if (both > most) most = both;
    }
    b.solver = malloc(sizeof(Solver *) * threads);
    for (int i = 0; i < threads; i++) b.solver[i] = solver_new(X, single, longest, d, most);
    crew_run(crew, find_mean, &b, groups);
    if (n_pairs == 1) solver_share(b.solver[0], crew);
    crew_run(crew, solve_pair, &b, n_pairs);
    for (int i = 0; i < threads; i++) solver_free(b.solver[i]);
    free(b.solver), free(b.mean), free(b.mean_at);
    crew_free(crew);
}
