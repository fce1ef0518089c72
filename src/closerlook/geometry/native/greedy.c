/*
 * DirectProbe's greedy merging. The union of a candidate pair must be separable from every cluster of each label that its own
 * label overlaps. Most are settled without scanning points: by hyperplanes kept for each pair of labels, on which the extent
 * of every cluster is known, or by spheres; then by the hyperplane stored for this pair of clusters. The solver decides the
 * rest.
 */
#include "greedy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "hull.h"
#include "linear.h"
#include "linkage.h"
#include "memory.h"
#include "parallel.h"
#include "planes.h"

enum {
    CROWD = 16,    /* opposing clusters that are sorted */
    FEW = 8,       /* a union with fewer foes left after the cheapest tests adds no hyperplane for its label */
    LARGE = 24,    /* two clusters with at least this many points keep their hyperplane for their labels */
    STATEFUL = 16, /* a solver state with at least this many active points is kept */
};

/* One call of the solver. */
typedef struct {
    Found found; /* the upper side is the solver's A */
    const State *from;
    int verdict;
    int64_t n_active, *place;
    double *weight;
    signed char *side;
    int64_t steps;
} Trial;

/* Two clusters that may merge. */
typedef struct {
    int64_t a, b, large, small;
    int crowded; /* many foes are left after the cheapest tests */
} Candidate;

struct Greedy {
    const double *X;
    float *single;
    float *frozen_lead;
    int64_t n, frozen, d;
    const int64_t *foe_start, *foe, *block_start, *block;
    double tau, slack, clear;
    Crew *crew;
    Linkage *link;
    Solver **solver;
    Planes *planes;
    Memory *memory;
    int64_t *last_blocker; /* for each slot; -1: none */
    int64_t passed[2];     /* foes of the candidate that were tested first */
    int64_t *rest, rest_n, *place;
    int64_t *members, members_n, **foe_members;
    int64_t news; /* where the smaller part begins in the members; there are none before the solver is needed */
    double *union_mean;
    float union_lead[LEADS], *bound;
    double union_radius;
    Trial *trial;
    Counts counts;
    int64_t *merge_a, *merge_b;
    double *merge_distance;
    int64_t *refusal, refusal_room; /* 4 numbers each */
    int64_t *weight_place, weight_room;
    double *weight;
    signed char *weight_side;
};

Greedy *greedy_new(const double *X, int64_t n, int64_t frozen, int64_t d, int64_t labels, const int64_t *start,
                   const int64_t *order, const double *mass, const double *basis, const int64_t *foe_start,
                   const int64_t *foe, const int64_t *block_start, const int64_t *block, double tau, double slack,
                   double tie, int threads)
{
    Greedy *g = calloc(1, sizeof *g);
    g->X = X, g->n = n, g->frozen = frozen, g->d = d, g->tau = tau, g->slack = slack, g->clear = tau + 2 * slack;
    g->foe_start = foe_start, g->foe = foe, g->block_start = block_start, g->block = block;
    g->crew = crew_new(threads);
    threads = crew_size(g->crew);
    g->link = linkage_new(X, n, d, labels, start, order, mass, basis, tie);
    g->frozen_lead = malloc(sizeof(float) * (frozen + 1) * LEADS);
    for (int64_t i = 0; i < frozen; i++) linkage_lead(g->link, X + (n + i) * d, g->frozen_lead + i * LEADS);
    int64_t numbers = (n + frozen) * d;
    double longest = 0;
    g->single = malloc(sizeof(float) * (numbers + 1));
    for (int64_t i = 0; i < numbers; i++) g->single[i] = (float)X[i];
    for (int64_t i = 0; i < n + frozen; i++) longest = fmax(longest, sqrt(dot(X + i * d, X + i * d, d)));
    g->solver = malloc(sizeof(Solver *) * threads);
    g->foe_members = malloc(sizeof(int64_t *) * threads);
    for (int i = 0; i < threads; i++) {
        g->solver[i] = solver_new(X, g->single, longest, d, n + frozen);
        g->foe_members[i] = malloc(sizeof(int64_t) * (n + 1));
    }
    g->planes = planes_new(g->link, foe_start, foe, g->clear, g->crew);
    g->memory = memory_new(g->link, n + frozen, g->clear);
    g->last_blocker = malloc(sizeof(int64_t) * (n + 1));
    for (int64_t i = 0; i < n; i++) g->last_blocker[i] = -1;
    g->rest = malloc(sizeof(int64_t) * (n + frozen + 1));
    g->place = malloc(sizeof(int64_t) * (n + frozen + 1));
    g->members = malloc(sizeof(int64_t) * (n + 1));
    g->union_mean = malloc(sizeof(double) * d);
    g->bound = malloc(sizeof(float) * (n + frozen + 1));
    g->trial = calloc((size_t)threads, sizeof(Trial));
    for (int i = 0; i < threads; i++) {
        Trial *t = &g->trial[i];
        t->found.normal = malloc(sizeof(double) * d);
        t->place = malloc(sizeof(int64_t) * (d + 4));
        t->weight = malloc(sizeof(double) * (d + 4));
        t->side = malloc(d + 4);
    }
    g->merge_a = malloc(sizeof(int64_t) * (n + 1));
    g->merge_b = malloc(sizeof(int64_t) * (n + 1));
    g->merge_distance = malloc(sizeof(double) * (n + 1));
    return g;
}

void greedy_free(Greedy *g)
{
    int threads = crew_size(g->crew);
    for (int i = 0; i < threads; i++) {
        solver_free(g->solver[i]);
        free(g->foe_members[i]);
        free(g->trial[i].found.normal), free(g->trial[i].place), free(g->trial[i].weight), free(g->trial[i].side);
    }
    planes_free(g->planes);
    memory_free(g->memory);
    linkage_free(g->link);
    crew_free(g->crew);
    void *all[] = {g->single, g->solver, g->foe_members, g->last_blocker, g->rest, g->place, g->members, g->union_mean, g->bound,
                   g->frozen_lead, g->trial, g->merge_a, g->merge_b, g->merge_distance, g->refusal, g->weight_place,
                   g->weight, g->weight_side, g};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

void greedy_add_plane(Greedy *g, int64_t label, int64_t foe, const double *normal)
{
    planes_add(g->planes, label, foe, normal);
}

/* ---- one candidate ---- */

static const double *mean_of(const Greedy *g, int64_t foe) { return (foe < g->n ? g->link->mean : g->X) + foe * g->d; }

/* Whether the direction between the means is the normal of a hyperplane between the union and an opposing cluster. */
static int apart_by_means(Greedy *g, int64_t a, int64_t b, Found *f)
{
    const double *foe_mean = mean_of(g, f->foe);
    double length = sqrt(squared_distance(g->union_mean, foe_mean, g->d));
    if (!(length > 0)) return 0;
    for (int64_t i = 0; i < g->d; i++) f->normal[i] = (g->union_mean[i] - foe_mean[i]) / length;
    f->high = linkage_extreme(g->link, f->foe, f->normal, -1);
    f->low = linkage_extreme_from(g->link, b, f->normal, 1, f->high);
    if (f->low - f->high <= g->clear) return 0;
    f->low = fmin(f->low, linkage_extreme_from(g->link, a, f->normal, 1, f->high));
    return f->low - f->high > g->clear;
}

static void try_foe(void *context, int64_t task, int worker)
{
    Greedy *g = context;
    Trial *t = &g->trial[task];
    Found *f = &t->found;
    Solver *s = g->solver[worker];
    int64_t *members = g->foe_members[worker], n = 1;
    if (f->foe < g->n)
        n = linkage_points(g->link, f->foe, members);
    else
        members[0] = f->foe;
    Wanted wanted = {g->tau, g->slack, 0, 100 * (g->d + 100)};
    const double *mean = mean_of(g, f->foe);
    Points own = {g->members, g->members_n, g->union_mean}, foe = {members, n, mean};
    Points news = {g->members + g->news, g->members_n - g->news, NULL};
    t->verdict = f->turned ? solve(s, foe, own, &wanted, t->from, news, -1) : solve(s, own, foe, &wanted, t->from, news, 1);
    t->steps = solver_steps(s);
    f->low = solver_low_a(s), f->high = solver_high_b(s);
    memcpy(f->normal, solver_normal(s), sizeof(double) * g->d);
    t->n_active = solver_active(s, t->place, t->weight, t->side);
    if (f->turned)
        for (int64_t i = 0; i < t->n_active; i++) t->side[i] = (signed char)-t->side[i];
    f->state = t->verdict == SEPARABLE && t->n_active >= STATEFUL ? solver_save(s) : NULL;
}

static void record_refusal(Greedy *g, int64_t a, int64_t b, const Trial *t)
{
    int64_t at = g->counts.refusals++;
    if (at >= g->refusal_room) {
        g->refusal_room = 2 * g->refusal_room + 64;
        g->refusal = realloc(g->refusal, sizeof(int64_t) * 4 * g->refusal_room);
    }
    int64_t *r = g->refusal + 4 * at, weights = t->verdict == OVERLAPPING ? t->n_active : 0;
    r[0] = a, r[1] = b, r[2] = t->found.foe, r[3] = g->counts.weights;
    if (g->counts.weights + weights > g->weight_room) {
        g->weight_room = 2 * g->weight_room + g->d + 64;
        g->weight_place = realloc(g->weight_place, sizeof(int64_t) * g->weight_room);
        g->weight = realloc(g->weight, sizeof(double) * g->weight_room);
        g->weight_side = realloc(g->weight_side, (size_t)g->weight_room);
    }
    memcpy(g->weight_place + g->counts.weights, t->place, sizeof(int64_t) * weights);
    memcpy(g->weight + g->counts.weights, t->weight, sizeof(double) * weights);
    memcpy(g->weight_side + g->counts.weights, t->side, (size_t)weights);
    g->counts.weights += weights;
}

/* Drop from rest[from..) the clusters whose sphere is disjoint from the union's; n + i is frozen row i. */
static void filter_by_spheres(Greedy *g, int64_t from, int frozen)
{
    const Linkage *l = g->link;
    int64_t kept = from;
    for (int64_t i = from; i < g->rest_n; i++) g->place[i - from] = frozen ? g->rest[i] - g->n : l->seat[g->rest[i]];
    lead_distances(g->union_lead, frozen ? g->frozen_lead : l->lead, g->place, g->rest_n - from, g->bound);
    for (int64_t i = from; i < g->rest_n; i++) {
        double reach = g->union_radius + (frozen ? 0 : l->radius[g->rest[i]]) + g->tau;
        g->rest[kept] = g->rest[i];
        kept += !linkage_beyond(l, g->bound[i - from], reach);
    }
    g->counts.by_sphere += g->rest_n - kept;
    g->rest_n = kept;
}

/* Write to rest the opposing clusters that the cheap tests do not settle. */
static void gather_foes(Greedy *g, int64_t a, int64_t b)
{
    Linkage *l = g->link;
    int64_t label = l->label[a];
    g->rest_n = 0;
    for (int64_t e = g->foe_start[label]; e < g->foe_start[label + 1]; e++) {
        int64_t from = g->rest_n, foe = g->foe[e], n = l->alive_n[foe];
        g->counts.foes += n;
        int64_t kept = planes_filter(g->planes, e, a, b, g->rest + from, planes_foes(g->planes, e, a, b, g->rest + from));
        g->counts.by_plane += n - kept;
        g->rest_n = from + kept;
        filter_by_spheres(g, from, 0);
    }
    int64_t from = g->rest_n;
    for (int64_t i = g->block_start[label]; i < g->block_start[label + 1]; i++) g->rest[g->rest_n++] = g->n + g->block[i];
    g->counts.foes += g->rest_n - from;
    filter_by_spheres(g, from, 1);
}

static int64_t size_of(const Greedy *g, int64_t foe) { return foe < g->n ? g->link->size[foe] : 1; }

/* Move the largest clusters to the front: they block more often. */
static void sort_foes(Greedy *g)
{
    /* sort only the first few entries: the order of the rest does not matter */
    int64_t front = g->rest_n < CROWD ? g->rest_n : CROWD;
    for (int64_t i = 0; i < front; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < g->rest_n; j++)
            if (size_of(g, g->rest[j]) > size_of(g, g->rest[best])) best = j;
        int64_t t = g->rest[i];
        g->rest[i] = g->rest[best], g->rest[best] = t;
    }
}

/* Let the solver decide the union against some foes, one on each thread; returns 0 if one of them blocks. */
static int solve_foes(Greedy *g, const Candidate *c, const int64_t *foes, int64_t n)
{
    Linkage *l = g->link;
    if (!g->members_n) {
        g->news = linkage_points(l, c->large, g->members);
        g->members_n = g->news + linkage_points(l, c->small, g->members + g->news);
    }
    for (int64_t i = 0; i < n; i++) {
        Trial *t = &g->trial[i];
        t->found.foe = foes[i];
        t->from = memory_state(g->memory, c->large, foes[i], &t->found.turned);
    }
    solver_share(g->solver[0], n == 1 ? g->crew : NULL);
    crew_run(g->crew, try_foe, g, n);
    for (int64_t i = 0; i < n; i++) {
        const Trial *t = &g->trial[i];
        int64_t foe = t->found.foe;
        if (t->verdict != SEPARABLE) { /* discard the tests after the first failure, as if they were made one at a time */
            g->counts.undecided += t->verdict == UNDECIDED;
            g->last_blocker[c->a] = g->last_blocker[c->b] = foe;
            record_refusal(g, c->a, c->b, t);
            for (int64_t j = i; j < n; j++) free(g->trial[j].found.state);
            return 0;
        }
        g->counts.solved++, g->counts.steps += t->steps;
        memory_keep(g->memory, c->large, &t->found);
        if (foe < g->n && c->crowded && l->size[foe] + g->members_n >= LARGE)
            planes_add(g->planes, l->label[c->a], l->label[foe], t->found.normal);
    }
    return 1;
}

/* Whether the hyperplane stored for one of the parts, or for larger foes the line of the means, separates the union. */
static int apart_cheaply(Greedy *g, const Candidate *c, int64_t foe)
{
    if (memory_recall(g->memory, c->large, c->small, foe, 1) || memory_recall(g->memory, c->small, c->large, foe, 0)) {
        g->counts.by_memory++;
        return 1;
    }
    int turned;
    if (memory_state(g->memory, c->large, foe, &turned)) return 0; /* the solver was needed before */
    Found found = {.foe = foe, .normal = g->trial[0].found.normal};
    if (!apart_by_means(g, c->large, c->small, &found)) return 0;
    g->counts.by_means++;
    memory_keep(g->memory, c->large, &found);
    return 1;
}

/* Test the cluster that last blocked a part before all others; returns 0 if it blocks the union, too. */
static int pass_blocker(Greedy *g, const Candidate *c, int64_t part)
{
    int64_t foe = g->last_blocker[part];
    if (foe < 0) return 1;
    if (foe < g->n) foe = g->link->owner[foe];
    if (foe == g->passed[0] || foe == g->passed[1]) return 1;
    g->passed[part == c->b] = foe;
    return apart_cheaply(g, c, foe) || solve_foes(g, c, &foe, 1);
}

/* Whether a and b may merge. */
static int allowed(Greedy *g, int64_t a, int64_t b)
{
    Linkage *l = g->link;
    Candidate c = {a, b, l->size[a] >= l->size[b] ? a : b, l->size[a] >= l->size[b] ? b : a, 0};
    planes_tick(g->planes);
    g->union_radius = linkage_union(l, a, b, g->union_mean, g->union_lead);
    g->members_n = 0, g->passed[0] = g->passed[1] = -1;
    if (!pass_blocker(g, &c, a) || !pass_blocker(g, &c, b)) return 0;
    gather_foes(g, a, b);
    int64_t kept = 0;
    c.crowded = g->rest_n >= FEW;
    for (int64_t i = 0; i < g->rest_n; i++) {
        int64_t foe = g->rest[i];
        if (foe != g->passed[0] && foe != g->passed[1] && !apart_cheaply(g, &c, foe)) g->rest[kept++] = foe;
    }
    g->rest_n = kept;
    sort_foes(g);
    int threads = crew_size(g->crew);
    for (int64_t at = 0, n; at < g->rest_n; at += n) {
        n = g->rest_n - at < threads ? g->rest_n - at : threads;
        if (!solve_foes(g, &c, g->rest + at, n)) return 0;
    }
    return 1;
}

int greedy_run(Greedy *g, double seconds)
{
    double end = seconds_now() + seconds;
    Linkage *l = g->link;
    do {
        if (!linkage_prepare(l, g->crew)) continue;
        int64_t a, b;
        double distance;
        if (!linkage_closest(l, &a, &b, &distance)) return 1;
        if (!allowed(g, a, b)) {
            memory_discard(g->memory);
            refused_add(l->refused, a, b);
            continue;
        }
        int64_t at = g->counts.merges++, blocker = g->last_blocker[a] >= 0 ? g->last_blocker[a] : g->last_blocker[b];
        g->merge_a[at] = l->first[a], g->merge_b[at] = l->first[b], g->merge_distance[at] = distance;
        int64_t slot = linkage_merge(l, a, b), gone = slot == a ? b : a;
        g->last_blocker[slot] = blocker;
        memory_confirm(g->memory, slot);
        planes_merge(g->planes, slot, gone);
    } while (seconds_now() < end);
    return 0;
}

Counts greedy_counts(const Greedy *g) { return g->counts; }

void greedy_owners(const Greedy *g, int64_t *owner) { memcpy(owner, g->link->owner, sizeof(int64_t) * g->n); }

void greedy_merges(const Greedy *g, int64_t *a, int64_t *b, double *distance)
{
    memcpy(a, g->merge_a, sizeof(int64_t) * g->counts.merges);
    memcpy(b, g->merge_b, sizeof(int64_t) * g->counts.merges);
    memcpy(distance, g->merge_distance, sizeof(double) * g->counts.merges);
}

void greedy_refusals(const Greedy *g, int64_t *a, int64_t *b, int64_t *blocker, int64_t *begin)
{
    for (int64_t i = 0; i < g->counts.refusals; i++) {
        const int64_t *r = g->refusal + 4 * i;
        a[i] = r[0], b[i] = r[1], blocker[i] = r[2], begin[i] = r[3];
    }
    begin[g->counts.refusals] = g->counts.weights;
}

void greedy_weights(const Greedy *g, int64_t *place, double *weight, signed char *side)
{
    memcpy(place, g->weight_place, sizeof(int64_t) * g->counts.weights);
    memcpy(weight, g->weight, sizeof(double) * g->counts.weights);
    memcpy(side, g->weight_side, (size_t)g->counts.weights);
}
