/*
 * Giants are the largest clusters of a label. A giant's mean moves little when a point joins, so distances computed earlier
 * remain useful: `path` is the length of the way that the mean has gone, and a distance d computed when the path was p is at
 * least d - (path - p) now, by the triangle inequality. A heap orders all other clusters by d + p, which is the order of these
 * bounds at any time; only distances at its top are computed again.
 */
#include "neighbours.h"

#include <math.h>

#include "linear.h"
#include "sizes.h"

enum { GIANT = SIZE(48, 3) }; /* points of a cluster that becomes a giant */

typedef struct {
    double key;      /* d + p */
    double distance; /* d */
    double path;     /* p; negative: the key is a lower bound, and no distance has been computed */
    uint32_t slot, stamp;
} Entry;

struct Giant {
    double path;
    Entry *entry; /* a heap */
    int64_t n, room;
};

static void sink(Giant *g, int64_t hole)
{
    Entry moved = g->entry[hole];
    for (;;) {
        int64_t child = 2 * hole + 1;
        if (child >= g->n) break;
        if (child + 1 < g->n && g->entry[child + 1].key < g->entry[child].key) child++;
        if (g->entry[child].key >= moved.key) break;
        g->entry[hole] = g->entry[child];
        hole = child;
    }
    g->entry[hole] = moved;
}

static void push(Giant *g, Entry entry)
{
    if (g->n == g->room) {
        g->room = 2 * g->room + 64;
        g->entry = reallocate(g->entry, g->room, sizeof(Entry));
    }
    int64_t hole = g->n++;
    for (; hole && g->entry[(hole - 1) / 2].key > entry.key; hole = (hole - 1) / 2) g->entry[hole] = g->entry[(hole - 1) / 2];
    g->entry[hole] = entry;
}

static void pop(Giant *g)
{
    g->entry[0] = g->entry[--g->n];
    if (g->n) sink(g, 0);
}

/* ---- giants of a label ---- */

int giant_wanted(const Linkage *l, int64_t slot)
{
    if (refused_forgets(l->refused)) return 0; /* a heap has no place for pairs that come back */
    return !l->giant[slot] && l->size[slot] >= GIANT && l->giants[l->label[slot]] < GIANTS;
}

/* A cluster becomes a giant: it meets all clusters of its label, with bounds from the leads. */
void giant_new(Linkage *l, int64_t slot)
{
    check_stop();
    Giant *g = allocate_zeros(1, sizeof *g);
    int64_t label = l->label[slot], from = l->start[label], n = l->alive_n[label];
    g->room = n + 64;
    g->entry = allocate(g->room, sizeof(Entry));
    lead_distances(l->lead + l->seat[slot] * LEADS, l->lead + from * LEADS, NULL, n, l->bound);
    for (int64_t i = 0; i < n; i++) {
        int64_t other = l->alive[from + i];
        if (other == slot || refused_has(l->refused, slot, other)) continue;
        double bound = fmax(sqrt(l->bound[i]) * (1 - 1e-5) - l->lead_error, 0);
        g->entry[g->n++] = (Entry){bound, 0, -1, (uint32_t)other, l->stamp[other]};
    }
    for (int64_t i = g->n / 2 - 1; i >= 0; i--) sink(g, i);
    l->giant[slot] = g;
    l->giant_slot[label * GIANTS + l->giants[label]++] = slot;
}

void giant_free(Linkage *l, int64_t slot)
{
    Giant *g = l->giant[slot];
    int64_t label = l->label[slot], *slots = l->giant_slot + label * GIANTS, at = 0;
    while (slots[at] != slot) at++;
    slots[at] = slots[--l->giants[label]];
    release(g->entry), release(g);
    l->giant[slot] = NULL;
}

void giant_move(Linkage *l, int64_t slot, double step)
{
    Giant *g = l->giant[slot];
    g->path = (g->path + step * (1 + l->rounding)) * (1 + 0x1p-52); /* never less than the way */
}

void giants_meet(Linkage *l, int64_t slot)
{
    int64_t label = l->label[slot];
    for (int64_t i = 0; i < l->giants[label]; i++) {
        int64_t giant = l->giant_slot[label * GIANTS + i];
        if (giant == slot || refused_has(l->refused, giant, slot)) continue;
        double distance = neighbours_distance(l, giant, slot);
        giant_return(l, giant, slot, distance);
        queue_push(l, giant, distance);
    }
}

/* ---- the smallest distances of a giant ---- */

static double bound_of(const Linkage *l, const Giant *g, const Entry *e)
{
    return e->path == g->path ? e->distance : e->key - g->path - l->rounding * e->key;
}

/* Remove clusters at the top that are merged or blocked. */
static void clean(const Linkage *l, Giant *g, int64_t slot)
{
    while (g->n && (l->stamp[g->entry[0].slot] != g->entry[0].stamp || refused_has(l->refused, slot, g->entry[0].slot))) pop(g);
}

double giant_key(Linkage *l, int64_t slot, int *exact)
{
    Giant *g = l->giant[slot];
    clean(l, g, slot);
    *exact = g->n == 0 || g->entry[0].path == g->path;
    return g->n ? bound_of(l, g, &g->entry[0]) : INFINITY;
}

/* Compute the distance of the cluster at the top. */
void giant_refine(Linkage *l, int64_t slot)
{
    Giant *g = l->giant[slot];
    Entry *e = &g->entry[0];
    e->distance = neighbours_distance(l, slot, e->slot), e->path = g->path, e->key = e->distance + g->path;
    sink(g, 0);
}

int64_t giant_next(Linkage *l, int64_t slot, double reach, double *distance)
{
    Giant *g = l->giant[slot];
    for (;;) {
        clean(l, g, slot);
        if (!g->n || bound_of(l, g, &g->entry[0]) > reach) return -1;
        if (g->entry[0].path == g->path) break;
        giant_refine(l, slot);
    }
    int64_t other = g->entry[0].slot;
    *distance = g->entry[0].distance;
    pop(g);
    return other;
}

void giant_return(Linkage *l, int64_t slot, int64_t other, double distance)
{
    Giant *g = l->giant[slot];
    push(g, (Entry){distance + g->path, distance, g->path, (uint32_t)other, l->stamp[other]});
}
