/*
 * DirectProbe's greedy. A candidate union must be shown apart from every cluster of the labels that its own label meets.
 * Most are settled without looking at points: by hyperplanes kept for each pair of labels, on which every cluster's extent
 * is known, or by spheres. Then by the hyperplane found earlier for this very pair of clusters; what is left is solved.
 */
#include "greedy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hull.h"
#include "linear.h"
#include "linkage.h"
#include "parallel.h"

enum {
    PLANES = 32,   /* hyperplanes kept for two labels */
    CROWD = 16,    /* foes that are sorted */
    LARGE = 24,    /* points of two clusters from which on their hyperplane is kept for their labels */
    STATEFUL = 16, /* active points from which on a solver's state is worth keeping */
};
static const size_t STATE_BYTES = (size_t)1 << 28, MEMORY_BYTES = (size_t)1 << 27, MEMORIES = (size_t)1 << 18;

/* Hyperplanes for two labels, and where each of their clusters lies on them. */
typedef struct {
    int64_t label[2];
    int n;
    double *normal;          /* PLANES x d */
    double *low, *high;      /* PLANES x (points of both labels) */
    int64_t used[PLANES];    /* when the plane last settled something */
} Pool;

/* The hyperplane that last separated two clusters: `a` above, `b` below; for large ones also where the solver stood. */
typedef struct {
    int64_t a, b; /* slot + 1 */
    int64_t tail_a, tail_b; /* the last point that low and high take into account */
    double low, high;
    State *state;
} Memory;

typedef struct {
    Memory *memory;
    int64_t a, b;
    State *state;
} Renewed;

typedef struct {
    int64_t foe; /* slot, or n + i for a frozen row */
    const State *from;
    int turned; /* the foe is the solver's A */
    State *state;
    int verdict;
    double low, high;
    double *normal;
    int64_t n_active, *place;
    double *weight;
    signed char *side;
    int64_t steps;
} Trial;

struct Greedy {
    const double *X;
    float *single;
    float *frozen_lead;
    int64_t n, frozen, d;
    const int64_t *foe_start, *foe, *block_start, *block;
    double tau, slack;
    Crew *crew;
    Linkage *link;
    Solver **solver;
    Pool **pool; /* beside each entry of foe */
    Memory *memory;
    double *memory_normal;
    uint64_t memory_n, sweep;
    size_t state_bytes;
    int64_t *last_blocker; /* of each slot; -1: none */
    int64_t *rest, rest_n;
    Renewed *renewed; /* what was found for the union, should it be made */
    int64_t renewed_n;
    int64_t *members, members_n, **foe_members;
    int64_t news; /* where the smaller part begins among the members */
    double *projection, *union_mean;
    float union_lead[LEADS], *bound;
    double union_radius;
    Trial *trial;
    int64_t clock;
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
    g->X = X, g->n = n, g->frozen = frozen, g->d = d, g->tau = tau, g->slack = slack;
    g->foe_start = foe_start, g->foe = foe, g->block_start = block_start, g->block = block;
    g->crew = crew_new(threads);
    threads = crew_size(g->crew);
    g->link = linkage_new(X, n, d, labels, start, order, mass, basis, tie, g->crew);
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
    g->pool = calloc((size_t)foe_start[labels] + 1, sizeof(Pool *));
    for (g->memory_n = 256; g->memory_n < MEMORIES && (int64_t)g->memory_n < 64 * n;) g->memory_n *= 2;
    while (g->memory_n > 256 && g->memory_n * d * sizeof(double) > MEMORY_BYTES) g->memory_n /= 2;
    g->memory = calloc(g->memory_n, sizeof(Memory));
    g->memory_normal = calloc(g->memory_n * d, sizeof(double)); /* touched only as it is used */
    g->last_blocker = malloc(sizeof(int64_t) * (n + 1));
    for (int64_t i = 0; i < n; i++) g->last_blocker[i] = -1;
    g->rest = malloc(sizeof(int64_t) * (n + frozen + 1));
    g->renewed = malloc(sizeof(Renewed) * (n + frozen + 1));
    g->members = malloc(sizeof(int64_t) * (n + 1));
    g->projection = malloc(sizeof(double) * (n + 1));
    g->union_mean = malloc(sizeof(double) * d);
    g->bound = malloc(sizeof(float) * (n + frozen + 1));
    g->trial = calloc((size_t)threads, sizeof(Trial));
    for (int i = 0; i < threads; i++) {
        Trial *t = &g->trial[i];
        t->normal = malloc(sizeof(double) * d);
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
    for (int64_t label = 0; label < g->link->labels; label++)
        for (int64_t e = g->foe_start[label]; e < g->foe_start[label + 1]; e++) {
            Pool *p = g->pool[e];
            if (!p || g->foe[e] < label) continue; /* both directions hold the same pool */
            free(p->normal), free(p->low), free(p->high), free(p);
        }
    for (uint64_t i = 0; i < g->memory_n; i++) free(g->memory[i].state);
    for (int i = 0; i < threads; i++) {
        solver_free(g->solver[i]);
        free(g->foe_members[i]);
        free(g->trial[i].normal), free(g->trial[i].place), free(g->trial[i].weight), free(g->trial[i].side);
    }
    linkage_free(g->link);
    crew_free(g->crew);
    void *all[] = {g->single, g->solver, g->foe_members, g->pool, g->memory, g->memory_normal, g->last_blocker, g->rest, g->renewed, g->members,
                   g->projection, g->union_mean, g->bound, g->frozen_lead, g->trial, g->merge_a, g->merge_b, g->merge_distance,
                   g->refusal, g->weight_place, g->weight, g->weight_side, g};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* ---- hyperplanes of two labels ---- */

static int64_t entry_of(const Greedy *g, int64_t label, int64_t foe)
{
    for (int64_t e = g->foe_start[label]; e < g->foe_start[label + 1]; e++)
        if (g->foe[e] == foe) return e;
    return -1;
}

static int64_t width_of(const Greedy *g, const Pool *p)
{
    const int64_t *start = g->link->start;
    return start[p->label[0] + 1] - start[p->label[0]] + start[p->label[1] + 1] - start[p->label[1]];
}

/* Where a slot of one of the pool's labels stands in its arrays. */
static int64_t column(const Greedy *g, const Pool *p, int64_t slot)
{
    const int64_t *start = g->link->start;
    if (g->link->label[slot] == p->label[0]) return slot - start[p->label[0]];
    return start[p->label[0] + 1] - start[p->label[0]] + slot - start[p->label[1]];
}

typedef struct {
    const Greedy *g;
    int64_t from;
    int64_t n;
    const double *w;
    double *out;
} Stripe;

static void project_stripe(void *context, int64_t task, int worker)
{
    (void)worker;
    Stripe *s = context;
    int64_t from = task * 512, n = s->n - from < 512 ? s->n - from : 512;
    project(s->g->X + (s->from + from) * s->g->d, s->g->d, NULL, n, s->w, s->out + from);
}

void greedy_add_plane(Greedy *g, int64_t label, int64_t foe, const double *normal)
{
    int64_t e = entry_of(g, label, foe), back = entry_of(g, foe, label);
    Pool *p = g->pool[e];
    if (!p) {
        p = calloc(1, sizeof *p);
        p->label[0] = label < foe ? label : foe, p->label[1] = label < foe ? foe : label;
        int64_t width = width_of(g, p);
        p->normal = malloc(sizeof(double) * PLANES * g->d);
        p->low = malloc(sizeof(double) * PLANES * width);
        p->high = malloc(sizeof(double) * PLANES * width);
        g->pool[e] = g->pool[back] = p;
    }
    int h = p->n;
    if (h < PLANES) {
        p->n++;
    } else {
        h = 0;
        for (int i = 1; i < PLANES; i++)
            if (p->used[i] < p->used[h]) h = i;
    }
    p->used[h] = g->clock;
    memcpy(p->normal + h * g->d, normal, sizeof(double) * g->d);
    int64_t width = width_of(g, p), at = 0;
    double *low = p->low + h * width, *high = p->high + h * width;
    for (int64_t i = 0; i < width; i++) low[i] = INFINITY, high[i] = -INFINITY;
    for (int side = 0; side < 2; side++) {
        int64_t from = g->link->start[p->label[side]], n = g->link->start[p->label[side] + 1] - from;
        Stripe stripe = {g, from, n, normal, g->projection};
        crew_run(g->crew, project_stripe, &stripe, (n + 511) / 512);
        for (int64_t i = 0; i < n; i++) {
            int64_t c = at + g->link->owner[from + i] - from;
            low[c] = fmin(low[c], g->projection[i]);
            high[c] = fmax(high[c], g->projection[i]);
        }
        at += n;
    }
}

/* Drop from rest[from..rest_n) the slots that a hyperplane of the pool keeps apart from the union of a and b. */
static void filter_by_planes(Greedy *g, Pool *p, int64_t a, int64_t b, int64_t from)
{
    int64_t width = width_of(g, p), ca = column(g, p, a), cb = column(g, p, b);
    double clear = g->tau + 2 * g->slack;
    for (int h = 0; h < p->n && g->rest_n > from; h++) {
        const double *low = p->low + h * width, *high = p->high + h * width;
        double union_low = fmin(low[ca], low[cb]), union_high = fmax(high[ca], high[cb]);
        int64_t kept = from, shift = 0;
        /* all slots in rest[from..) have the same label */
        shift = column(g, p, g->rest[from]) - g->rest[from];
        for (int64_t i = from; i < g->rest_n; i++) {
            int64_t c = g->rest[i] + shift;
            int apart = (union_low - high[c] > clear) | (low[c] - union_high > clear);
            g->rest[kept] = g->rest[i];
            kept += !apart;
        }
        if (kept < g->rest_n) p->used[h] = g->clock;
        g->counts.by_plane += g->rest_n - kept;
        g->rest_n = kept;
    }
}

/* ---- hyperplanes of two clusters ---- */

static Memory *memory_of(Greedy *g, int64_t slot, int64_t foe, double **normal)
{
    uint64_t key = (uint64_t)slot * 0x9E3779B97F4A7C15u ^ (uint64_t)foe * 0xC2B2AE3D27D4EB4Fu;
    key ^= key >> 29, key *= 0xBF58476D1CE4E5B9u, key ^= key >> 32;
    *normal = g->memory_normal + (key & (g->memory_n - 1)) * g->d;
    return &g->memory[key & (g->memory_n - 1)];
}

static int64_t tail_of(const Greedy *g, int64_t slot) { return slot < g->n ? g->link->tail[slot] : slot; }

/* The least (sign 1) or largest (sign -1) projection of the points in a list; -1 ends it. */
static double extreme(const Greedy *g, int64_t point, const double *w, double sign)
{
    double least = INFINITY;
    for (; point >= 0; point = point < g->n ? g->link->next[point] : -1)
        least = fmin(least, sign * dot(g->X + point * g->d, w, g->d));
    return sign * least;
}

/* Take into account the points that have joined either cluster since; a union's points follow those of its larger part. */
static void catch_up(const Greedy *g, Memory *m, const double *w)
{
    int64_t a = tail_of(g, m->a - 1), b = tail_of(g, m->b - 1);
    if (m->tail_a != a) m->low = fmin(m->low, extreme(g, g->link->next[m->tail_a], w, 1)), m->tail_a = a;
    if (m->tail_b != b) m->high = fmax(m->high, extreme(g, g->link->next[m->tail_b], w, -1)), m->tail_b = b;
}

static void forget_state(Greedy *g, Memory *m)
{
    g->state_bytes -= state_size(m->state);
    free(m->state);
    m->state = NULL;
}

/* Keep a hyperplane that has the union of a slot with another on one side and a foe on the other. */
static void remember(Greedy *g, int64_t slot, const Trial *t)
{
    double *normal;
    int64_t a = t->turned ? t->foe : slot, b = t->turned ? slot : t->foe;
    Memory *m = memory_of(g, a, b, &normal);
    State *state = m->state;
    if (state && (m->a != a + 1 || m->b != b + 1)) state = NULL, forget_state(g, m);
    *m = (Memory){a + 1, b + 1, tail_of(g, a), tail_of(g, b), t->low, t->high, state};
    memcpy(normal, t->normal, sizeof(double) * g->d);
    g->renewed[g->renewed_n++] = (Renewed){m, a + 1, b + 1, t->state};
}

/* The union was made in this slot: what was found for it holds for the slot from now on. */
static void confirm(Greedy *g, int64_t slot)
{
    for (int64_t i = 0; i < g->renewed_n; i++) {
        Renewed *r = &g->renewed[i];
        Memory *m = r->memory;
        if (m->a != r->a || m->b != r->b) { /* another pair has taken the place */
            free(r->state);
            continue;
        }
        *(m->a == slot + 1 ? &m->tail_a : &m->tail_b) = g->link->tail[slot];
        if (!r->state) continue;
        if (m->state) forget_state(g, m);
        m->state = r->state;
        g->state_bytes += state_size(r->state);
    }
    while (g->state_bytes > STATE_BYTES) { /* let the next ones in the table go: as good as any */
        g->sweep = (g->sweep + 1) & (g->memory_n - 1);
        if (g->memory[g->sweep].state) forget_state(g, &g->memory[g->sweep]);
    }
}

/* The union was not made: a state may hold points of the part that stays outside. */
static void discard(Greedy *g)
{
    for (int64_t i = 0; i < g->renewed_n; i++) free(g->renewed[i].state);
}

/* Whether the hyperplane remembered for (part, foe) also keeps the other part away; its extent is then the union's. */
static int recall(Greedy *g, int64_t part, int64_t other, int64_t foe, int keep)
{
    double *w, clear = g->tau + 2 * g->slack;
    Memory *m = memory_of(g, part, foe, &w);
    int above = m->a == part + 1 && m->b == foe + 1;
    if (!above) {
        m = memory_of(g, foe, part, &w); /* found when the foe grew */
        if (m->a != foe + 1 || m->b != part + 1) return 0;
    }
    catch_up(g, m, w);
    if (m->low - m->high <= clear) return 0;
    double reach = extreme(g, other, w, above ? 1 : -1);
    if (above ? reach - m->high <= clear : m->low - reach <= clear) return 0;
    if (keep) {
        *(above ? &m->low : &m->high) = above ? fmin(m->low, reach) : fmax(m->high, reach);
        g->renewed[g->renewed_n++] = (Renewed){m, m->a, m->b, NULL};
    }
    return 1;
}

static const double *mean_of(const Greedy *g, int64_t foe) { return (foe < g->n ? g->link->mean : g->X) + foe * g->d; }

/* Whether the line of the means is the normal of a hyperplane between the union and a foe. */
static int apart_by_means(Greedy *g, int64_t a, int64_t b, Trial *t)
{
    const double *foe_mean = mean_of(g, t->foe);
    double length = sqrt(squared_distance(g->union_mean, foe_mean, g->d));
    if (!(length > 0)) return 0;
    for (int64_t i = 0; i < g->d; i++) t->normal[i] = (g->union_mean[i] - foe_mean[i]) / length;
    double clear = g->tau + 2 * g->slack;
    t->high = extreme(g, t->foe, t->normal, -1);
    t->low = extreme(g, a, t->normal, 1);
    if (t->low - t->high <= clear) return 0;
    t->low = fmin(t->low, extreme(g, b, t->normal, 1));
    return t->low - t->high > clear;
}

/* ---- one candidate ---- */

static void try_foe(void *context, int64_t task, int worker)
{
    Greedy *g = context;
    Trial *t = &g->trial[task];
    Solver *s = g->solver[worker];
    int64_t *members = g->foe_members[worker], n = 1;
    if (t->foe < g->n)
        n = linkage_points(g->link, t->foe, members);
    else
        members[0] = t->foe;
    Wanted wanted = {g->tau, g->slack, 0, 100 * (g->d + 100)};
    const double *mean = mean_of(g, t->foe);
    Points own = {g->members, g->members_n, g->union_mean}, foe = {members, n, mean};
    Points news = {g->members + g->news, g->members_n - g->news, NULL};
    t->verdict = t->turned ? solve(s, foe, own, &wanted, t->from, news, -1) : solve(s, own, foe, &wanted, t->from, news, 1);
    t->steps = solver_steps(s);
    t->low = solver_low_a(s), t->high = solver_high_b(s);
    memcpy(t->normal, solver_normal(s), sizeof(double) * g->d);
    t->n_active = solver_active(s, t->place, t->weight, t->side);
    if (t->turned)
        for (int64_t i = 0; i < t->n_active; i++) t->side[i] = (signed char)-t->side[i];
    t->state = t->verdict == SEPARABLE && t->n_active >= STATEFUL ? solver_save(s) : NULL;
}

/* The state of an earlier call for the larger part and this foe, whichever of the two was the solver's A. */
static void warm_up(Greedy *g, Trial *t, int64_t part)
{
    double *normal;
    Memory *m = memory_of(g, part, t->foe, &normal);
    t->turned = 0, t->from = NULL;
    if (m->a == part + 1 && m->b == t->foe + 1) {
        t->from = m->state;
        return;
    }
    m = memory_of(g, t->foe, part, &normal);
    if (m->a == t->foe + 1 && m->b == part + 1) t->from = m->state, t->turned = m->state != NULL;
}

static void record_refusal(Greedy *g, int64_t a, int64_t b, const Trial *t)
{
    int64_t at = g->counts.refusals++;
    if (at >= g->refusal_room) {
        g->refusal_room = 2 * g->refusal_room + 64;
        g->refusal = realloc(g->refusal, sizeof(int64_t) * 4 * g->refusal_room);
    }
    int64_t *r = g->refusal + 4 * at, weights = t->verdict == OVERLAPPING ? t->n_active : 0;
    r[0] = a, r[1] = b, r[2] = t->foe, r[3] = g->counts.weights;
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

/* Drop from rest[from..) the clusters whose sphere is clear of the union's; in a frozen row's place stands n + its row. */
static void filter_by_spheres(Greedy *g, int64_t from, int frozen)
{
    const Linkage *l = g->link;
    int64_t kept = from;
    if (frozen)
        lead_distances(g->union_lead, g->frozen_lead - g->n * LEADS, g->rest + from, g->rest_n - from, g->bound);
    else
        lead_distances(g->union_lead, l->lead, g->rest + from, g->rest_n - from, g->bound);
    for (int64_t i = from; i < g->rest_n; i++) {
        double reach = g->union_radius + (frozen ? 0 : l->radius[g->rest[i]]) + g->tau;
        g->rest[kept] = g->rest[i];
        kept += !linkage_beyond(l, g->bound[i - from], reach);
    }
    g->counts.by_sphere += g->rest_n - kept;
    g->rest_n = kept;
}

/* The foes that the cheap filters leave, in rest. */
static void gather_foes(Greedy *g, int64_t a, int64_t b)
{
    Linkage *l = g->link;
    int64_t label = l->label[a];
    g->rest_n = 0;
    for (int64_t e = g->foe_start[label]; e < g->foe_start[label + 1]; e++) {
        int64_t from = g->rest_n, foe = g->foe[e], n = l->alive_n[foe];
        memcpy(g->rest + from, l->alive + l->start[foe], sizeof(int64_t) * n);
        g->rest_n += n;
        g->counts.foes += n;
        if (g->pool[e] && n) filter_by_planes(g, g->pool[e], a, b, from);
        filter_by_spheres(g, from, 0);
    }
    int64_t from = g->rest_n;
    for (int64_t i = g->block_start[label]; i < g->block_start[label + 1]; i++) g->rest[g->rest_n++] = g->n + g->block[i];
    g->counts.foes += g->rest_n - from;
    filter_by_spheres(g, from, 1);
}

static int64_t weight_of(const Greedy *g, int64_t foe, int64_t hint_a, int64_t hint_b)
{
    if (foe == hint_a || foe == hint_b) return INT64_MAX;
    return foe < g->n ? g->link->size[foe] : 1;
}

/* Likely blockers to the front: those that blocked a part before, then the largest. */
static void sort_foes(Greedy *g, int64_t a, int64_t b)
{
    int64_t hints[2];
    for (int i = 0; i < 2; i++) {
        int64_t hint = g->last_blocker[i ? b : a];
        hints[i] = hint >= 0 && hint < g->n ? g->link->owner[hint] : hint;
    }
    /* insertion sort of the first few places is enough: the tail's order does not matter */
    int64_t front = g->rest_n < CROWD ? g->rest_n : CROWD;
    for (int64_t i = 0; i < front; i++) {
        int64_t best = i;
        for (int64_t j = i + 1; j < g->rest_n; j++)
            if (weight_of(g, g->rest[j], hints[0], hints[1]) > weight_of(g, g->rest[best], hints[0], hints[1])) best = j;
        int64_t t = g->rest[i];
        g->rest[i] = g->rest[best], g->rest[best] = t;
    }
}

/* Whether a and b may merge. */
static int allowed(Greedy *g, int64_t a, int64_t b)
{
    Linkage *l = g->link;
    g->clock++;
    g->renewed_n = 0;
    g->union_radius = linkage_union(l, a, b, g->union_mean, g->union_lead);
    gather_foes(g, a, b);
    if (!g->rest_n) return 1;
    int64_t large = l->size[a] >= l->size[b] ? a : b, small = large == a ? b : a, kept = 0;
    for (int64_t i = 0; i < g->rest_n; i++) {
        int64_t foe = g->rest[i];
        Trial *t = &g->trial[0];
        *t = (Trial){.foe = foe, .normal = t->normal, .place = t->place, .weight = t->weight, .side = t->side};
        if (recall(g, large, small, foe, 1) || recall(g, small, large, foe, 0)) {
            g->counts.by_memory++;
        } else if (apart_by_means(g, large, small, t)) {
            g->counts.by_means++;
            remember(g, large, t);
        } else {
            g->rest[kept++] = foe;
        }
    }
    g->rest_n = kept;
    if (!g->rest_n) return 1;
    sort_foes(g, a, b);
    g->news = linkage_points(l, large, g->members);
    g->members_n = g->news + linkage_points(l, small, g->members + g->news);
    int threads = crew_size(g->crew);
    for (int64_t at = 0; at < g->rest_n;) {
        int64_t n = g->rest_n - at < threads ? g->rest_n - at : threads;
        for (int64_t i = 0; i < n; i++) {
            g->trial[i].foe = g->rest[at + i];
            warm_up(g, &g->trial[i], large);
        }
        solver_share(g->solver[0], n == 1 ? g->crew : NULL);
        crew_run(g->crew, try_foe, g, n);
        at += n;
        for (int64_t i = 0; i < n; i++) {
            Trial *t = &g->trial[i];
            if (t->verdict != SEPARABLE) { /* what was tried beyond it is forgotten: as if one were tried at a time */
                g->counts.undecided += t->verdict == UNDECIDED;
                g->last_blocker[a] = g->last_blocker[b] = t->foe;
                record_refusal(g, a, b, t);
                for (int64_t j = i; j < n; j++) free(g->trial[j].state);
                return 0;
            }
            g->counts.solved++, g->counts.steps += t->steps;
            remember(g, large, t);
            if (t->foe < g->n && l->size[t->foe] + g->members_n >= LARGE)
                greedy_add_plane(g, l->label[a], l->label[t->foe], t->normal);
        }
    }
    return 1;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int greedy_run(Greedy *g, double seconds)
{
    double end = now() + seconds;
    Linkage *l = g->link;
    do {
        int64_t a, b;
        double distance;
        if (!linkage_closest(l, &a, &b, &distance)) return 1;
        if (!allowed(g, a, b)) {
            discard(g);
            linkage_refuse(l, a, b);
            continue;
        }
        int64_t at = g->counts.merges++, blocker = g->last_blocker[a] >= 0 ? g->last_blocker[a] : g->last_blocker[b];
        g->merge_a[at] = l->first[a], g->merge_b[at] = l->first[b], g->merge_distance[at] = distance;
        int64_t slot = linkage_merge(l, a, b), gone = slot == a ? b : a;
        g->last_blocker[slot] = blocker;
        confirm(g, slot);
        for (int64_t e = g->foe_start[l->label[slot]]; e < g->foe_start[l->label[slot] + 1]; e++) {
            Pool *p = g->pool[e];
            if (!p) continue;
            int64_t width = width_of(g, p), to = column(g, p, slot), from = column(g, p, gone);
            for (int h = 0; h < p->n; h++, to += width, from += width) {
                p->low[to] = fmin(p->low[to], p->low[from]);
                p->high[to] = fmax(p->high[to], p->high[from]);
            }
        }
    } while (now() < end);
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
