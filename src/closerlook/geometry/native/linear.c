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

/* Each function is listed once: its name, and that of the loop behind it. */
#define FUNCTIONS(USE)                                                                                            \
    USE(dot, dot) USE(squared_distance, squared_distance) USE(add_scaled, add_scaled) USE(rotate, rotate)          \
    USE(subtract_four, subtract_four) USE(project, project) USE(project_rows, project_rows)                        \
    USE(project_on_several, project_on_several) USE(combine_rows, combine_rows)                                    \
    USE(dot_single, dot_single) USE(squared_single, squared_distance_single) USE(rotate_single, rotate_single)     \
    USE(subtract_four_single, subtract_four_single) USE(project_single, project_single)                            \
    USE(project_rows_single, project_rows_single) USE(project_on_several_single, project_on_several_single)        \
    USE(combine_rows_single, combine_rows_single) USE(lead_distances, lead_distances)

#define DEFINE(name, loop) __typeof__(loop##_plain) *name = loop##_plain;
FUNCTIONS(DEFINE)

#ifdef __x86_64__
#define TAKE_WIDE(name, loop) name = loop##_wide;

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
        FUNCTIONS(TAKE_WIDE)
    }
}
#endif
