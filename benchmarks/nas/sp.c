/* SP: the Navier-Stokes equations in steps of time, by pentadiagonal systems of single numbers. */
#include "implicit_steps.h"
#include "scalar_lines.h"

static const option options[] = {CLASS_OPTION, REPETITION_OPTION};
static const program_description program = {
    "nas_sp",
    "nas_sp: SP of the NAS Parallel Benchmarks, with NPB's summary lines.\n"
    "The number of ranks is a square, such that each block has two points in each direction.\n",
    "mpiexec -n 4 nas_sp --class A", options, sizeof options / sizeof options[0]};

int main(int argc, char **argv)
{
    const implicit_scheme scheme = {.program = &program,
                                    .benchmark = "SP",
                                    .references = sp_references,
                                    .tolerance = sp_tolerance,
                                    .solver = &scalar_lines,
                                    .between = change_waves,
                                    .of_points = 881.174,
                                    .of_mean_square = -4683.91,
                                    .of_mean = 11484.5,
                                    .of_step = -19272.4};
    solve_implicitly(&scheme, &argc, &argv);
}
