#include "computation.h"

#include "clock.h"

/* A rank's computing speed is that of the quickest of some pieces, each much longer than a reading
 * of the clock, so that interruptions do not count. */
#define PIECES 20
#define OPERATIONS_OF_A_PIECE 20000LL

void compute(long long operations)
{
    static volatile double result = 1.0;
    double value = result;
    for (long long i = 0; i < operations; i++)
        value = value * 0.999999 + 1e-6;
    result = value;
}

long long operations_for(double seconds)
{
    double quickest = 0.0;
    for (int piece = 0; piece < PIECES; piece++) {
        const double began = seconds_now();
        compute(OPERATIONS_OF_A_PIECE);
        const double took = seconds_now() - began;
        if (took > 0.0 && (quickest == 0.0 || took < quickest))
            quickest = took;
    }
    return quickest > 0.0 ? (long long)(seconds / quickest * (double)OPERATIONS_OF_A_PIECE) : 0;
}
