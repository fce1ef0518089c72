/*
 * The engine without Python: cluster small sets, print what was found, and print the same lines on every platform. Afterwards make
 * every allocation of a call fail in turn. The numbers come from integer arithmetic, so they are the same everywhere.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine.h"

enum { LABELS = 3, MOST_ROWS = 240, MOST_DIMENSIONS = 40 };

typedef struct {
    int64_t n, frozen, d;
    int threads;
    double X[MOST_ROWS * MOST_DIMENSIONS], mass[MOST_ROWS], basis[(LEADS - 1) * MOST_DIMENSIONS];
    float single[MOST_ROWS * MOST_DIMENSIONS];
    int64_t start[LABELS + 1], order[MOST_ROWS], foe_start[LABELS + 1], foe[LABELS * LABELS], block_start[LABELS + 1];
    int64_t block[LABELS * MOST_ROWS], owner[MOST_ROWS], region[MOST_ROWS];
    Counts counts;
} Set;

static double random_number(uint64_t *state) /* a sum of four numbers in [0, 1), minus 2 */
{
    double sum = -2;
    for (int i = 0; i < 4; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 40) / (1 << 24);
    }
    return sum;
}

/* Labels of n / LABELS points each, `shift` apart; every label may be blocked by every other and by all frozen rows. */
static void fill(Set *s, uint64_t seed, int64_t n, int64_t frozen, int64_t d, double shift, int threads)
{
    s->n = n, s->frozen = frozen, s->d = d, s->threads = threads;
    for (int64_t label = 0; label <= LABELS; label++) {
        s->start[label] = label * n / LABELS;
        s->foe_start[label] = label * (LABELS - 1), s->block_start[label] = label * frozen;
    }
    for (int64_t label = 0; label < LABELS; label++) {
        for (int64_t other = 0, at = s->foe_start[label]; other < LABELS; other++)
            if (other != label) s->foe[at++] = other;
        for (int64_t i = 0; i < frozen; i++) s->block[label * frozen + i] = i;
    }
    for (int64_t i = 0; i < n + frozen; i++) {
        s->order[i] = i, s->mass[i] = 1, s->region[i] = -1;
        for (int64_t k = 0; k < d; k++) s->X[i * d + k] = random_number(&seed) + (k == 0) * shift * (double)(i * LABELS / n);
    }
    for (int64_t i = 0; i < n; i++) /* a region is an interval of the first coordinate, far from the next one */
        for (int64_t label = 0; label < LABELS; label++)
            if (fabs(s->X[i * d] - shift * (double)label) < 0.499 * shift) s->region[i] = label;
    for (int64_t i = 0; i < (n + frozen) * d; i++) s->single[i] = (float)s->X[i];
    for (int64_t i = 0; i < (LEADS - 1) * d; i++) s->basis[i] = i / d == i % d; /* the first axes, then zeros */
}

static Status cluster(Set *s, int64_t limit)
{
    Greedy *greedy;
    int finished = 0;
    Status status = greedy_new(s->X, s->n, s->frozen, s->d, LABELS, s->start, s->order, s->mass, s->basis, s->region,
                               s->foe_start, s->foe, s->block_start, s->block, 1e-6, 1e-12, 1e-12, limit, NULL, s->threads,
                               &greedy);
    if (status) return status;
    status = greedy_add_plane(greedy, 0, 1, s->basis);
    while (!status && !finished) status = greedy_run(greedy, 0.01, &finished);
    if (!status) greedy_owners(greedy, s->owner), s->counts = greedy_counts(greedy);
    greedy_free(greedy);
    return status;
}

/* The verdicts on all pairs of labels, as digits. */
static Status decide(const Set *s, char *text)
{
    int64_t pairs[2 * LABELS] = {0, 1, 0, 2, 1, 2}, places[MOST_ROWS], steps[LABELS];
    double lower[LABELS], upper[LABELS];
    signed char verdict[LABELS];
    for (int64_t i = 0; i < s->n; i++) places[i] = i;
    Status status = solve_pairs(s->X, s->single, 1e3, s->d, s->start, LABELS, places, pairs, LABELS, 1e-6, 1e-12, 0, 10000,
                                s->threads, verdict, lower, upper, steps, NULL, NULL, NULL, NULL, NULL);
    for (int i = 0; i < LABELS && !status; i++) text[i] = (char)('0' + verdict[i]);
    return status;
}

static int report(Set *s, int number, int64_t limit)
{
    char verdicts[LABELS + 1] = "";
    if (decide(s, verdicts) || cluster(s, limit)) return 1;
    printf("set %d, limit %" PRId64 ": %s, %" PRId64 " attempts, %" PRId64 " merges, %" PRId64 " blocked, %" PRId64 " undecided:", number, limit, verdicts,
           s->counts.attempts, s->counts.merges, s->counts.refusals, s->counts.undecided);
    for (int64_t i = 0; i < s->n; i++) printf(" %" PRId64, s->owner[i]);
    printf("\n");
    return 0;
}

/* Make each allocation fail; returns 1 if one goes unnoticed or leaves memory behind. */
static int exhaust(Set *s, int64_t limit)
{
    char verdicts[LABELS + 1];
    for (int64_t k = 1; k < 100000; k++) {
        engine_fail_allocation(k);
        Status status = decide(s, verdicts);
        if (!status) status = cluster(s, limit);
        engine_fail_allocation(0);
        if (engine_blocks()) return 1;
        if (!status) return k < 50;
    }
    return 1;
}

int main(void)
{
    static const struct { int64_t n, frozen, d; double shift; } shapes[] = {
        {30, 0, 1, 0.5}, {60, 0, 2, 0.3}, {90, 6, 3, 0.4}, {120, 0, 5, 0.2}, {150, 10, 8, 0.3}, {240, 0, 16, 0.1},
        {180, 0, 40, 0}, {60, 0, 33, 0}, {90, 0, 4, 9},
    };
    Set *s = malloc(sizeof *s);
    int failed = !s, number = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && !failed; i++)
        for (int threads = 1; threads <= 3 && !failed; threads++) {
            fill(s, i + 1, shapes[i].n, shapes[i].frozen, shapes[i].d, shapes[i].shift, threads);
            failed = report(s, ++number, -1) || report(s, number, s->n);
        }
    for (int threads = 1; threads <= 3 && !failed; threads++) {
        fill(s, 7, 60, 5, 20, 0.1, threads);
        failed = exhaust(s, -1) || (threads == 1 && exhaust(s, s->n));
    }
    free(s);
    printf(failed ? "failed\n" : "all allocations checked\n");
    return failed;
}
