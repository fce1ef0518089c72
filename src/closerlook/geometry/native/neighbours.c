#include "neighbours.h"

#include <math.h>

#include "linear.h"

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

/* Seats with the smallest bounds, at most NEAREST + 1 of them: the cluster itself is one. */
static int closest_seats(const float *bound, int64_t n, int64_t *seat)
{
    float worst[NEAREST + 1];
    int held = 0;
    for (int64_t i = 0; i < n; i++) {
        if (held == NEAREST + 1 && bound[i] >= worst[NEAREST]) continue;
        int at = held < NEAREST + 1 ? held++ : NEAREST;
        for (; at > 0 && worst[at - 1] > bound[i]; at--) worst[at] = worst[at - 1], seat[at] = seat[at - 1];
        worst[at] = bound[i], seat[at] = i;
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

void neighbours_scan(Linkage *l, int64_t slot, int64_t n, float *bound)
{
    check_stop();
    int64_t from = l->start[l->label[slot]], seat[NEAREST + 1];
    const int64_t *alive = l->alive + from;
    l->near_n[slot] = 0, l->beyond[slot] = INFINITY;
    lead_distances(l->lead + l->seat[slot] * LEADS, l->lead + from * LEADS, NULL, n, bound);
    int held = closest_seats(bound, n, seat);
    for (int i = 0; i < held; i++) consider(l, slot, alive[seat[i]]), bound[seat[i]] = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (bound[i] == INFINITY) continue;
        double reach = l->near_n[slot] < NEAREST ? INFINITY : l->near[slot * NEAREST + NEAREST - 1].distance;
        if (linkage_beyond(l, bound[i], reach) || means_beyond(l, slot, alive[i], reach))
            l->beyond[slot] = fmin(l->beyond[slot], reach);
        else
            consider(l, slot, alive[i]);
    }
}
