/*
 * Everything that Python calls. C includes this file, and binding.py reads it, so that the two cannot disagree. Declarations use
 * only these types: int, int64_t, double, Status, the structs below, void *, and arrays of double, float, int64_t, int, short or signed char.
 * An array that is not const is written to. An array that is OPTIONAL may be NULL.
 */
#ifndef CLOSERLOOK_ENGINE_H
#define CLOSERLOOK_ENGINE_H

#include <stdint.h>

#ifdef _WIN32
#define ENGINE __declspec(dllexport)
#else
#define ENGINE __attribute__((visibility("default")))
#endif

#define OPTIONAL

typedef int Status;
enum { COMPLETED = 0, OUT_OF_MEMORY = 1, STOPPED = 2 };

enum { UNDECIDED = 0, SEPARABLE = 1, OVERLAPPING = 2 }; /* verdicts */
enum { LEADS = 64 };                                    /* numbers in the short rows that approximate long ones */
enum { OCTAVES = 24, FINE = 14, FINER = 12 };           /* levels of distances: see levels.c */

/* ---- the library itself ---- */

/*
 * Python's functions PyEval_SaveThread, PyEval_RestoreThread and PyErr_CheckSignals: every call that returns a Status releases
 * the interpreter lock, and ends with STOPPED, and the exception set, when a signal handler raises one.
 */
ENGINE void engine_attach(void *release_lock, void *acquire_lock, void *check_signals);

ENGINE void engine_fail_allocation(int64_t k); /* for tests: the k-th allocation from now on fails; 0: none */
ENGINE int64_t engine_blocks(void);            /* blocks of memory in use */

/* ---- pairs of hulls (batch.c) ---- */

/*
 * Decide pairs of groups of rows of X; single: X in single precision; longest: the length of the longest row. Certificates
 * (normal, active, place, weight and side) are written unless they are all NULL.
 */
ENGINE Status solve_pairs(const double *X, const float *single, double longest, int64_t d, const int64_t *group_start,
                          int64_t groups, const int64_t *places, const int64_t *pairs, int64_t n_pairs, double tau,
                          double slack, double gap, int64_t max_steps, int threads, signed char *verdict, double *lower,
                          double *upper, int64_t *steps, OPTIONAL double *normal, OPTIONAL int64_t *active,
                          OPTIONAL int64_t *place, OPTIONAL double *weight, OPTIONAL signed char *side);

/* ---- points and one hull (nearest.c) ---- */

/* Bounds for m queries; see Job in nearest.c. Work on a query ends once its lower bound exceeds the cutoff. */
ENGINE Status nearest(const double *K, int64_t n, const double *S, const double *square, const double *cutoff, int64_t m,
                      int64_t d, double gap, int threads, double *lower, double *upper);

/* ---- all pairs of rows (pairs.c) ---- */

/*
 * The k nearest of n rows for each of the rows `which`, without the row itself, and their squared distances from
 * differences in X. about: (rows, n) squared distances in single precision, minus the row's own squared length, used to choose
 * candidates. Every row within the error of that choice is computed exactly, so the result does not depend on it: the error
 * is at most unit * (|x| + |y|)^2, and a row y nearer than r to x is no longer than |x| + r.
 */
ENGINE Status nearest_in_strip(const double *X, int64_t n, int64_t d, const double *length, const float *about,
                               const int64_t *which, int64_t rows, int64_t k, double unit, int64_t *row, double *squared);

/*
 * Lists of the `room` nearest rows of each row, with squared distances that have rounding errors: value and row, nearest first
 * (row -1: none yet), and limit, the last value of each list. block: (rows, columns) such distances, of the rows from `first` on
 * and those from `column` on. Each pair above the diagonal is offered to the lists of both of its rows.
 */
ENGINE Status offer_pairs(const double *block, int64_t rows, int64_t columns, int64_t first, int64_t column, int64_t room,
                          double *value, int64_t *row, double *limit);

/*
 * The k nearest rows from these lists, and their squared distances from differences in X. counted: 1 for rows that count; the
 * others are skipped. settled: 1 if no row outside the list can be as near, where the error of a value is at most
 * unit * (|x| + |y|)^2, including that of the differences.
 */
ENGINE Status settle_nearest(const double *X, int64_t n, int64_t d, const double *length, const double *value,
                             const int64_t *listed, int64_t room, const signed char *counted, int64_t k, double unit,
                             int64_t *row, double *squared, signed char *settled);

/* ---- ranks of distances (levels.c) ---- */

/*
 * Count the distances at each level. distance: (rows, columns) of which those above the diagonal count; row 0 is at column
 * `diagonal`, which is negative if all columns are later rows. places: indices of divided levels, or NULL; counts: one for each
 * level, increased. codes: the levels in two bytes, if none is divided; coded: 0 if a level has no code.
 */
ENGINE Status count_levels(const double *distance, int64_t rows, int64_t columns, int64_t diagonal, double scale,
                           OPTIONAL const int64_t *places, int64_t *counts, OPTIONAL short *codes, int *coded);

/* Replace each distance above the diagonal by its rank; rank: by level. With codes, from these instead of the distances. */
ENGINE Status rank_distances(double *distance, int64_t rows, int64_t columns, int64_t diagonal, double scale,
                             OPTIONAL const int64_t *places, const double *rank, OPTIONAL const short *codes);

/* Count the distances at each level, and add up the ranks that the same pairs have in another space: (rows, columns). */
ENGINE Status sum_ranks(const double *distance, const double *rank, int64_t rows, int64_t columns, int64_t diagonal,
                        double scale, OPTIONAL const int64_t *places, int64_t *counts, double *sums);

/* ---- DirectProbe's greedy merging: merge the closest clusters of a label unless the union overlaps another's (greedy.c) ---- */

typedef struct Greedy Greedy;

typedef struct {
    int64_t attempts, merges, refusals, undecided, foes, by_plane, by_sphere, by_memory, by_means, solved, steps, weights;
} Counts;

/*
 * X: (n + frozen) x d. The first n rows are points that may merge, sorted by label (start: labels + 1 offsets). The other
 * rows belong to no cluster and block the labels that list them. basis: see linkage.h; region: see cores.h. foes: for each label,
 * the labels whose hull it overlaps (foe_start: labels + 1 offsets); blocks: likewise the frozen rows. order: rank of the points
 * for ties.
 * limit: the merging ends after this many attempts to merge two clusters, blocked ones included, and a blocked pair is tried again
 * when one of its clusters has grown; -1: no limit. alone: with a limit, whether each of the n points never merges; NULL: none.
 */
ENGINE Status greedy_new(const double *X, int64_t n, int64_t frozen, int64_t d, int64_t labels, const int64_t *start,
                         const int64_t *order, const double *mass, const double *basis, const int64_t *region,
                         const int64_t *foe_start, const int64_t *foe, const int64_t *block_start, const int64_t *block,
                         double tau, double slack, double tie, int64_t limit, OPTIONAL const signed char *alone, int threads,
                         Greedy **greedy);
ENGINE void greedy_free(Greedy *greedy);
ENGINE Status greedy_add_plane(Greedy *greedy, int64_t label, int64_t foe, const double *normal);

/* Continue for about this many seconds; finished: set to 1 when nothing is left to merge. */
ENGINE Status greedy_run(Greedy *greedy, double seconds, int *finished);

ENGINE Counts greedy_counts(const Greedy *greedy);
ENGINE void greedy_owners(const Greedy *greedy, int64_t *owner);
ENGINE void greedy_merges(const Greedy *greedy, int64_t *a, int64_t *b, double *distance); /* the smallest rank of each cluster */
/* Blocked merges: a point of each cluster, a point of the blocking one (n + i: frozen row i), where the weights begin. */
ENGINE void greedy_refusals(const Greedy *greedy, int64_t *a, int64_t *b, int64_t *blocker, int64_t *begin);
ENGINE void greedy_weights(const Greedy *greedy, int64_t *place, double *weight, signed char *side);

#endif
