/* Saved states: the active set of a solver, without the rows, which can be computed from its points. */
#include <string.h>

#include "active.h"

struct State {
    size_t size;
    int64_t k;
    double lift;
    double numbers[]; /* origin, weight, ya, yb, the rows of R; then places and sides */
};

State *solver_save(const Solver *s)
{
    size_t k = (size_t)s->k, d = (size_t)s->d, doubles = d + 3 * k + k * (k + 1) / 2;
    size_t size = sizeof(State) + sizeof(double) * doubles + sizeof(int64_t) * k + k;
    State *state = allocate((int64_t)size, 1);
    state->size = size, state->k = s->k, state->lift = s->lift;
    double *to = state->numbers;
    memcpy(to, s->origin, sizeof(double) * d), to += d;
    memcpy(to, s->weight, sizeof(double) * k), to += k;
    memcpy(to, s->ya, sizeof(double) * k), to += k;
    memcpy(to, s->yb, sizeof(double) * k), to += k;
    for (size_t i = 0; i < k; to += k - i, i++) memcpy(to, s->R + i * s->cap + i, sizeof(double) * (k - i));
    memcpy(to, s->place, sizeof(int64_t) * k);
    memcpy((int64_t *)to + k, s->side, k);
    return state;
}

size_t state_size(const State *state) { return state->size; }
int64_t state_active(const State *state) { return state->k; }

void solver_load(Solver *s, const State *state)
{
    size_t k = (size_t)state->k, d = (size_t)s->d;
    const double *from = state->numbers;
    s->k = state->k, s->lift = state->lift;
    memcpy(s->origin, from, sizeof(double) * d), from += d;
    memcpy(s->weight, from, sizeof(double) * k), from += k;
    memcpy(s->ya, from, sizeof(double) * k), from += k;
    memcpy(s->yb, from, sizeof(double) * k), from += k;
    for (size_t i = 0; i < k; from += k - i, i++) memcpy(s->R + i * s->cap + i, from, sizeof(double) * (k - i));
    memcpy(s->place, from, sizeof(int64_t) * k);
    memcpy(s->side, (const int64_t *)from + k, k);
    for (size_t i = 0; i < k; i++) active_row(s, s->row[i], s->place[i], s->side[i]);
}
