/* Functions that are compiled for several generations of processors, of which the program takes the
 * best when it starts: an image runs on other machines than the one that compiled it. */
#ifndef WYEAST_FOR_THIS_PROCESSOR_H
#define WYEAST_FOR_THIS_PROCESSOR_H

/* A sanitizer is not ready yet when the choice is made. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define FOR_THIS_PROCESSOR __attribute__((target_clones("avx512f", "fma", "default")))
#else
#define FOR_THIS_PROCESSOR
#endif
#define PART_OF_IT static inline __attribute__((always_inline))

#endif
