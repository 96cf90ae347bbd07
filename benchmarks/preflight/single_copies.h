/* What this process copies from or into another one's memory by one call of the kernel: Linux's cross
 * memory attach (CMA), and whether it has XPMEM open, whose copies are ordinary reads. */
#ifndef WYEAST_SINGLE_COPIES_H
#define WYEAST_SINGLE_COPIES_H

/* Bytes by process_vm_readv and process_vm_writev so far. The program has these two functions itself,
 * which libraries then find before the C library's; a library that makes the system call by its number
 * is not seen. */
unsigned long long bytes_by_cma(void);

int has_xpmem_open(void);

#endif
