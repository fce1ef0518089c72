/* DirectProbe's greedy merging: merge the two closest clusters of a label, if they may merge, until no pair is left. */
#include "greedy.h"

#include <math.h>
#include <string.h>

#include "linear.h"

/* What linkage_new needs besides the fields of Greedy. */
typedef struct {
    Greedy given, *greedy;
    int64_t labels;
    const int64_t *start, *order, *region;
    const double *mass, *basis;
    double tie;
    int threads;
} Plan;

static void prepare(void *arguments)
{
    Plan *plan = arguments;
    Greedy *g = allocate_zeros(1, sizeof *g);
    *g = plan->given;
    const double *X = g->X;
    int64_t n = g->n, frozen = g->frozen, d = g->d;
    g->crew = crew_new(plan->threads);
    int threads = crew_size(g->crew);
    g->link = linkage_new(X, n, d, plan->labels, plan->start, plan->order, plan->mass, plan->basis, plan->tie,
                          g->limit >= 0, g->crew);
    if (g->limit >= 0) g->blocked = refused_new(n, 0);
    g->frozen_lead = allocate((frozen + 1) * LEADS, sizeof(float));
    for (int64_t i = 0; i < frozen; i++) linkage_lead(g->link, X + (n + i) * d, g->frozen_lead + i * LEADS);
    int64_t numbers = (n + frozen) * d;
    double longest = 0;
    g->single = allocate(numbers + 1, sizeof(float));
    for (int64_t i = 0; i < numbers; i++) g->single[i] = (float)X[i];
    for (int64_t i = 0; i < n + frozen; i++) longest = fmax(longest, sqrt(dot(X + i * d, X + i * d, d)));
    g->solver = allocate(threads, sizeof(Solver *));
    g->foe_members = allocate(threads, sizeof(int64_t *));
    for (int i = 0; i < threads; i++) {
        g->solver[i] = solver_new(X, g->single, longest, d, n + frozen);
        g->foe_members[i] = allocate(n + 1, sizeof(int64_t));
    }
    g->planes = planes_new(g->link, g->foe_start, g->foe, g->clear, g->crew);
    g->memory = memory_new(g->link, n + frozen + plan->labels, g->clear);
    g->cores = cores_new(g->link, plan->region, g->foe_start, g->foe);
    g->samples = samples_new(g->link);
    g->last_blocker = allocate(n + 1, sizeof(int64_t));
    for (int64_t i = 0; i < n; i++) g->last_blocker[i] = -1;
    g->rest = allocate(n + frozen + 1, sizeof(int64_t));
    g->place = allocate(n + frozen + 1, sizeof(int64_t));
    g->members = allocate(n + 1, sizeof(int64_t));
    g->union_mean = allocate(d, sizeof(double));
    g->bound = allocate(n + frozen + 1, sizeof(float));
    g->trial = allocate_zeros(threads, sizeof(Trial));
    for (int i = 0; i < threads; i++) {
        Trial *t = &g->trial[i];
        t->found.normal = allocate(d, sizeof(double));
        t->place = allocate(d + 4, sizeof(int64_t));
        t->weight = allocate(d + 4, sizeof(double));
        t->side = allocate(d + 4, 1);
    }
    g->merge_a = allocate(n + 1, sizeof(int64_t));
    g->merge_b = allocate(n + 1, sizeof(int64_t));
    g->merge_distance = allocate(n + 1, sizeof(double));
    plan->greedy = g;
}

Status greedy_new(const double *X, int64_t n, int64_t frozen, int64_t d, int64_t labels, const int64_t *start,
                  const int64_t *order, const double *mass, const double *basis, const int64_t *region,
                  const int64_t *foe_start, const int64_t *foe, const int64_t *block_start, const int64_t *block,
                  double tau, double slack, double tie, int64_t limit, const signed char *alone, int threads,
                  Greedy **greedy)
{
    *greedy = NULL;
    Call *call = call_new();
    if (!call) return OUT_OF_MEMORY;
    Greedy given = {.call = call, .X = X, .n = n, .frozen = frozen, .d = d, .tau = tau, .slack = slack,
                    .clear = tau + 2 * slack, .foe_start = foe_start, .foe = foe, .block_start = block_start, .block = block,
                    .limit = limit, .alone = alone};
    Plan plan = {given, NULL, labels, start, order, region, mass, basis, tie, threads};
    Status status = call_run(call, prepare, &plan);
    if (status)
        call_free(call);
    else
        *greedy = plan.greedy;
    return status;
}

void greedy_free(Greedy *g) { call_free(g->call); }

typedef struct {
    Planes *planes;
    int64_t label, foe;
    const double *normal;
} NewPlane;

static void add_plane(void *arguments)
{
    const NewPlane *new = arguments;
    planes_add(new->planes, new->label, new->foe, new->normal);
}

Status greedy_add_plane(Greedy *g, int64_t label, int64_t foe, const double *normal)
{
    NewPlane new = {g->planes, label, foe, normal};
    return call_run(g->call, add_plane, &new);
}

typedef struct {
    Greedy *g;
    double seconds;
    int finished;
} Stretch;

/* Whether a merge is known to be blocked without a test: a blocked pair stays blocked when its clusters grow. */
static int known_blocked(const Greedy *g, int64_t a, int64_t b)
{
    return g->blocked && ((g->alone && (g->alone[a] || g->alone[b])) || refused_has(g->blocked, a, b));
}

static void run_stretch(void *arguments)
{
    Stretch *stretch = arguments;
    Greedy *g = stretch->g;
    Linkage *l = g->link;
    double end = seconds_now() + stretch->seconds;
    do {
        int64_t a, b;
        double distance;
        check_stop();
        stretch->finished = g->counts.attempts == g->limit || !linkage_closest(l, &a, &b, &distance);
        if (stretch->finished) return;
        g->counts.attempts++;
        if (known_blocked(g, a, b) || !candidate_allowed(g, a, b)) {
            memory_discard(g->memory);
            refused_add(l->refused, a, b);
            if (g->blocked) refused_add(g->blocked, a, b);
            continue;
        }
        int64_t at = g->counts.merges++, blocker = g->last_blocker[a] >= 0 ? g->last_blocker[a] : g->last_blocker[b];
        g->merge_a[at] = l->first[a], g->merge_b[at] = l->first[b], g->merge_distance[at] = distance;
        int64_t slot = linkage_merge(l, a, b), gone = slot == a ? b : a;
        g->last_blocker[slot] = blocker;
        memory_confirm(g->memory, slot);
        planes_merge(g->planes, slot, gone);
        cores_merge(g->cores, slot, gone);
        samples_merge(g->samples, gone);
        if (g->blocked) refused_merge(g->blocked, slot, gone);
    } while (seconds_now() < end);
}

Status greedy_run(Greedy *g, double seconds, int *finished)
{
    Stretch stretch = {g, seconds, 0};
    Status status = call_run(g->call, run_stretch, &stretch);
    *finished = stretch.finished;
    return status;
}

Counts greedy_counts(const Greedy *g) { return g->counts; }

void greedy_owners(const Greedy *g, int64_t *owner) { memcpy(owner, g->link->owner, sizeof(int64_t) * g->n); }

void greedy_merges(const Greedy *g, int64_t *a, int64_t *b, double *distance)
{
    if (g->counts.merges == 0)
        return;
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
    if (g->counts.weights == 0)
        return;  /* nothing was allocated, and memcpy takes no null pointer */
    memcpy(place, g->weight_place, sizeof(int64_t) * g->counts.weights);
    memcpy(weight, g->weight, sizeof(double) * g->counts.weights);
    memcpy(side, g->weight_side, (size_t)g->counts.weights);
}
