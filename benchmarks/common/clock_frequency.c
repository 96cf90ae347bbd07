#include "clock_frequency.h"

#include "clock.h"

/* Long enough that reading the clock is nothing, short enough to be seldom interrupted. */
#define ADDITIONS 262144L
#define PIECES 3

/* The compiler must not know the result of an addition, or it would do all of them at once. The
 * summand is a register too: some processors add a constant without taking a cycle for it. */
#define ADD __asm__ volatile("" : "+r"(sum)); sum += summand
#define ADD_8 ADD; ADD; ADD; ADD; ADD; ADD; ADD; ADD

/* Every addition needs the sum before it, and one takes a cycle on every processor of the last
 * decades; the loop's own counting is done beside it. */
static double seconds_of_additions(void)
{
    unsigned long sum = 1, summand = 3;
    __asm__ volatile("" : "+r"(summand));
    const double began = seconds_now();
    for (long i = 0; i < ADDITIONS / 32; i++) {
        ADD_8;
        ADD_8;
        ADD_8;
        ADD_8;
    }
    __asm__ volatile("" : : "r"(sum));
    return seconds_now() - began;
}

double clock_frequency(void)
{
    double shortest = seconds_of_additions();
    for (int piece = 1; piece < PIECES; piece++) {
        const double took = seconds_of_additions();
        /* An interruption makes a piece longer and never shorter. */
        if (took < shortest)
            shortest = took;
    }
    return shortest > 0.0 ? (double)ADDITIONS / shortest : 0.0;
}
