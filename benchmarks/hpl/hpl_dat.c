/* hpl_dat: write HPL's input for given grids and sizes, and refuse what does not fit in memory.
 * Every parameter that is not an option is that of Kearns 2003, Appendix A. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/arguments.h"
#include "../common/written.h"
#include "node_memory.h"

#define PROGRAM "hpl_dat"
#define VERSION_TEXT "1.0.0"
#define LARGEST_N 10000000LL
#define MOST_VALUES 20 /* HPL's own limit of values for one parameter. */

static const char help[] =
    "hpl_dat: write an input file for HPL\n"
    "\n"
    "usage: hpl_dat --p P --q Q --n N[,N...] --nb NB[,NB...] [options]\n"
    "\n"
    "  --p P, --q Q                the process grid\n"
    "  --n N[,N...]                problem sizes (order of the matrix)\n"
    "  --nb NB[,NB...]             block sizes\n"
    "  --nodes K                   nodes that share the matrix (default 1)\n"
    "  --memory-bytes-per-node B   memory of a node (default: this one's); never more than this\n"
    "                              process' control group allows\n"
    "  --memory-fraction F         share of it that the matrix may take (default 0.8)\n"
    "  --output FILE               where to write (default: stdout)\n"
    "  --version, --help\n"
    "\n"
    "The matrix takes 8 N^2 bytes; an N that does not fit is refused. All other parameters are\n"
    "those of Kearns 2003, Appendix A, except that output goes to stdout, and that HPL 2 also\n"
    "asks for a process mapping: row-major, its default.\n"
    "\n"
    "example: hpl_dat --p 1 --q 2 --n 2000,4000 --nb 192 --output HPL.dat\n";

typedef struct {
    long long values[MOST_VALUES];
    size_t count;
} number_list;

typedef struct {
    long long p, q, nodes, memory;
    number_list n, nb;
    double fraction;
    const char *output;
    int help, version;
} options;

static int parse_list(const char *option, const char *text, long long most, number_list *list,
                      complaint *about)
{
    char *copy = strdup(text);
    if (!copy)
        return complain(about, "%s: no memory", option);
    int status = 0;
    list->count = 0;
    for (char *rest = copy, *part; !status && (part = strsep(&rest, ","));) {
        if (list->count == MOST_VALUES)
            status = complain(about, "%s: HPL takes at most %d values", option, MOST_VALUES);
        else
            status = parse_number(option, part, 1, most, &list->values[list->count++], about);
    }
    free(copy);
    return status;
}

static int parse(int argc, char **argv, options *chosen, complaint *about)
{
    enum { P = 256, Q, N, NB, NODES, MEMORY, FRACTION, OUTPUT, HELP, VERSION };
    static const struct option known[] = {
        {"p", required_argument, NULL, P},
        {"q", required_argument, NULL, Q},
        {"n", required_argument, NULL, N},
        {"nb", required_argument, NULL, NB},
        {"nodes", required_argument, NULL, NODES},
        {"memory-bytes-per-node", required_argument, NULL, MEMORY},
        {"memory-fraction", required_argument, NULL, FRACTION},
        {"output", required_argument, NULL, OUTPUT},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    *chosen = (options){.nodes = 1, .fraction = 0.8};
    opterr = 0;
    for (int option, at = 1; (option = getopt_long(argc, argv, "+", known, NULL)) != -1;
         at = optind) {
        int status = 0;
        switch (option) {
        case P:
            status = parse_number("--p", optarg, 1, INT_MAX, &chosen->p, about);
            break;
        case Q:
            status = parse_number("--q", optarg, 1, INT_MAX, &chosen->q, about);
            break;
        case N:
            status = parse_list("--n", optarg, LARGEST_N, &chosen->n, about);
            break;
        case NB:
            status = parse_list("--nb", optarg, LARGEST_N, &chosen->nb, about);
            break;
        case NODES:
            status = parse_number("--nodes", optarg, 1, INT_MAX, &chosen->nodes, about);
            break;
        case MEMORY:
            status = parse_number("--memory-bytes-per-node", optarg, 1, LLONG_MAX,
                                  &chosen->memory, about);
            break;
        case FRACTION:
            status = parse_fraction("--memory-fraction", optarg, 0.0, 1.0, &chosen->fraction,
                                    about);
            break;
        case OUTPUT:
            chosen->output = optarg;
            break;
        case HELP:
            chosen->help = 1;
            break;
        case VERSION:
            chosen->version = 1;
            break;
        default:
            status = complain(about, "%.80s: unknown option or missing value; see hpl_dat --help",
                              argv[at]);
        }
        if (status)
            return -1;
    }
    if (optind < argc)
        return complain(about, "%.80s: unexpected argument; see hpl_dat --help", argv[optind]);
    if (!chosen->help && !chosen->version &&
        (!chosen->p || !chosen->q || !chosen->n.count || !chosen->nb.count))
        return complain(about, "--p, --q, --n and --nb are needed; see hpl_dat --help");
    if (chosen->p && chosen->q && chosen->p > INT_MAX / chosen->q)
        return complain(about, "--p %lld --q %lld: a grid of more ranks than MPI can count",
                        chosen->p, chosen->q);
    return 0;
}

static int demand_memory(const options *chosen, complaint *about)
{
    /* The nodes may be others than this one, but what starts the run here is in the job's group. */
    double node = chosen->memory ? (double)chosen->memory : memory_of_node();
    double allowed = memory_of_control_group();
    int narrower = allowed < node;
    if (narrower)
        node = allowed;
    double available = node * (double)chosen->nodes * chosen->fraction;
    for (size_t i = 0; i < chosen->n.count; i++) {
        double n = (double)chosen->n.values[i], needed = 8.0 * n * n;
        if (needed > available)
            return complain(about,
                            "N=%lld needs %.2f GB for the matrix, and %.0f%% of the memory of "
                            "%lld node(s)%s is %.2f GB: take a smaller N or more nodes",
                            chosen->n.values[i], needed / 1e9, 100 * chosen->fraction,
                            chosen->nodes, narrower ? ", as the control group limits it," : "",
                            available / 1e9);
    }
    return 0;
}

static void print_values(FILE *out, const number_list *list, const char *label)
{
    for (size_t i = 0; i < list->count; i++)
        fprintf(out, "%lld ", list->values[i]);
    fprintf(out, " %s\n", label);
}

static void print_input(FILE *out, const options *chosen)
{
    fputs("HPLinpack benchmark input file\n"
          "Innovative Computing Laboratory, University of Tennessee\n"
          "HPL.out      output file name (if any)\n"
          "6            device out (6=stdout,7=stderr,file)\n",
          out);
    fprintf(out, "%zu            # of problems sizes (N)\n", chosen->n.count);
    print_values(out, &chosen->n, "Ns");
    fprintf(out, "%zu            # of NBs\n", chosen->nb.count);
    print_values(out, &chosen->nb, "NBs");
    fprintf(out,
            "0            PMAP process mapping (0=Row-,1=Column-major)\n"
            "1            # of process grids (P x Q)\n"
            "%lld            Ps\n"
            "%lld            Qs\n",
            chosen->p, chosen->q);
    fputs("16.0         threshold\n"
          "1            # of panel fact\n"
          "2            PFACTs (0=left, 1=Crout, 2=Right)\n"
          "1            # of recursive stopping criterium\n"
          "4            NBMINs (>= 1)\n"
          "1            # of panels in recursion\n"
          "2            NDIVs\n"
          "1            # of recursive panel fact.\n"
          "2            RFACTs (0=left, 1=Crout, 2=Right)\n"
          "1            # of broadcast\n"
          "1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)\n"
          "1            # of lookahead depth\n"
          "1            DEPTHs (>=0)\n"
          "2            SWAP (0=bin-exch,1=long,2=mix)\n"
          "80           swapping threshold\n"
          "0            L1 in (0=transposed,1=no-transposed) form\n"
          "0            U  in (0=transposed,1=no-transposed) form\n"
          "1            Equilibration (0=no,1=yes)\n"
          "8            memory alignment in double (> 0)\n",
          out);
}

int main(int argc, char **argv)
{
    options chosen;
    complaint about;
    if (parse(argc, argv, &chosen, &about)) {
        fprintf(stderr, PROGRAM ": %s\n", about.text);
        return 2;
    }
    if (chosen.help || chosen.version) {
        fputs(chosen.help ? help : PROGRAM " " VERSION_TEXT "\n", stdout);
        return see_output_written(PROGRAM) ? 1 : 0;
    }
    if (demand_memory(&chosen, &about)) {
        fprintf(stderr, PROGRAM ": %s\n", about.text);
        return 1;
    }
    FILE *out = chosen.output ? fopen(chosen.output, "w") : stdout;
    if (!out) {
        fprintf(stderr, PROGRAM ": %s cannot be written: %s\n", chosen.output, strerror(errno));
        return 1;
    }
    print_input(out, &chosen);
    const char *lost = why_unwritten(out);
    if (chosen.output && fclose(out) != 0 && !lost)
        lost = strerror(errno);
    if (lost)
        fprintf(stderr, PROGRAM ": %s could not be written: %s\n",
                chosen.output ? chosen.output : "standard output", lost);
    return lost ? 1 : 0;
}
