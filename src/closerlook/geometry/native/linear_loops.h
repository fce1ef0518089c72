/*
 * The functions of linear.h, included once for each set of instructions. FOR_THIS gives them distinct names; BYTES is the
 * width of the vectors.
 */
typedef double FOR_THIS(Doubles) __attribute__((vector_size(BYTES), aligned(8), may_alias));
typedef float FOR_THIS(Floats) __attribute__((vector_size(BYTES), aligned(4), may_alias));

#define D FOR_THIS(Doubles)
#define F FOR_THIS(Floats)
#define LANES ((int64_t)(BYTES / sizeof(REAL)))
#define AT(kind, p) (*(const kind *)(p))

/* Sums of all lanes, by halves: fewer instructions, which wait for each other less, than lane by lane. */
static inline double FOR_THIS(sum)(D v)
{
    TwoDoubles part[BYTES / 16];
    memcpy(part, &v, BYTES);
    if (BYTES == 32) part[0] += part[BYTES / 16 - 1];
    return part[0][0] + part[0][1];
}

static inline float FOR_THIS(sum_single)(F v)
{
    FourFloats part[BYTES / 16];
    memcpy(part, &v, BYTES);
    if (BYTES == 32) part[0] += part[BYTES / 16 - 1];
    return (part[0][0] + part[0][2]) + (part[0][1] + part[0][3]);
}

#define REAL double
#define V D
#define NAMED(name) FOR_THIS(name)
#include "linear_reals.h"
#undef REAL
#undef V
#undef NAMED

#define REAL float
#define V F
#define NAMED(name) FOR_THIS(name##_single)
#include "linear_reals.h"
#undef V
#undef NAMED

static void FOR_THIS(lead_distances)(const float *a, const float *rows, const int64_t *places, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) {
        const float *b = rows + (places ? places[i] : i) * LEADS;
        F s = {0};
        for (int k = 0; k < LEADS; k += (int)LANES) {
            F x = AT(F, a + k) - AT(F, b + k);
            s += x * x;
        }
        out[i] = FOR_THIS(sum_single)(s);
    }
}

#undef D
#undef F
#undef REAL
#undef LANES
#undef AT
