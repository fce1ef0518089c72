/*
 * The same loops compiled for two sets of instructions: those of every x86-64 processor, and AVX2 with fused multiply-add.
 * When the library is loaded, it takes the second set if the processor has it, unless the environment variable
 * CLOSERLOOK_KERNELS is "baseline". The two round differently, so certified bounds may differ in their last digits; verdicts
 * and clusters do not. (gcc's target_clones with simd pragmas would be shorter, but gcc then adds sums term by term; vectors
 * of 64 bytes were no faster than those of 32.)
 */
#include "linear.h"

#include <stdlib.h>
#include <string.h>

#define FOR_THIS(name) name##_plain
#define BYTES 16
#include "linear_loops.h"
#undef FOR_THIS
#undef BYTES

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE
#pragma GCC push_options
#pragma GCC target("arch=haswell")
#define FOR_THIS(name) name##_haswell
#define BYTES 32
#include "linear_loops.h"
#undef FOR_THIS
#undef BYTES
#pragma GCC pop_options
#endif

__typeof__(dot_plain) *dot = dot_plain;
__typeof__(squared_distance_plain) *squared_distance = squared_distance_plain;
__typeof__(add_scaled_plain) *add_scaled = add_scaled_plain;
__typeof__(rotate_plain) *rotate = rotate_plain;
__typeof__(project_plain) *project = project_plain;
__typeof__(project_single_plain) *project_single = project_single_plain;
__typeof__(project_rows_plain) *project_rows = project_rows_plain;
__typeof__(combine_rows_plain) *combine_rows = combine_rows_plain;
__typeof__(lead_distances_plain) *lead_distances = lead_distances_plain;

#ifdef WIDE
#define TAKE(set)                                                                                                      \
    dot = dot_##set, squared_distance = squared_distance_##set, add_scaled = add_scaled_##set, rotate = rotate_##set;  \
    project = project_##set, project_single = project_single_##set, project_rows = project_rows_##set;                 \
    combine_rows = combine_rows_##set, lead_distances = lead_distances_##set;

__attribute__((constructor)) static void choose(void)
{
    const char *chosen = getenv("CLOSERLOOK_KERNELS");
    if (chosen && !strcmp(chosen, "baseline")) return;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        TAKE(haswell)
    }
}
#endif
