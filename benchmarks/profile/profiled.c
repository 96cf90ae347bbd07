/* Start a program with the profile's library in it, and nothing else: a launcher that starts
 * `profiled PROGRAM` has the library in the ranks alone. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "../lib/libwyeast_profile.so"

static void print_usage(FILE *out)
{
    fputs("usage: profiled [--output FILE] PROGRAM [ARGUMENT ...]\n"
          "\n"
          "Start one rank of an MPI program with its calls of MPI counted and timed. At its end rank 0\n"
          "writes the profile to FILE, or to the file that WYEAST_PROFILE names.\n"
          "\n"
          "example: mpiexec -n 2 profiled --output profile.jsonl xhpl\n",
          out);
}

__attribute__((noreturn, format(printf, 2, 3))) static void leave(int code, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("profiled: ", stderr);
    vfprintf(stderr, format, values);
    fputs("\n", stderr);
    va_end(values);
    exit(code);
}

/* Return two texts with something between them, to be kept. */
static char *join(const char *first, const char *between, const char *second)
{
    size_t room = strlen(first) + strlen(between) + strlen(second) + 1;
    char *made = malloc(room);
    if (!made)
        leave(1, "no memory");
    snprintf(made, room, "%s%s%s", first, between, second);
    return made;
}

static void set_variable(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0)
        leave(1, "%s cannot be set: %s", name, strerror(errno));
}

/* The library is next to this program's folder. */
static char *find_library(void)
{
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0)
        leave(1, "this program's own path cannot be found: %s", strerror(errno));
    own[length] = '\0';
    *strrchr(own, '/') = '\0';
    char *library = join(own, "/", LIBRARY);
    if (access(library, R_OK) != 0)
        leave(1, "%s cannot be read: %s", library, strerror(errno));
    return library;
}

int main(int argc, char **argv)
{
    int at = 1;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return 0;
    }
    if (argc > 2 && strcmp(argv[1], "--output") == 0) {
        /* The program may go to another folder before it ends. */
        char *here = argv[2][0] == '/' ? NULL : getcwd(NULL, 0);
        set_variable("WYEAST_PROFILE", here ? join(here, "/", argv[2]) : argv[2]);
        free(here);
        at = 3;
    }
    if (at >= argc || argv[at][0] == '-') {
        print_usage(stderr);
        return 2;
    }
    char *library = find_library();
    const char *before = getenv("LD_PRELOAD");
    set_variable("LD_PRELOAD", before && *before ? join(library, ":", before) : library);
    execvp(argv[at], &argv[at]);
    leave(errno == ENOENT ? 127 : 126, "%s: %s", argv[at], strerror(errno));
}
