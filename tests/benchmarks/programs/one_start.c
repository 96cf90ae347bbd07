/* Programs one after the other in ranks that start once: a checker takes MPI_Init for longer than
 * what these programs do. `one_start A ARGUMENT ... -- B ARGUMENT ...`, where each is built as a
 * library (-fPIC, -shared) and has what is static for itself. Ends with 0 where all of them do. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 100 };

static int level, begun, ended, status;
static volatile int is_within;
static jmp_buf after;

/* What a program calls in place of the MPI's, which has begun before and ends later. */
int MPI_Init(int *count, char ***words)
{
    (void)count, (void)words;
    begun++;
    return MPI_SUCCESS;
}

int MPI_Init_thread(int *count, char ***words, int required, int *provided)
{
    (void)required;
    *provided = level;
    return MPI_Init(count, words);
}

int MPI_Finalize(void)
{
    ended++;
    return MPI_SUCCESS;
}

void exit(int code)
{
    if (is_within) {
        status = code;
        longjmp(after, 1);
    }
    void (*real)(int) __attribute__((noreturn));
    *(void **)&real = dlsym(RTLD_NEXT, "exit");
    real(code);
}

/* Returns 0 where the program ended well, with MPI begun and ended once. */
static int run(int count, char **words)
{
    void *library = dlopen(words[0], RTLD_NOW | RTLD_LOCAL);
    int (*begin)(int, char **);
    *(void **)&begin = library ? dlsym(library, "main") : NULL;
    if (!begin) {
        fprintf(stderr, "one_start: %s\n", dlerror());
        return 1;
    }
    begun = ended = 0;
    is_within = 1;
    if (setjmp(after) == 0)
        status = begin(count, words);
    is_within = 0;
    fflush(stdout);
    if (status || begun != 1 || ended != 1)
        fprintf(stderr, "one_start: %s: code %d, MPI begun %d times and ended %d times\n",
                words[0], status, begun, ended);
    return status || begun != 1 || ended != 1;
}

int main(int argc, char **argv)
{
    int bad = argc < 2;
    PMPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    for (int i = 1; i < argc; i++) {
        char *words[MOST_WORDS + 1] = {NULL};
        int count = 0;
        while (i < argc && count < MOST_WORDS && strcmp(argv[i], "--") != 0)
            words[count++] = argv[i++];
        bad |= count == 0 || count == MOST_WORDS || run(count, words);
    }
    PMPI_Finalize();
    return bad;
}
