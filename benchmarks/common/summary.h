/* Order statistics of measured times. */
#ifndef WYEAST_SUMMARY_H
#define WYEAST_SUMMARY_H

#include <stddef.h>

/* Seconds. Quartiles and median interpolate linearly between order statistics (type 7 of
 * Hyndman and Fan, the default of numpy and R). */
typedef struct {
    double min, quartile1, median, mean, quartile3, max;
} time_summary;

/* Summarise count > 0 values; scratch has room for count values. */
time_summary summarise(const double *values, size_t count, double *scratch);

#endif
