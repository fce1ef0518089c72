/*
 * Find the two clusters of a label with the closest means. Each cluster has a list of its nearest few; all others are known to
 * be beyond a bound, and are scanned again only when the list is empty. There is no distance matrix.
 */
#include "linkage.h"

#include <math.h>
#include <string.h>

#include "linear.h"

static int is_refused(const Linkage *l, int64_t a, int64_t b)
{
    if (!l->refused[l->label[a]]) return 0;
    int64_t from = l->start[l->label[a]], words = (l->start[l->label[a] + 1] - from + 63) / 64;
    int64_t j = b - from;
    return (int)(l->refused[l->label[a]][(a - from) * words + j / 64] >> (j % 64) & 1);
}

static void set_refused(Linkage *l, int64_t a, int64_t b)
{
    int64_t from = l->start[l->label[a]], words = (l->start[l->label[a] + 1] - from + 63) / 64;
    int64_t j = b - from;
    l->refused[l->label[a]][(a - from) * words + j / 64] |= (uint64_t)1 << (j % 64);
}

/* ---- the heap: a lower bound of each cluster's smallest distance ---- */

static void push(Linkage *l, double key, int64_t slot)
{
    if (l->heap_n == l->heap_room) {
        l->heap_room = 2 * l->heap_room + 64;
        l->heap_key = reallocate(l->heap_key, l->heap_room, sizeof(double));
        l->heap_slot = reallocate(l->heap_slot, l->heap_room, sizeof(int64_t));
    }
    int64_t hole = l->heap_n++;
    for (; hole && l->heap_key[(hole - 1) / 2] > key; hole = (hole - 1) / 2) {
        l->heap_key[hole] = l->heap_key[(hole - 1) / 2];
        l->heap_slot[hole] = l->heap_slot[(hole - 1) / 2];
    }
    l->heap_key[hole] = key, l->heap_slot[hole] = slot;
}

static int64_t pop(Linkage *l)
{
    int64_t top = l->heap_slot[0], slot = l->heap_slot[--l->heap_n], hole = 0;
    double key = l->heap_key[l->heap_n];
    for (;;) {
        int64_t child = 2 * hole + 1;
        if (child >= l->heap_n) break;
        if (child + 1 < l->heap_n && l->heap_key[child + 1] < l->heap_key[child]) child++;
        if (l->heap_key[child] >= key) break;
        l->heap_key[hole] = l->heap_key[child], l->heap_slot[hole] = l->heap_slot[child];
        hole = child;
    }
    l->heap_key[hole] = key, l->heap_slot[hole] = slot;
    return top;
}

/* ---- neighbour lists ---- */

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

/* Drop merged and blocked clusters from a list; returns a lower bound of the cluster's smallest distance. */
static double renewed_key(Linkage *l, int64_t slot)
{
    Neighbour *near = l->near + slot * NEAREST;
    int kept = 0;
    for (int i = 0; i < l->near_n[slot]; i++)
        if (l->stamp[near[i].slot] == near[i].stamp && !is_refused(l, slot, near[i].slot)) near[kept++] = near[i];
    l->near_n[slot] = kept;
    return kept ? near[0].distance : l->beyond[slot];
}

static void insert(Linkage *l, int64_t slot, int64_t other, double distance)
{
    Neighbour *near = l->near + slot * NEAREST;
    int n = l->near_n[slot];
    if (n == NEAREST) {
        renewed_key(l, slot);
        n = l->near_n[slot];
    }
    if (n == NEAREST) {
        l->beyond[slot] = near[n - 1].distance > distance ? near[n - 1].distance : distance;
        if (distance >= near[n - 1].distance) return;
        n--;
    }
    int i = n;
    for (; i > 0 && near[i - 1].distance > distance; i--) near[i] = near[i - 1];
    near[i] = (Neighbour){other, l->stamp[other], distance};
    l->near_n[slot] = n + 1;
}

/* Fill a cluster's list from all clusters of its label; with `tell`, also add it to the lists of near ones. */
static void look_around(Linkage *l, int64_t slot, int tell, float *bound)
{
    check_stop();
    int64_t label = l->label[slot], n = l->alive_n[label];
    const int64_t *alive = l->alive + l->start[label];
    l->near_n[slot] = 0, l->beyond[slot] = INFINITY;
    lead_distances(l->lead + slot * LEADS, l->lead, alive, n, bound);
    for (int64_t i = 0; i < n; i++) {
        int64_t other = alive[i];
        double reach = l->beyond[slot];
        if (tell && l->beyond[other] > reach) reach = l->beyond[other];
        if (linkage_beyond(l, bound[i], reach) || other == slot || is_refused(l, slot, other)) continue;
        double distance = sqrt(squared_distance(l->mean + slot * l->d, l->mean + other * l->d, l->d));
        if (distance < l->beyond[slot]) insert(l, slot, other, distance);
        if (tell && distance < l->beyond[other]) {
            double before = l->near_n[other] ? l->near[other * NEAREST].distance : l->beyond[other];
            insert(l, other, slot, distance);
            if (distance < before) push(l, distance, other);
        }
    }
}

static void lead_task(void *context, int64_t task, int worker)
{
    (void)worker;
    Linkage *l = context;
    for (int64_t i = task * 64; i < task * 64 + 64 && i < l->n; i++) linkage_lead(l, l->X + i * l->d, l->lead + i * LEADS);
}

static void look_around_task(void *context, int64_t task, int worker)
{
    Linkage *l = context;
    int64_t from = task * 64, to = from + 64 < l->n ? from + 64 : l->n;
    for (int64_t slot = from; slot < to; slot++) look_around(l, slot, 0, l->bound + worker * l->n);
}

/* ---- the clusters ---- */

Linkage *linkage_new(const double *X, int64_t n, int64_t d, int64_t labels, const int64_t *start, const int64_t *order,
                     const double *mass, const double *basis, double tie, Crew *crew)
{
    Linkage *l = allocate_zeros(1, sizeof *l);
    l->X = X, l->n = n, l->d = d, l->labels = labels, l->start = start, l->order = order, l->tie = tie;
    l->label = allocate(n, sizeof(int64_t));
    l->mean = allocate(n * d, sizeof(double));
    l->lead = allocate(n * LEADS, sizeof(float));
    l->bound = allocate((n + 1) * crew_size(crew), sizeof(float));
    l->mass = allocate(n, sizeof(double));
    l->radius = allocate_zeros(n, sizeof(double));
    int64_t **whole[] = {&l->size, &l->first, &l->next, &l->tail, &l->owner, &l->alive, &l->position};
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) *whole[i] = allocate(n, sizeof(int64_t));
    l->alive_n = allocate_zeros(labels, sizeof(int64_t));
    l->stamp = allocate_zeros(n, sizeof(uint32_t));
    l->near = allocate(n * NEAREST, sizeof(Neighbour));
    l->near_n = allocate_zeros(n, sizeof(int));
    l->beyond = allocate(n, sizeof(double));
    l->refused = allocate_zeros(labels, sizeof(uint64_t *));
    memcpy(l->mean, X, sizeof(double) * (size_t)(n * d));
    memcpy(l->mass, mass, sizeof(double) * (size_t)n);
    for (int64_t label = 0; label < labels; label++) {
        for (int64_t i = start[label]; i < start[label + 1]; i++) {
            l->label[i] = label, l->size[i] = 1, l->first[i] = order[i];
            l->next[i] = -1, l->tail[i] = i, l->owner[i] = i;
            l->alive[i] = i, l->position[i] = i - start[label];
        }
        l->alive_n[label] = start[label + 1] - start[label];
    }
    double longest = 0;
    for (int64_t i = 0; i < n; i++) longest = fmax(longest, dot(X + i * d, X + i * d, d));
    l->basis = basis, l->lead_error = 1e-5 * sqrt(longest) + tie;
    crew_run(crew, lead_task, l, (n + 63) / 64);
    crew_run(crew, look_around_task, l, (n + 63) / 64);
    for (int64_t i = 0; i < n; i++)
        if (l->near_n[i]) push(l, l->near[i * NEAREST].distance, i);
    return l;
}

/* The next cluster whose nearest neighbour is known and no farther than `reach`; -1 if there is none. */
static int64_t next_within(Linkage *l, double reach, double *distance)
{
    while (l->heap_n && l->heap_key[0] <= reach) {
        int64_t slot = pop(l);
        if (l->size[slot] == 0) continue;
        double key = renewed_key(l, slot);
        if (l->near_n[slot] == 0 && key < INFINITY) {
            look_around(l, slot, 0, l->bound);
            key = renewed_key(l, slot);
        }
        if (l->near_n[slot] == 0) continue; /* no merge */
        if (key > reach || (l->heap_n && key > l->heap_key[0])) {
            push(l, key, slot);
            continue;
        }
        *distance = key;
        return slot;
    }
    return -1;
}

/* Of two pairs that are equally close, the one with the smallest point index. */
static void prefer(const Linkage *l, int64_t x, int64_t y, double apart, int64_t *a, int64_t *b, double *distance)
{
    if (l->first[x] > l->first[y]) {
        int64_t t = x;
        x = y, y = t;
    }
    if (*a < 0 || l->first[x] < l->first[*a] || (x == *a && l->first[y] < l->first[*b])) *a = x, *b = y, *distance = apart;
}

static void closest_of_all(const Linkage *l, int64_t slot, double reach, int64_t *a, int64_t *b, double *distance)
{
    check_stop();
    int64_t label = l->label[slot];
    const int64_t *alive = l->alive + l->start[label];
    lead_distances(l->lead + slot * LEADS, l->lead, alive, l->alive_n[label], l->bound);
    for (int64_t i = 0; i < l->alive_n[label]; i++) {
        int64_t other = alive[i];
        if (linkage_beyond(l, l->bound[i], reach) || other == slot || is_refused(l, slot, other)) continue;
        double apart = sqrt(squared_distance(l->mean + slot * l->d, l->mean + other * l->d, l->d));
        if (apart <= reach) prefer(l, slot, other, apart, a, b, distance);
    }
}

int linkage_closest(Linkage *l, int64_t *a, int64_t *b, double *distance)
{
    int64_t found = 0;
    double closest = INFINITY, reach = INFINITY, key;
    *a = *b = -1;
    for (int64_t slot; (slot = next_within(l, reach, &key)) >= 0;) {
        if (found == 0) closest = key, reach = key + l->tie;
        if (found == l->tied_room) {
            l->tied_room = 2 * l->tied_room + 16;
            l->tied = reallocate(l->tied, l->tied_room, sizeof(int64_t));
        }
        l->tied[found++] = slot;
        if (l->beyond[slot] <= reach) { /* the list may lack ties */
            closest_of_all(l, slot, reach, a, b, distance);
            continue;
        }
        const Neighbour *near = l->near + slot * NEAREST;
        for (int i = 0; i < l->near_n[slot] && near[i].distance <= reach; i++)
            prefer(l, slot, near[i].slot, near[i].distance, a, b, distance);
    }
    for (int64_t i = 0; i < found; i++) push(l, closest, l->tied[i]);
    return found > 0;
}

void linkage_refuse(Linkage *l, int64_t a, int64_t b)
{
    int64_t label = l->label[a];
    int64_t own = l->start[label + 1] - l->start[label];
    if (!l->refused[label]) l->refused[label] = allocate_zeros(own * ((own + 63) / 64), sizeof(uint64_t));
    set_refused(l, a, b), set_refused(l, b, a);
}

int64_t linkage_points(const Linkage *l, int64_t slot, int64_t *out)
{
    int64_t n = 0;
    for (int64_t i = slot; i >= 0; i = l->next[i]) out[n++] = i;
    return n;
}

double linkage_extreme(const Linkage *l, int64_t point, const double *w, double sign)
{
    double least = INFINITY;
    for (; point >= 0; point = point < l->n ? l->next[point] : -1)
        least = fmin(least, sign * dot(l->X + point * l->d, w, l->d));
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

int64_t linkage_merge(Linkage *l, int64_t a, int64_t b)
{
    if (l->size[a] < l->size[b]) {
        int64_t t = a;
        a = b, b = t;
    }
    int64_t label = l->label[a], from = l->start[label], words = (l->start[label + 1] - from + 63) / 64;
    double *mean = allocate(l->d, sizeof(double));
    float lead[LEADS];
    l->radius[a] = linkage_union(l, a, b, mean, lead);
    memcpy(l->mean + a * l->d, mean, sizeof(double) * l->d);
    release(mean);
    memcpy(l->lead + a * LEADS, lead, sizeof lead);
    l->mass[a] += l->mass[b];
    for (int64_t i = b; i >= 0; i = l->next[i]) l->owner[i] = a;
    l->next[l->tail[a]] = b, l->tail[a] = l->tail[b];
    if (l->first[b] < l->first[a]) l->first[a] = l->first[b];
    l->size[a] += l->size[b], l->size[b] = 0;
    l->stamp[a]++, l->stamp[b]++;
    int64_t last = l->alive[from + --l->alive_n[label]];
    l->alive[from + l->position[b]] = last, l->position[last] = l->position[b];
    uint64_t *row = l->refused[label];
    for (int64_t w = 0; row && w < words; w++) row[(a - from) * words + w] |= row[(b - from) * words + w];
    for (int64_t i = 0; row && i < l->alive_n[label]; i++) {
        int64_t other = l->alive[from + i];
        if (is_refused(l, other, b)) set_refused(l, other, a);
    }
    look_around(l, a, 1, l->bound);
    if (l->near_n[a]) push(l, l->near[a * NEAREST].distance, a);
    return a;
}
