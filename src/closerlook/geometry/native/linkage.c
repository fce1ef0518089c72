/*
 * Find the two clusters of a label with the closest means. Each small cluster has a list of its nearest few, made when it was
 * formed or scanned again; all others that existed then are beyond a bound. A pair is in the care of its cluster that was
 * scanned last, so a new cluster need not be added to the lists of others. Pairs with a giant are in the care of the giant.
 * There is no distance matrix.
 */
#include "linkage.h"

#include <math.h>
#include <string.h>

#include "linear.h"
#include "neighbours.h"
#include "sizes.h"

enum { BLOCK = SIZE(16, 2) }; /* points that are prepared in one task */

int linkage_beyond(const Linkage *l, float square, double reach)
{
    double bound = reach + l->lead_error;
    return square * (1 - 1e-5) > bound * bound;
}

void linkage_lead(const Linkage *l, const double *point, float *lead)
{
    double part[LEADS], rest = dot(point, point, l->d);
    project(l->basis, l->d, NULL, LEADS - 1, point, part);
    for (int i = 0; i < LEADS - 1; i++) {
        lead[i] = (float)part[i];
        rest -= part[i] * part[i];
    }
    lead[LEADS - 1] = rest > 0 ? (float)sqrt(rest) : 0;
}

/* ---- the beginning ---- */

static void lead_block(void *context, int64_t task, int worker)
{
    (void)worker;
    Linkage *l = context;
    for (int64_t i = task * BLOCK; i < (task + 1) * BLOCK && i < l->n; i++) linkage_lead(l, l->X + i * l->d, l->lead + i * LEADS);
}

/* The list of a point has points before it only: each pair is in the care of the later point. */
static void list_block(void *context, int64_t task, int worker)
{
    Linkage *l = context;
    int64_t end = (task + 1) * BLOCK < l->n ? (task + 1) * BLOCK : l->n;
    for (int64_t i = task * BLOCK, next; i < end; i = next) {
        next = l->start[l->label[i] + 1] < end ? l->start[l->label[i] + 1] : end;
        neighbours_begin(l, i, next, l->bound + worker * (l->n + 1));
    }
}

Linkage *linkage_new(const double *X, int64_t n, int64_t d, int64_t labels, const int64_t *start, const int64_t *order,
                     const double *mass, const double *basis, double tie, int forgets, Crew *crew)
{
    Linkage *l = allocate_zeros(1, sizeof *l);
    int64_t count = n + 1, blocks = (n + BLOCK - 1) / BLOCK;
    l->X = X, l->n = n, l->d = d, l->labels = labels, l->start = start, l->order = order, l->tie = tie;
    l->rounding = (double)(d + 16) * 0x1p-51;
    l->mean = allocate(count * d, sizeof(double));
    l->lead = allocate(count * LEADS, sizeof(float));
    l->bound = allocate(count * crew_size(crew), sizeof(float));
    l->mass = allocate(count, sizeof(double));
    l->radius = allocate_zeros(count, sizeof(double));
    int64_t **whole[] = {&l->label, &l->size, &l->first, &l->next, &l->tail, &l->owner, &l->alive, &l->seat};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) *whole[i] = allocate(count, sizeof(int64_t));
    l->alive_n = allocate_zeros(labels, sizeof(int64_t));
    l->giants = allocate_zeros(labels, sizeof(int64_t));
    l->giant_slot = allocate_zeros(labels * GIANTS, sizeof(int64_t));
    l->giant = allocate_zeros(count, sizeof(Giant *));
    l->stamp = allocate_zeros(count, sizeof(uint32_t));
    l->near = allocate(count * NEAREST, sizeof(Neighbour));
    l->near_n = allocate_zeros(count, sizeof(int));
    l->beyond = allocate(count, sizeof(double));
    l->queued = allocate(count, sizeof(double));
    l->refused = refused_new(n, forgets);
    memcpy(l->mean, X, sizeof(double) * n * d);
    if (d > LEADS) {
        l->single = allocate(count * d, sizeof(float));
        for (int64_t i = 0; i < n * d; i++) l->single[i] = (float)X[i];
    }
    memcpy(l->mass, mass, sizeof(double) * n);
    for (int64_t label = 0; label < labels; label++) {
        for (int64_t i = start[label]; i < start[label + 1]; i++) {
            l->label[i] = label, l->size[i] = 1, l->first[i] = order[i];
            l->next[i] = -1, l->tail[i] = i, l->owner[i] = i;
            l->alive[i] = i, l->seat[i] = i, l->queued[i] = INFINITY;
        }
        l->alive_n[label] = start[label + 1] - start[label];
    }
    double longest = 0;
    for (int64_t i = 0; i < n; i++) longest = fmax(longest, dot(X + i * d, X + i * d, d));
    l->basis = basis, l->lead_error = 1e-5 * sqrt(longest) + tie;
    l->single_error = 0x1p-22 * sqrt(longest) + tie, l->single_share = (double)(d + 16) * 0x1p-24;
    crew_run(crew, lead_block, l, blocks);
    crew_run(crew, list_block, l, blocks);
    for (int64_t i = 0; i < n; i++)
        if (l->near_n[i]) queue_push(l, i, l->near[i * NEAREST].distance);
    return l;
}

/* ---- the closest pair ---- */

/* A lower bound of a cluster's smallest distance, that distance itself if `settled`. */
static double key_of(Linkage *l, int64_t slot, int *settled)
{
    if (l->giant[slot]) return giant_key(l, slot, settled);
    double key = neighbours_key(l, slot);
    *settled = l->near_n[slot] > 0 || key == INFINITY;
    return key;
}

static void settle(Linkage *l, int64_t slot)
{
    if (l->giant[slot])
        giant_refine(l, slot);
    else
        neighbours_scan(l, slot, l->alive_n[l->label[slot]], l->bound);
}

/* The next cluster whose smallest distance is known and no larger than `reach`; -1 if there is none. */
static int64_t next_within(Linkage *l, double reach, double *distance)
{
    for (int64_t slot; (slot = queue_pop(l, reach)) >= 0;) {
        check_stop();
        int settled;
        double key = key_of(l, slot, &settled);
        while (!settled && key <= reach && key <= queue_first(l)) {
            settle(l, slot);
            key = key_of(l, slot, &settled);
        }
        if (key == INFINITY) continue; /* no merge */
        if (!settled || key > reach || key > queue_first(l)) {
            queue_push(l, slot, key);
            continue;
        }
        *distance = key;
        return slot;
    }
    return -1;
}

static void add_pair(Linkage *l, int64_t x, int64_t y, double distance)
{
    if (l->pair_n == l->pair_room) {
        l->pair_room = 2 * l->pair_room + 16;
        l->pair = reallocate(l->pair, l->pair_room, sizeof(Closest));
    }
    int64_t a = l->first[x] < l->first[y] ? x : y;
    l->pair[l->pair_n++] = (Closest){a, a == x ? y : x, distance};
}

/* Add all pairs of a small cluster within the reach: its list may lack some. */
static void add_all(Linkage *l, int64_t slot, double reach)
{
    check_stop();
    int64_t label = l->label[slot], from = l->start[label];
    lead_distances(l->lead + l->seat[slot] * LEADS, l->lead + from * LEADS, NULL, l->alive_n[label], l->bound);
    for (int64_t i = 0; i < l->alive_n[label]; i++) {
        int64_t other = l->alive[from + i];
        if (linkage_beyond(l, l->bound[i], reach) || other == slot || refused_has(l->refused, slot, other)) continue;
        double distance = neighbours_distance(l, slot, other);
        if (distance <= reach) add_pair(l, slot, other, distance);
    }
}

/* Add the pairs in the care of a cluster that are within the reach. */
static void add_pairs(Linkage *l, int64_t slot, double reach)
{
    if (l->giant[slot]) {
        int64_t other, from = l->pair_n;
        double distance;
        while ((other = giant_next(l, slot, reach, &distance)) >= 0) add_pair(l, slot, other, distance);
        for (int64_t i = from; i < l->pair_n; i++)
            giant_return(l, slot, l->pair[i].a == slot ? l->pair[i].b : l->pair[i].a, l->pair[i].distance);
        return;
    }
    if (l->beyond[slot] <= reach) {
        add_all(l, slot, reach);
        return;
    }
    const Neighbour *near = l->near + slot * NEAREST;
    for (int i = 0; i < l->near_n[slot] && near[i].distance <= reach; i++) add_pair(l, slot, near[i].slot, near[i].distance);
}

int linkage_closest(Linkage *l, int64_t *a, int64_t *b, double *distance)
{
    double reach = INFINITY, smallest = INFINITY, key;
    l->pair_n = l->tied_n = 0;
    for (int64_t slot; (slot = next_within(l, reach, &key)) >= 0;) {
        if (l->tied_n == 0) reach = key + l->tie;
        if (l->tied_n == l->tied_room) {
            l->tied_room = 2 * l->tied_room + 16;
            l->tied = reallocate(l->tied, l->tied_room, sizeof(int64_t));
        }
        l->tied[l->tied_n++] = slot;
        add_pairs(l, slot, reach);
    }
    for (int64_t i = 0; i < l->pair_n; i++) smallest = fmin(smallest, l->pair[i].distance);
    const Closest *best = NULL;
    for (int64_t i = 0; i < l->pair_n; i++) { /* of the pairs that are equally close, the one with the smallest ranks */
        const Closest *p = &l->pair[i];
        if (p->distance > smallest + l->tie) continue;
        if (!best || l->first[p->a] < l->first[best->a] || (p->a == best->a && l->first[p->b] < l->first[best->b])) best = p;
    }
    for (int64_t i = 0; i < l->tied_n; i++) queue_push(l, l->tied[i], smallest);
    if (best) *a = best->a, *b = best->b, *distance = best->distance;
    return best != NULL;
}

/* ---- clusters ---- */

int64_t linkage_points(const Linkage *l, int64_t slot, int64_t *out)
{
    int64_t n = 0;
    for (int64_t i = slot; i >= 0; i = l->next[i]) out[n++] = i;
    return n;
}

double linkage_extreme(const Linkage *l, int64_t point, const double *w, double sign)
{
    return linkage_extreme_from(l, point, w, sign, -sign * INFINITY);
}

double linkage_extreme_from(const Linkage *l, int64_t point, const double *w, double sign, double limit)
{
    double least = INFINITY;
    for (; point >= 0 && least > sign * limit; point = point < l->n ? l->next[point] : -1) {
        double value = sign * dot(l->X + point * l->d, w, l->d);
        if (value < least) least = value;
    }
    return sign * least;
}

double linkage_union(const Linkage *l, int64_t a, int64_t b, double *mean, float *lead)
{
    double share = l->mass[b] / (l->mass[a] + l->mass[b]);
    const double *ma = l->mean + a * l->d, *mb = l->mean + b * l->d;
    for (int64_t i = 0; i < l->d; i++) mean[i] = (1 - share) * ma[i] + share * mb[i];
    linkage_lead(l, mean, lead);
    double ra = l->radius[a] + sqrt(squared_distance(mean, ma, l->d)), rb = l->radius[b] + sqrt(squared_distance(mean, mb, l->d));
    return (ra > rb ? ra : rb) * (1 + 1e-9);
}

/* Take the slot of a merged cluster out of use; the label's last slot gets its seat. */
static void leave_seat(Linkage *l, int64_t gone)
{
    int64_t label = l->label[gone], end = l->start[label] + --l->alive_n[label], seat = l->seat[gone], last = l->alive[end];
    l->alive[seat] = last, l->seat[last] = seat;
    memcpy(l->lead + seat * LEADS, l->lead + end * LEADS, sizeof(float) * LEADS);
}

/* Find the neighbours of a union of two clusters. */
static void settle_in(Linkage *l, int64_t slot, int64_t gone, double step)
{
    if (l->giant[gone]) giant_free(l, gone);
    if (l->giant[slot])
        giant_move(l, slot, step);
    else if (giant_wanted(l, slot))
        giant_new(l, slot);
    else
        neighbours_scan(l, slot, l->alive_n[l->label[slot]], l->bound);
    giants_meet(l, slot);
    int settled;
    l->queued[slot] = INFINITY;
    double key = key_of(l, slot, &settled);
    if (key < INFINITY) queue_push(l, slot, key);
}

int64_t linkage_merge(Linkage *l, int64_t a, int64_t b)
{
    if (l->size[a] < l->size[b]) {
        int64_t t = a;
        a = b, b = t;
    }
    double *mean = allocate(l->d, sizeof(double));
    float lead[LEADS];
    l->radius[a] = linkage_union(l, a, b, mean, lead);
    double step = sqrt(squared_distance(mean, l->mean + a * l->d, l->d));
    memcpy(l->mean + a * l->d, mean, sizeof(double) * l->d);
    for (int64_t i = 0; l->single && i < l->d; i++) l->single[a * l->d + i] = (float)mean[i];
    release(mean);
    leave_seat(l, b);
    memcpy(l->lead + l->seat[a] * LEADS, lead, sizeof lead);
    l->mass[a] += l->mass[b];
    for (int64_t i = b; i >= 0; i = l->next[i]) l->owner[i] = a;
    l->next[l->tail[a]] = b, l->tail[a] = l->tail[b];
    if (l->first[b] < l->first[a]) l->first[a] = l->first[b];
    l->size[a] += l->size[b], l->size[b] = 0;
    l->stamp[a]++, l->stamp[b]++;
    refused_merge(l->refused, a, b);
    settle_in(l, a, b, step);
    return a;
}
