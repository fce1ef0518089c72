#include "neighbours.h"

#include <math.h>

#include "linear.h"
#include "sizes.h"

enum { TILE = SIZE(256, 3) }; /* points that several others are compared with before the next ones are read */

/* ---- the queue: a heap; an entry whose key is not the slot's present one is ignored ---- */

void queue_push(Linkage *l, int64_t slot, double key)
{
    Heap *h = &l->heap;
    if (!(key < l->queued[slot])) return;
    l->queued[slot] = key;
    if (h->n == h->room) {
        h->room = 2 * h->room + 64;
        h->key = reallocate(h->key, h->room, sizeof(double));
        h->slot = reallocate(h->slot, h->room, sizeof(int64_t));
    }
    int64_t hole = h->n++;
    for (; hole && h->key[(hole - 1) / 2] > key; hole = (hole - 1) / 2)
        h->key[hole] = h->key[(hole - 1) / 2], h->slot[hole] = h->slot[(hole - 1) / 2];
    h->key[hole] = key, h->slot[hole] = slot;
}

static int64_t heap_pop(Heap *h)
{
    int64_t top = h->slot[0], slot = h->slot[--h->n], hole = 0;
    double key = h->key[h->n];
    for (;;) {
        int64_t child = 2 * hole + 1;
        if (child >= h->n) break;
        if (child + 1 < h->n && h->key[child + 1] < h->key[child]) child++;
        if (h->key[child] >= key) break;
        h->key[hole] = h->key[child], h->slot[hole] = h->slot[child];
        hole = child;
    }
    h->key[hole] = key, h->slot[hole] = slot;
    return top;
}

int64_t queue_pop(Linkage *l, double reach)
{
    Heap *h = &l->heap;
    while (h->n && h->key[0] <= reach) {
        double key = h->key[0];
        int64_t slot = heap_pop(h);
        if (l->size[slot] == 0 || l->queued[slot] != key) continue;
        l->queued[slot] = INFINITY;
        return slot;
    }
    return -1;
}

double queue_first(const Linkage *l) { return l->heap.n ? l->heap.key[0] : INFINITY; }

double neighbours_distance(const Linkage *l, int64_t a, int64_t b)
{
    return sqrt(squared_distance(l->mean + a * l->d, l->mean + b * l->d, l->d));
}

/* ---- lists of small clusters ---- */

double neighbours_key(Linkage *l, int64_t slot)
{
    Neighbour *near = l->near + slot * NEAREST;
    int kept = 0;
    for (int i = 0; i < l->near_n[slot]; i++)
        if (l->stamp[near[i].slot] == near[i].stamp && !refused_has(l->refused, slot, near[i].slot)) near[kept++] = near[i];
    l->near_n[slot] = kept;
    return kept ? near[0].distance : l->beyond[slot];
}

static void consider(Linkage *l, int64_t slot, int64_t other)
{
    if (other == slot || l->giant[other] || refused_has(l->refused, slot, other)) return;
    Neighbour *near = l->near + slot * NEAREST;
    double distance = neighbours_distance(l, slot, other);
    int i = l->near_n[slot];
    if (i == NEAREST) {
        l->beyond[slot] = fmin(l->beyond[slot], fmax(near[i - 1].distance, distance));
        if (distance >= near[i - 1].distance) return;
        i--;
    } else {
        l->near_n[slot]++;
    }
    for (; i > 0 && near[i - 1].distance > distance; i--) near[i] = near[i - 1];
    near[i] = (Neighbour){distance, (uint32_t)other, l->stamp[other]};
}

/* The largest distance in a full list: farther clusters need not be compared. */
static double reach_of(const Linkage *l, int64_t slot)
{
    return l->near_n[slot] < NEAREST ? INFINITY : l->near[slot * NEAREST + NEAREST - 1].distance;
}

/* A squared distance of leads above this number proves that means are farther apart than `reach`; see linkage_beyond(). */
static float limit_of(const Linkage *l, double reach)
{
    double bound = reach + l->lead_error;
    return nextafterf((float)(bound * bound / (1 - 1e-5)), INFINITY);
}

/* Seats with the smallest bounds up to a limit, at most NEAREST + 1 of them: the cluster itself is one. */
static int closest_seats(const float *bound, int64_t n, float limit, int64_t *seat)
{
    float worst[NEAREST + 1];
    int held = 0;
    for (int64_t i = 0; i < n; i++) {
        if (bound[i] > limit) continue;
        int at = held < NEAREST + 1 ? held++ : NEAREST;
        for (; at > 0 && worst[at - 1] > bound[i]; at--) worst[at] = worst[at - 1], seat[at] = seat[at - 1];
        worst[at] = bound[i], seat[at] = i;
        if (held == NEAREST + 1) limit = worst[NEAREST];
    }
    return held;
}

/* Whether two means are provably farther apart than `reach`, in single precision; 0 if this tells no more than their leads. */
static int means_beyond(const Linkage *l, int64_t a, int64_t b, double reach)
{
    if (!l->single) return 0;
    double square = squared_single(l->single + a * l->d, l->single + b * l->d, l->d), bound = reach + l->single_error;
    return square * (1 - l->single_share) > bound * bound;
}

/* Compare a small cluster with those in n seats of its label from `first` on; bound: squared distances of their leads. */
static void meet(Linkage *l, int64_t slot, int64_t first, int64_t n, float *bound)
{
    const int64_t *alive = l->alive + l->start[l->label[slot]] + first;
    int64_t seat[NEAREST + 1];
    int held = closest_seats(bound, n, limit_of(l, reach_of(l, slot)), seat), left = 0;
    for (int i = 0; i < held; i++) consider(l, slot, alive[seat[i]]), bound[seat[i]] = NAN;
    double reach = reach_of(l, slot);
    float limit = limit_of(l, reach);
    for (int64_t i = 0; i < n; i++) {
        left |= bound[i] > limit;
        if (!(bound[i] <= limit)) continue;
        if (means_beyond(l, slot, alive[i], reach)) {
            left = 1;
            continue;
        }
        consider(l, slot, alive[i]);
        reach = reach_of(l, slot), limit = limit_of(l, reach);
    }
    if (left) l->beyond[slot] = fmin(l->beyond[slot], reach);
}

void neighbours_scan(Linkage *l, int64_t slot, int64_t n, float *bound)
{
    check_stop();
    l->near_n[slot] = 0, l->beyond[slot] = INFINITY;
    lead_distances(l->lead + l->seat[slot] * LEADS, l->lead + l->start[l->label[slot]] * LEADS, NULL, n, bound);
    meet(l, slot, 0, n, bound);
}

void neighbours_begin(Linkage *l, int64_t from, int64_t end, float *bound)
{
    int64_t start = l->start[l->label[from]];
    for (int64_t i = from; i < end; i++) l->near_n[i] = 0, l->beyond[i] = INFINITY;
    for (int64_t first = 0; start + first < end - 1; first += TILE) {
        check_stop();
        for (int64_t i = from > start + first ? from : start + first + 1; i < end; i++) {
            int64_t n = i - start - first < TILE ? i - start - first : TILE;
            lead_distances(l->lead + i * LEADS, l->lead + (start + first) * LEADS, NULL, n, bound);
            meet(l, i, first, n, bound);
        }
    }
}
