/* BT: the Navier-Stokes equations in steps of time, by tridiagonal systems of 5 x 5 blocks. */
#include "block_lines.h"
#include "implicit_steps.h"

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_bt",
    "nas_bt: BT of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "The number of ranks is a square, such that each block has two points in each direction.\n",
    "mpiexec -n 4 nas_bt --class A", options, sizeof options / sizeof options[0]};

int main(int argc, char **argv)
{
    const implicit_scheme scheme = {.program = &program,
                                    .benchmark = "BT",
                                    .references = bt_references,
                                    .tolerance = bt_tolerance,
                                    .solver = &block_lines,
                                    .of_points = 3478.8,
                                    .of_mean_square = -17655.7,
                                    .of_mean = 28023.7};
    solve_implicitly(&scheme, &argc, &argv);
}
