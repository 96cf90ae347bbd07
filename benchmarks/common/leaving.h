/* Leaving a program on all ranks together, with one sentence from one rank. */
#ifndef WYEAST_LEAVING_H
#define WYEAST_LEAVING_H

enum { EXIT_SOUND = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Print "program: sentence" on rank 0, finalize MPI and exit. Every rank must call it. */
void leave_together(const char *program, const char *sentence, int code)
    __attribute__((noreturn));

/* Print "program: sentence" from this rank and end all ranks. */
void leave_at_once(const char *program, const char *sentence) __attribute__((noreturn));

/* Finalize MPI and exit with the code that rank 0 has. Every rank must call it. */
void leave_with_code_of_rank_0(int code) __attribute__((noreturn));

#endif
