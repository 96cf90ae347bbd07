/* A function for each kind of vector unit; the one that the processor has is chosen when
 * the program starts: an image runs on other machines than the one that compiles it. */
#ifndef WYEAST_VECTOR_CLONES_H
#define WYEAST_VECTOR_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define VECTOR_CLONES __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define VECTOR_CLONES
#endif

#endif
