/* Message buffers, what stands in them, and how they are kept out of the cache. */
#ifndef WYEAST_BUFFERS_H
#define WYEAST_BUFFERS_H

#include <stddef.h>

/* Memory that begins with a page and was touched, so that no page fault is timed; NULL where there
 * is none. Free it with free(). */
unsigned char *page_aligned(size_t bytes);

/* The same for what is computed with, not sent: on huge pages, where the kernel has them for programs that
 * ask (transparent_hugepage: madvise or always) and there is so much of it that they pay. */
unsigned char *on_huge_pages(size_t bytes);

/* The byte that message number n of a sender has at an offset. It has no period, so that a piece in
 * the wrong place is found whatever the size of the library's pieces, and differs for every number
 * and sender, so that data of an earlier message is found. */
unsigned char pattern(size_t offset, unsigned long long n, int sender);

void fill_pattern(unsigned char *buffer, size_t bytes, unsigned long long n, int sender);

/* Fill a receive buffer so that no byte is right before it arrives. */
void fill_wrong(unsigned char *buffer, size_t bytes, unsigned long long n, int sender);

/* The first offset at which a buffer does not have the pattern, or -1. */
long long find_difference(const unsigned char *buffer, size_t bytes, unsigned long long n,
                          int sender);

/* Read and write all of some memory that has nothing to do with the messages, so that these are no
 * longer in the cache: the "scrolling through unrelated data" of NTNU 2008, section 3.1.4. */
void scrub(unsigned char *memory, size_t bytes);

#endif
