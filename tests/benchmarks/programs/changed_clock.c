/* A library to load before a program: the program's own readings of CLOCK_MONOTONIC are others than
 * the libraries', which go by the right time. CHANGED_CLOCK_FACTOR makes the clock so many times as
 * fast, CHANGED_CLOCK_BACK_AFTER sets it back by ten seconds after so many. Else MPI_Wtime is of no
 * use: it always says the same, which a program looks at for a while. */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The launcher has none. */
double PMPI_Wtime(void) __attribute__((weak));
double MPI_Wtime(void);
double MPI_Wtime(void)
{
    return getenv("CHANGED_CLOCK_BACK_AFTER") && PMPI_Wtime ? PMPI_Wtime() : 4711.0;
}

static uintptr_t low, high;

/* The first object is the program. */
static int find_program(struct dl_phdr_info *object, size_t size, void *unused)
{
    (void)size, (void)unused;
    low = UINTPTR_MAX;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD)
            continue;
        const uintptr_t begin = object->dlpi_addr + part->p_vaddr, end = begin + part->p_memsz;
        low = begin < low ? begin : low;
        high = end > high ? end : high;
    }
    return 1;
}

static double number_of(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text ? atof(text) : otherwise;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static double first;
    const int code = (int)syscall(SYS_clock_gettime, clock, time);
    const uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!high)
        dl_iterate_phdr(find_program, NULL);
    if (code || clock != CLOCK_MONOTONIC || caller < low || caller >= high)
        return code;
    double now = (double)time->tv_sec + 1e-9 * (double)time->tv_nsec;
    if (first == 0.0)
        first = now;
    if (now - first > number_of("CHANGED_CLOCK_BACK_AFTER", 1e9))
        now -= 10.0;
    now = first + number_of("CHANGED_CLOCK_FACTOR", 1.0) * (now - first);
    time->tv_sec = (time_t)now;
    time->tv_nsec = (long)((now - (double)time->tv_sec) * 1e9);
    return 0;
}
