/*
 * A candidate: two clusters that may merge. Their union must be separable from every cluster of each label that its own label
 * overlaps. Most are settled without scanning points: by hyperplanes kept for each pair of labels, on which the extent of every
 * cluster is known, or by spheres; then by the hyperplane stored for this pair of clusters. The solver decides the rest.
 */
#include <math.h>
#include <string.h>

#include "greedy.h"
#include "linear.h"
#include "sizes.h"

enum {
    CROWD = SIZE(16, 2),    /* opposing clusters that are sorted */
    FEW = SIZE(8, 1),       /* a union with fewer foes left after the cheapest tests adds no hyperplane for its label */
    LARGE = SIZE(24, 3),    /* two clusters with at least this many points keep their hyperplane for their labels */
    SOME = SIZE(32, 1),     /* points of a cluster that are tested before the others */
    STATEFUL = SIZE(16, 2), /* a solver state with at least this many active points is kept */
};

static const double *mean_of(const Greedy *g, int64_t foe) { return (foe < g->n ? g->link->mean : g->X) + foe * g->d; }

static int64_t size_of(const Greedy *g, int64_t foe) { return foe < g->n ? g->link->size[foe] : 1; }

/* The largest projection of a cluster's first points, or of a frozen row. */
static double highest_of_some(const Greedy *g, int64_t point, const double *w)
{
    double highest = -INFINITY;
    for (int i = 0; point >= 0 && i < SOME; i++, point = point < g->n ? g->link->next[point] : -1)
        highest = fmax(highest, dot(g->X + point * g->d, w, g->d));
    return highest;
}

/* Whether the direction between the means is the normal of a hyperplane between the union and an opposing cluster. */
static int apart_by_means(Greedy *g, int64_t a, int64_t b, Found *f)
{
    const double *foe_mean = mean_of(g, f->foe);
    double length = sqrt(squared_distance(g->union_mean, foe_mean, g->d));
    if (!(length > 0)) return 0;
    for (int64_t i = 0; i < g->d; i++) f->normal[i] = (g->union_mean[i] - foe_mean[i]) / length;
    double some = highest_of_some(g, f->foe, f->normal); /* enough to see most failures without a scan of the foe */
    f->low = linkage_extreme_from(g->link, b, f->normal, 1, some);
    if (f->low - some <= g->clear) return 0;
    f->low = fmin(f->low, linkage_extreme_from(g->link, a, f->normal, 1, some));
    if (f->low - some <= g->clear) return 0;
    f->high = linkage_extreme_from(g->link, f->foe, f->normal, -1, f->low);
    return f->low - f->high > g->clear;
}

/* The points of a cluster, a frozen row or a core; room: where those of a cluster are written to. */
static Points points_of(const Greedy *g, int64_t foe, int64_t *room)
{
    Points p = {room, 1, NULL};
    if (foe >= g->n + g->frozen) {
        p.places = cores_points(g->cores, foe - g->n - g->frozen, &p.n, &p.mean);
        return p;
    }
    if (foe < g->n) return samples_points(g->samples, foe, room);
    p.mean = mean_of(g, foe);
    room[0] = foe;
    return p;
}

static void try_foe(void *context, int64_t task, int worker)
{
    Greedy *g = context;
    Trial *t = &g->trial[task];
    Found *f = &t->found;
    Solver *s = g->solver[worker];
    Wanted wanted = {g->tau, g->slack, 0, 100 * (g->d + 100), 0};
    Points own = {g->members, g->members_n, g->union_mean}, news = t->news;
    Points A = f->turned ? t->points : own, B = f->turned ? own : t->points;
    if (t->likely) /* separable: this needs all points */
        t->verdict = solve(s, A, B, &wanted, t->from, news, f->turned ? -1 : 1), t->steps = solver_steps(s);
    else
        t->verdict = solve_by_samples(s, A, B, &wanted, t->from, news, f->turned ? -1 : 1, &t->steps);
    f->solved = 1, f->low = solver_low_a(s), f->high = solver_high_b(s);
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
        g->refusal = reallocate(g->refusal, 4 * g->refusal_room, sizeof(int64_t));
    }
    int64_t *r = g->refusal + 4 * at, weights = t->verdict == OVERLAPPING ? t->n_active : 0;
    r[0] = a, r[1] = b, r[2] = t->found.foe, r[3] = g->counts.weights;
    if (g->counts.weights + weights > g->weight_room) {
        g->weight_room = 2 * g->weight_room + g->d + 64;
        g->weight_place = reallocate(g->weight_place, g->weight_room, sizeof(int64_t));
        g->weight = reallocate(g->weight, g->weight_room, sizeof(double));
        g->weight_side = reallocate(g->weight_side, g->weight_room, 1);
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

/* ---- cores: see cores.h ---- */

static void list_members(Greedy *g, const Candidate *c)
{
    if (g->members_n) return;
    g->news = linkage_points(g->link, c->small, g->members);
    Points large = samples_points(g->samples, c->large, g->members + g->news);
    if (large.places != g->members + g->news) memcpy(g->members + g->news, large.places, sizeof(int64_t) * large.n);
    g->members_n = g->news + large.n;
}

/* Whether a hyperplane stored for one of the parts and the core of a label separates the union from it. */
static int recall_core(Greedy *g, const Candidate *c, int64_t label)
{
    int64_t core = g->n + g->frozen + label;
    return memory_recall(g->memory, c->large, c->small, core, 1) || memory_recall(g->memory, c->small, c->large, core, 0);
}

/* Let a trial begin with the state of the larger part, or of either part and a large foe; the points of the other part are new. */
static void begin_trial(Greedy *g, const Candidate *c, Trial *t, int64_t foe, int64_t *room)
{
    t->found.foe = foe, t->likely = 0;
    t->points = points_of(g, foe, room);
    t->news = (Points){g->members, g->news, NULL};
    t->from = memory_state(g->memory, c->large, foe, &t->found.turned);
    if (t->from || t->points.n < LARGE_CLUSTER) return;
    t->news = (Points){g->members + g->news, g->members_n - g->news, NULL};
    t->from = memory_state(g->memory, c->small, foe, &t->found.turned);
}

/* Whether the solver separates the union from the core of a label; likely: whether it probably does. */
static int solve_core(Greedy *g, const Candidate *c, int64_t label, int likely)
{
    Trial *t = &g->trial[0];
    list_members(g, c);
    begin_trial(g, c, t, g->n + g->frozen + label, NULL);
    t->likely = likely;
    solver_share(g->solver[0], g->crew);
    try_foe(g, 0, 0);
    if (t->verdict == SEPARABLE) memory_keep(g->memory, c->large, &t->found);
    return t->verdict == SEPARABLE;
}

/* Whether the solver separates a cluster from a foe; its state is kept for later unions. */
static int settle(Greedy *g, int64_t slot, int64_t foe)
{
    Solver *s = g->solver[0];
    Found f = {.foe = foe, .solved = 1, .normal = g->trial[0].found.normal};
    Wanted wanted = {g->tau, g->slack, 0, 100 * (g->d + 100), 0};
    Points own = points_of(g, slot, g->foe_members[0]), other = points_of(g, foe, g->place);
    const State *from = memory_state(g->memory, slot, foe, &f.turned);
    solver_share(s, g->crew);
    int verdict = f.turned ? solve(s, other, own, &wanted, from, own, -1) : solve(s, own, other, &wanted, from, own, 1);
    if (verdict != SEPARABLE) return 0;
    f.low = solver_low_a(s), f.high = solver_high_b(s);
    memcpy(f.normal, solver_normal(s), sizeof(double) * g->d);
    f.state = solver_active_n(s) >= STATEFUL ? solver_save(s) : NULL;
    memory_keep_now(g->memory, slot, &f);
    return 1;
}

/* List the clusters of a foe label that neither the regions nor a core separate from the union. */
static int64_t list_foes(Greedy *g, const Candidate *c, int64_t e, int64_t *slots)
{
    int64_t foe = g->foe[e], kept = 0;
    if (c->kind == CORE) return cores_open(g->cores, g->link->label[c->a], e, slots);
    if (c->kind == MIXED) return planes_foes(g->planes, e, c->a, c->b, slots);
    int apart = c->region >= 0 && c->region != foe;
    if (!cores_size(g->cores, foe)) return planes_foes(g->planes, e, c->a, c->b, slots);
    if (!apart && !cores_is_met(g->cores, c->a, foe) && !cores_is_met(g->cores, c->b, foe)) {
        apart = recall_core(g, c, foe);
        if (apart) cores_union_apart(g->cores, foe);
    }
    int64_t n = apart ? cores_others(g->cores, foe, slots) : planes_foes(g->planes, e, c->a, c->b, slots);
    for (int64_t i = 0; i < n; i++) {
        slots[kept] = slots[i];
        kept += !cores_elsewhere(g->cores, c->region, slots[i]);
    }
    return kept;
}

/* Drop from rest[from..) the clusters of a foe label that a comparison with a core separates from the union. */
static void filter_by_cores(Greedy *g, const Candidate *c, int64_t foe, int64_t from)
{
    int64_t kept = from, label = g->link->label[c->a], inside = 0;
    int apart = 0;
    if (c->kind == MIXED || !cores_size(g->cores, c->kind == CORE ? label : foe)) return;
    for (int64_t i = from; i < g->rest_n; i++) inside += cores_kind(g->cores, g->rest[i]) == CORE;
    if (c->kind == OUTSIDE && inside && cores_useful(g->cores) && !cores_is_met(g->cores, c->a, foe) &&
        !cores_is_met(g->cores, c->b, foe)) {
        apart = solve_core(g, c, foe, 1);
        (apart ? cores_union_apart : cores_union_met)(g->cores, foe);
        cores_count(g->cores, apart);
    }
    for (int64_t i = from; i < g->rest_n; i++) {
        int64_t slot = g->rest[i];
        int settled = apart && cores_kind(g->cores, slot) == CORE;
        if (c->kind == CORE && cores_useful(g->cores) && !cores_is_met(g->cores, slot, label)) {
            int64_t core = g->n + g->frozen + label;
            settled = memory_apart(g->memory, slot, core) || settle(g, slot, core);
            (settled ? cores_set_apart : cores_set_met)(g->cores, slot, label);
            cores_count(g->cores, settled);
        }
        g->rest[kept] = slot;
        kept += !settled;
    }
    g->rest_n = kept;
}

/* Write to rest the opposing clusters that the cheap tests do not settle. */
static void gather_foes(Greedy *g, const Candidate *c)
{
    Linkage *l = g->link;
    int64_t a = c->a, b = c->b, label = l->label[a];
    g->rest_n = 0;
    for (int64_t e = g->foe_start[label]; e < g->foe_start[label + 1]; e++) {
        int64_t from = g->rest_n, *rest = g->rest + from, n = l->alive_n[g->foe[e]];
        g->counts.foes += n;
        int64_t kept = list_foes(g, c, e, rest);
        if (kept) kept = planes_filter(g->planes, e, a, b, rest, kept);
        g->counts.by_plane += n - kept;
        g->rest_n = from + kept;
        filter_by_spheres(g, from, 0);
        filter_by_cores(g, c, g->foe[e], from);
    }
    int64_t from = g->rest_n;
    for (int64_t i = g->block_start[label]; i < g->block_start[label + 1]; i++) g->rest[g->rest_n++] = g->n + g->block[i];
    g->counts.foes += g->rest_n - from;
    filter_by_spheres(g, from, 1);
}

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

/* Block the union: the foe of a trial overlaps it, or may do so. */
static void refuse(Greedy *g, const Candidate *c, const Trial *t)
{
    g->counts.undecided += t->verdict == UNDECIDED;
    g->last_blocker[c->a] = g->last_blocker[c->b] = t->found.foe;
    record_refusal(g, c->a, c->b, t);
}

/* Let the solver decide the union against some foes, one on each thread; returns 0 if one of them blocks. */
static int solve_foes(Greedy *g, const Candidate *c, const int64_t *foes, int64_t n)
{
    Linkage *l = g->link;
    list_members(g, c);
    for (int64_t i = 0; i < n; i++) begin_trial(g, c, &g->trial[i], foes[i], g->foe_members[i]);
    solver_share(g->solver[0], n == 1 ? g->crew : NULL);
    crew_run(g->crew, try_foe, g, n);
    for (int64_t i = 0; i < n; i++) {
        const Trial *t = &g->trial[i];
        int64_t foe = t->found.foe;
        if (t->verdict != SEPARABLE) { /* discard the tests after the first failure, as if they were made one at a time */
            refuse(g, c, t);
            for (int64_t j = i; j < n; j++) release(g->trial[j].found.state);
            return 0;
        }
        g->counts.solved++, g->counts.steps += t->steps;
        memory_keep(g->memory, c->large, &t->found);
        if (foe < g->n && c->crowded && l->size[foe] + g->members_n >= LARGE) {
            const Found *f = &t->found;
            const int64_t own[2] = {c->a, c->b}, other[2] = {foe, foe};
            planes_add_found(g->planes, f->turned ? other : own, f->turned ? own : other, f->low, f->high, f->normal);
        }
    }
    return 1;
}

/* Whether the hyperplane stored for one of the parts, or for larger foes the line of the means, separates the union. */
static int apart_cheaply(Greedy *g, const Candidate *c, int64_t foe)
{
    check_stop();
    int vast = size_of(g, c->large) >= LARGE_CLUSTER; /* the solver scans it faster */
    if (memory_recall(g->memory, c->large, c->small, foe, 1) ||
        (!vast && memory_recall(g->memory, c->small, c->large, foe, 0))) {
        g->counts.by_memory++;
        return 1;
    }
    if (memory_solved(g->memory, c->large, foe)) return 0; /* the line of the means was not enough before */
    if (vast || size_of(g, foe) >= LARGE_CLUSTER) return 0;
    Found found = {.foe = foe, .normal = g->trial[0].found.normal};
    if (!apart_by_means(g, c->large, c->small, &found)) return 0;
    g->counts.by_means++;
    memory_keep(g->memory, c->large, &found);
    return 1;
}

/* The cluster with all points of the foe's side in a proof that the union overlaps a core; -1 if there are several. */
static int64_t overlapped_cluster(const Greedy *g, const Trial *t)
{
    int64_t found = -1;
    for (int64_t i = 0; i < t->n_active; i++) {
        int64_t owner = g->link->owner[t->place[i]];
        if (t->side[i] > 0 || owner == found) continue;
        if (found >= 0) return -1;
        found = owner;
    }
    return found;
}

enum { PASSED, BLOCKED, UNKNOWN };

/* Test the core that contains a foe instead of the foe itself: this also settles all other clusters inside the core. */
static int pass_core(Greedy *g, const Candidate *c, int64_t foe)
{
    if (foe >= g->n || c->kind != OUTSIDE || cores_kind(g->cores, foe) != CORE) return UNKNOWN;
    int64_t label = g->link->label[foe];
    if (c->region >= 0 && c->region != label) return PASSED;
    if (!cores_useful(g->cores) || cores_is_met(g->cores, c->a, label) || cores_is_met(g->cores, c->b, label)) return UNKNOWN;
    if (recall_core(g, c, label) || solve_core(g, c, label, 0)) {
        cores_union_apart(g->cores, label);
        return PASSED;
    }
    Trial *t = &g->trial[0];
    t->found.foe = overlapped_cluster(g, t);
    if (t->verdict == OVERLAPPING && t->found.foe >= 0) {
        refuse(g, c, t);
        return BLOCKED;
    }
    cores_union_met(g->cores, label);
    return UNKNOWN;
}

/* Test the cluster that last blocked a part before all others; returns 0 if it blocks the union, too. */
static int pass_blocker(Greedy *g, const Candidate *c, int64_t part)
{
    int64_t foe = g->last_blocker[part];
    if (foe < 0) return 1;
    if (foe < g->n) foe = g->link->owner[foe];
    if (foe == g->passed[0] || foe == g->passed[1]) return 1;
    g->passed[part == c->b] = foe;
    int core = pass_core(g, c, foe), turned;
    if (core == PASSED || core == BLOCKED) return core == PASSED;
    if (apart_cheaply(g, c, foe)) return 1;
    if (size_of(g, foe) >= LARGE_CLUSTER && !memory_state(g->memory, part, foe, &turned)) settle(g, part, foe);
    return solve_foes(g, c, &foe, 1);
}

/* Whether the hyperplane between the union and an opposing cluster also separates the union from another one. */
static int apart_by_found(Greedy *g, const Candidate *c, const Found *f, int64_t foe)
{
    Found other = *f;
    other.foe = foe, other.state = NULL;
    double *reach = f->turned ? &other.low : &other.high, limit = f->turned ? f->high + g->clear : f->low - g->clear;
    *reach = linkage_extreme_from(g->link, foe, f->normal, f->turned ? 1 : -1, limit);
    if (other.low - other.high <= g->clear) return 0;
    g->counts.by_memory++;
    memory_keep(g->memory, c->large, &other);
    return 1;
}

/* Drop from rest[from..) the clusters that one of the first n hyperplanes just found separates from the union. */
static void filter_by_found(Greedy *g, const Candidate *c, int64_t from, int64_t n)
{
    int64_t kept = from;
    for (int64_t i = from; i < g->rest_n; i++) {
        int apart = 0;
        for (int64_t j = 0; j < n && !apart; j++) apart = apart_by_found(g, c, &g->trial[j].found, g->rest[i]);
        g->rest[kept] = g->rest[i];
        kept += !apart;
    }
    g->rest_n = kept;
}

int candidate_allowed(Greedy *g, int64_t a, int64_t b)
{
    Linkage *l = g->link;
    Candidate c = {a, b, l->size[a] >= l->size[b] ? a : b, l->size[a] >= l->size[b] ? b : a, 0,
                   cores_kind_of_union(g->cores, a, b), cores_region(g->cores, a, b)};
    cores_begin(g->cores);
    planes_tick(g->planes);
    g->union_radius = linkage_union(l, a, b, g->union_mean, g->union_lead);
    g->members_n = 0, g->passed[0] = g->passed[1] = -1;
    if (!pass_blocker(g, &c, a) || !pass_blocker(g, &c, b)) return 0;
    gather_foes(g, &c);
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
        filter_by_found(g, &c, at + n, n);
    }
    return 1;
}
