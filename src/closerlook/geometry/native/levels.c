/* The ranks of distances between all pairs of rows, by level. */
#include "call.h"
#include "engine.h"

/*
 * The level of a distance; distance * scale is below 1. Each of the OCTAVES below 1 has 2^FINE levels, so that one row far
 * from all others does not push them into few levels; smaller distances are at level 0. A level with an index in `places` is
 * divided by the next FINER bits; these levels come after all others. Levels are bits of the number, which sort as the number
 * does; NaN is at the last level.
 */
static int64_t level(double distance, double scale, const int64_t *places)
{
    union { double value; int64_t bits; } share = {distance * scale};
    if (!(share.value < 1)) return ((int64_t)OCTAVES << FINE) - 1;
    int64_t found = (share.bits >> (52 - FINE)) - ((int64_t)(1023 - OCTAVES) << FINE);
    if (found <= 0) return 0;
    if (!places || places[found] < 0) return found;
    int64_t inner = (share.bits >> (52 - FINE - FINER)) & ((1 << FINER) - 1);
    return ((int64_t)OCTAVES << FINE) + (places[found] << FINER) + inner;
}

/* The first column of row i above the diagonal; row 0 is at column `diagonal`. */
static int64_t first_column(int64_t i, int64_t diagonal) { return i + diagonal + 1 > 0 ? i + diagonal + 1 : 0; }

enum { CODES = 1 << 16, SMALLEST = (OCTAVES << FINE) - CODES }; /* levels above SMALLEST, and level 0, have a code */

typedef struct {
    const double *distance;
    int64_t rows, columns, diagonal;
    double scale;
    const int64_t *places;
    int64_t *counts;
    short *codes;
    int coded;
} Census;

/* Count the levels of row i, and write their codes; level 0 has the smallest code. */
static void count_with_codes(Census *c, int64_t i)
{
    const double *distance = c->distance + i * c->columns;
    short *codes = c->codes + i * c->columns;
    for (int64_t j = first_column(i, c->diagonal); j < c->columns; j++) {
        int64_t found = level(distance[j], c->scale, NULL);
        c->counts[found]++;
        if (found && found <= SMALLEST) c->coded = 0;
        codes[j] = (short)(found ? found - SMALLEST - CODES / 2 : -CODES / 2);
    }
}

static void count_rows(void *arguments)
{
    Census *c = arguments;
    for (int64_t i = 0; i < c->rows; i++) {
        check_stop();
        if (c->codes) {
            count_with_codes(c, i);
            continue;
        }
        const double *distance = c->distance + i * c->columns;
        for (int64_t j = first_column(i, c->diagonal); j < c->columns; j++)
            c->counts[level(distance[j], c->scale, c->places)]++;
    }
}

Status count_levels(const double *distance, int64_t rows, int64_t columns, int64_t diagonal, double scale,
                    const int64_t *places, int64_t *counts, short *codes, int *coded)
{
    Census census = {distance, rows, columns, diagonal, scale, places, counts, codes, 1};
    Status status = call_single(count_rows, &census);
    *coded = census.coded;
    return status;
}

typedef struct {
    double *distance;
    const double *rank;
    const short *codes;
    const int64_t *places;
    double scale;
    int64_t rows, columns, diagonal;
} Ranking;

static void rank_rows(void *arguments)
{
    const Ranking *r = arguments;
    for (int64_t i = 0; i < r->rows; i++) {
        check_stop();
        double *row = r->distance + i * r->columns;
        const short *codes = r->codes ? r->codes + i * r->columns : NULL;
        for (int64_t j = first_column(i, r->diagonal); j < r->columns; j++)
            if (codes)
                row[j] = r->rank[codes[j] == -CODES / 2 ? 0 : SMALLEST + CODES / 2 + codes[j]];
            else
                row[j] = r->rank[level(row[j], r->scale, r->places)];
    }
}

Status rank_distances(double *distance, int64_t rows, int64_t columns, int64_t diagonal, double scale, const int64_t *places,
                      const double *rank, const short *codes)
{
    Ranking ranking = {distance, rank, codes, places, scale, rows, columns, diagonal};
    return call_single(rank_rows, &ranking);
}

typedef struct {
    const double *distance, *rank;
    int64_t rows, columns, diagonal;
    double scale, *sums;
    const int64_t *places;
    int64_t *counts;
} Sums;

static void add_ranks(void *arguments)
{
    const Sums *s = arguments;
    for (int64_t i = 0; i < s->rows; i++) {
        check_stop();
        const double *distance = s->distance + i * s->columns, *rank = s->rank + i * s->columns;
        for (int64_t j = first_column(i, s->diagonal); j < s->columns; j++) {
            int64_t found = level(distance[j], s->scale, s->places);
            s->counts[found]++, s->sums[found] += rank[j];
        }
    }
}

Status sum_ranks(const double *distance, const double *rank, int64_t rows, int64_t columns, int64_t diagonal, double scale,
                 const int64_t *places, int64_t *counts, double *sums)
{
    Sums all = {distance, rank, rows, columns, diagonal, scale, sums, places, counts};
    return call_single(add_ranks, &all);
}
