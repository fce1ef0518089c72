#include "samples.h"

enum { GROWTH = 4 }; /* the next sample is this many times as large */

typedef struct {
    int64_t *places, room;
    uint32_t stamp; /* of the cluster that they belong to */
} List;

struct Samples {
    const Linkage *link;
    List *of;         /* for each slot */
    int64_t *members; /* working memory */
};

Samples *samples_new(const Linkage *link)
{
    Samples *samples = allocate(1, sizeof *samples);
    samples->link = link;
    samples->of = allocate_zeros(link->n + 1, sizeof(List));
    samples->members = allocate(link->n + 1, sizeof(int64_t));
    return samples;
}

/* The size of the smallest sample of n points, each GROWTH times as large as the one before, that is larger than `least`. */
static int64_t sample_beyond(int64_t n, int64_t least)
{
    while (n >= LARGE_CLUSTER && (n + GROWTH - 1) / GROWTH > least) n = (n + GROWTH - 1) / GROWTH;
    return n;
}

void samples_write(const int64_t *members, int64_t n, int64_t *places)
{
    int64_t step = 1, written = 0;
    for (int64_t m = n; m >= LARGE_CLUSTER; m = (m + GROWTH - 1) / GROWTH) step *= GROWTH;
    for (int64_t i = 0; i < n; i += step) places[written++] = members[i];
    for (; step > 1; step /= GROWTH)
        for (int64_t i = 0; i < n; i += step / GROWTH)
            if (i % step) places[written++] = members[i];
}

Points samples_points(Samples *samples, int64_t slot, int64_t *room)
{
    const Linkage *l = samples->link;
    List *list = &samples->of[slot];
    Points points = {room, l->size[slot], l->mean + slot * l->d};
    if (points.n < LARGE_CLUSTER) {
        linkage_points(l, slot, room);
        return points;
    }
    if (list->room < points.n) {
        list->room = points.n + points.n / 2;
        list->places = reallocate(list->places, list->room, sizeof(int64_t));
        list->stamp = 0;
    }
    points.places = list->places;
    if (list->stamp == l->stamp[slot]) return points;
    int64_t n = 0, *members = samples->members;
    for (int64_t i = l->start[l->label[slot]]; i < l->start[l->label[slot] + 1]; i++)
        members[n] = i, n += l->owner[i] == slot;
    samples_write(members, n, list->places);
    list->stamp = l->stamp[slot];
    return points;
}

void samples_merge(Samples *samples, int64_t gone)
{
    release(samples->of[gone].places);
    samples->of[gone] = (List){0};
}

int solve_by_samples(Solver *s, Points A, Points B, const Wanted *wanted, const State *from, Points news, int side,
                     int64_t *steps)
{
    State *state = NULL;
    int64_t a = sample_beyond(A.n, 0), b = sample_beyond(B.n, 0);
    *steps = 0;
    for (;;) {
        int verdict = solve(s, (Points){A.places, a, A.mean}, (Points){B.places, b, B.mean}, wanted, from, news, side);
        *steps += solver_steps(s);
        release(state);
        if (verdict == OVERLAPPING || (a == A.n && b == B.n)) return verdict;
        from = state = solver_save(s);
        int64_t more_a = sample_beyond(A.n, a) - a, more_b = sample_beyond(B.n, b) - b;
        news = more_a > more_b ? (Points){A.places + a, more_a, NULL} : (Points){B.places + b, more_b, NULL};
        side = more_a > more_b ? 1 : -1;
        a += more_a, b += more_b;
    }
}
