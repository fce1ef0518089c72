/*
 * The same loops compiled for two sets of instructions: those of every processor of the architecture, and, for x86-64, AVX2 with
 * fused multiply-add. When the library is loaded, it takes the second set if the processor and the system have exactly what that
 * set was compiled for, unless the environment variable CLOSERLOOK_KERNELS is "baseline". The two round differently, so certified
 * bounds may differ in their last digits; verdicts and clusters do not. (gcc's target_clones with simd pragmas would be shorter,
 * but gcc then adds sums term by term; vectors of 64 bytes were no faster than those of 32.)
 */
#include "linear.h"

#include <stdlib.h>
#include <string.h>

typedef double TwoDoubles __attribute__((vector_size(16)));
typedef float FourFloats __attribute__((vector_size(16)));

#define FOR_THIS(name) name##_plain
#define BYTES 16
#include "linear_loops.h"
#undef FOR_THIS
#undef BYTES

#ifdef __x86_64__
#include <cpuid.h>
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define FOR_THIS(name) name##_wide
#define BYTES 32
#include "linear_loops.h"
#undef FOR_THIS
#undef BYTES
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

__typeof__(dot_plain) *dot = dot_plain;
__typeof__(squared_distance_plain) *squared_distance = squared_distance_plain;
__typeof__(squared_single_plain) *squared_single = squared_single_plain;
__typeof__(add_scaled_plain) *add_scaled = add_scaled_plain;
__typeof__(subtract_four_plain) *subtract_four = subtract_four_plain;
__typeof__(rotate_plain) *rotate = rotate_plain;
__typeof__(project_plain) *project = project_plain;
__typeof__(project_single_plain) *project_single = project_single_plain;
__typeof__(project_rows_plain) *project_rows = project_rows_plain;
__typeof__(project_on_several_plain) *project_on_several = project_on_several_plain;
__typeof__(combine_rows_plain) *combine_rows = combine_rows_plain;
__typeof__(lead_distances_plain) *lead_distances = lead_distances_plain;

#ifdef __x86_64__
#define TAKE(set)                                                                                                      \
    dot = dot_##set, squared_distance = squared_distance_##set, add_scaled = add_scaled_##set, rotate = rotate_##set;  \
    project = project_##set, project_single = project_single_##set, project_rows = project_rows_##set;                 \
    combine_rows = combine_rows_##set, lead_distances = lead_distances_##set;                               \
    subtract_four = subtract_four_##set, project_on_several = project_on_several_##set, squared_single = squared_single_##set;

/* Whether the processor has AVX2 and FMA, and the system saves the wide registers. Not every compiler brings its own test. */
static int has_wide(void)
{
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    unsigned needed = bit_OSXSAVE | bit_AVX | bit_FMA;
    if ((c & needed) != needed) return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 6) != 6) return 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_AVX2);
}

__attribute__((constructor)) static void choose(void)
{
    const char *chosen = getenv("CLOSERLOOK_KERNELS");
    if (chosen && !strcmp(chosen, "baseline")) return;
    if (has_wide()) {
        TAKE(wide)
    }
}
#endif
