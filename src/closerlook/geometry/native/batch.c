/* Many pairs of hulls on several threads; called from Python. */
#include <string.h>

#include "engine.h"
#include "hull.h"
#include "linear.h"
#include "parallel.h"

typedef struct {
    const double *X;
    int64_t d;
    const int64_t *group_start, *places, *pairs;
    int64_t groups, n_pairs;
    int threads;
    const float *single;
    double longest;
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

static void solve_all(void *arguments)
{
    Batch *b = arguments;
    Crew *crew = crew_new(b->threads);
    int64_t means = 0, most = 0;
    b->mean_at = allocate(b->groups + 1, sizeof(int64_t));
    for (int64_t i = 0; i < b->groups; i++) {
        b->mean_at[i] = means;
        means += b->group_start[i + 1] - b->group_start[i] > 1;
    }
    b->mean = allocate_zeros(means * b->d + 1, sizeof(double));
    for (int64_t i = 0; i < b->n_pairs; i++) {
        int64_t one = b->pairs[2 * i], other = b->pairs[2 * i + 1];
        int64_t both = b->group_start[one + 1] - b->group_start[one] + b->group_start[other + 1] - b->group_start[other];
        if (both > most) most = both;
    }
    b->solver = allocate(crew_size(crew), sizeof(Solver *));
    for (int i = 0; i < crew_size(crew); i++) b->solver[i] = solver_new(b->X, b->single, b->longest, b->d, most);
    crew_run(crew, find_mean, b, b->groups);
    if (b->n_pairs == 1) solver_share(b->solver[0], crew);
    crew_run(crew, solve_pair, b, b->n_pairs);
}

Status solve_pairs(const double *X, const float *single, double longest, int64_t d, const int64_t *group_start, int64_t groups,
                   const int64_t *places, const int64_t *pairs, int64_t n_pairs, double tau, double slack, double gap,
                   int64_t max_steps, int threads, signed char *verdict, double *lower, double *upper, int64_t *steps,
                   double *normal, int64_t *active, int64_t *place, double *weight, signed char *side)
{
    Batch b = {.X = X, .d = d, .group_start = group_start, .places = places, .pairs = pairs, .groups = groups,
               .n_pairs = n_pairs, .threads = threads, .single = single, .longest = longest,
               .wanted = {tau, slack, gap, max_steps, 1}, .verdict = verdict, .lower = lower, .upper = upper, .normal = normal,
               .weight = weight, .steps = steps, .active = active, .place = place, .side = side};
    return call_single(solve_all, &b);
}
