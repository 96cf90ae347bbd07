#include "buffers.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define USUAL_PAGE 4096
/* Of x86-64, and of most kernels for ARM: where it is another one, there are fewer or none. */
#define HUGE_PAGE ((size_t)2 << 20)
/* Less has made su3 slower: usual pages spread it over the cache as chance will have it. */
#define FEWEST_ON_HUGE_PAGES (2 * HUGE_PAGE)
/* No cache line is shorter. */
#define SHORTEST_LINE 32

unsigned char *page_aligned(size_t bytes)
{
    long page = sysconf(_SC_PAGESIZE);
    /* LAM brings a malloc and free of its own, with memalign but older than posix_memalign: what
     * the C library's gives must not come to LAM's free. */
    void *buffer = memalign(page > 0 ? (size_t)page : USUAL_PAGE, bytes ? bytes : 1);
    if (!buffer)
        return NULL;
    memset(buffer, 0, bytes ? bytes : 1);
    return buffer;
}

unsigned char *on_huge_pages(size_t bytes)
{
    if (bytes < FEWEST_ON_HUGE_PAGES || bytes > SIZE_MAX - HUGE_PAGE)
        return page_aligned(bytes);
    const size_t whole = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    unsigned char *memory = memalign(HUGE_PAGE, whole);
    if (!memory)
        return NULL;
    /* Whatever comes of it: without, the pages are the usual ones. */
    madvise(memory, whole, MADV_HUGEPAGE);
    memset(memory, 0, whole);
    return memory;
}

unsigned char pattern(size_t offset, unsigned long long n, int sender)
{
    unsigned long long mixed = (offset + 1) * 0x9e3779b97f4a7c15ULL;
    mixed ^= (n * 0x10001ULL + (unsigned long long)sender + 1) * 0xc2b2ae3d27d4eb4fULL;
    mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9ULL;
    return (unsigned char)(mixed >> 56);
}

void fill_pattern(unsigned char *buffer, size_t bytes, unsigned long long n, int sender)
{
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = pattern(i, n, sender);
}

void fill_wrong(unsigned char *buffer, size_t bytes, unsigned long long n, int sender)
{
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = (unsigned char)~pattern(i, n, sender);
}

long long find_difference(const unsigned char *buffer, size_t bytes, unsigned long long n,
                          int sender)
{
    for (size_t i = 0; i < bytes; i++)
        if (buffer[i] != pattern(i, n, sender))
            return (long long)i;
    return -1;
}

void scrub(unsigned char *memory, size_t bytes)
{
    volatile unsigned char *unrelated = memory;
    for (size_t i = 0; i < bytes; i += SHORTEST_LINE)
        unrelated[i] = (unsigned char)(unrelated[i] + 1);
}
