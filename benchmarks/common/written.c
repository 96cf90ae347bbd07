#include "written.h"

#include <errno.h>
#include <string.h>

void gather_output(void)
{
    /* A stream without a buffer gets none by itself. Where that fails it goes out as it did. */
    static char buffer[BUFSIZ];
    (void)setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}

const char *why_unwritten(FILE *out)
{
    errno = 0;
    if (fflush(out) != 0)
        return strerror(errno);
    /* Only the write that failed knew why, and what came after it was taken. */
    return ferror(out) ? "an earlier part of it was not taken, and its reason is not known" : NULL;
}

int see_output_written(const char *program)
{
    const char *why = why_unwritten(stdout);
    if (why)
        fprintf(stderr, "%s: standard output could not be written: %s\n", program, why);
    return why ? -1 : 0;
}
