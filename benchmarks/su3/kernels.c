#include "kernels.h"

#include <math.h>
#include <string.h>

#define JOIN3(a, b, c) a##_##b##_##c
#define JOIN2(a, b, c) JOIN3(a, b, c)

/* The same source for every precision and vector unit. Vectors are gcc's own, so the compiler has no
 * choice whether to vectorise; the unit is chosen at run time. */
#define NUMBER double
#define PRECISION double
#define UNIT portable
#define VECTOR_BYTES 16
#include "kernels_template.h"

#define NUMBER float
#define PRECISION single
#define UNIT portable
#define VECTOR_BYTES 16
#include "kernels_template.h"

#ifdef __x86_64__
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define NUMBER double
#define PRECISION double
#define UNIT avx2
#define VECTOR_BYTES 32
#include "kernels_template.h"

#define NUMBER float
#define PRECISION single
#define UNIT avx2
#define VECTOR_BYTES 32
#include "kernels_template.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512vl,avx2,fma,prefer-vector-width=512")
#define NUMBER double
#define PRECISION double
#define UNIT avx512
#define VECTOR_BYTES 64
#include "kernels_template.h"

#define NUMBER float
#define PRECISION single
#define UNIT avx512
#define VECTOR_BYTES 64
#include "kernels_template.h"
#pragma GCC pop_options
#endif

const char *const instruction_names[] = {"best", "portable", "avx2", "avx512", NULL};

const kernels *choose_kernels(int in_double, const char *instructions)
{
    const int best = strcmp(instructions, "best") == 0;
#ifdef __x86_64__
    __builtin_cpu_init();
    if ((best || strcmp(instructions, "avx512") == 0) && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return in_double ? &kernels_double_avx512 : &kernels_single_avx512;
    if ((best || strcmp(instructions, "avx2") == 0) && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma"))
        return in_double ? &kernels_double_avx2 : &kernels_single_avx2;
#endif
    if (best || strcmp(instructions, "portable") == 0)
        return in_double ? &kernels_double_portable : &kernels_single_portable;
    return NULL;
}
