#!/bin/sh
# Debian's MPIs share /usr. This gives each that is installed a prefix of symbolic links of its own,
# so that whoever is told one prefix cannot find the other MPI there: mpi_prefixes.sh FOLDER
set -eu
[ $# = 1 ] || { echo "usage: mpi_prefixes.sh FOLDER" >&2; exit 2; }
machine=$(gcc -dumpmachine)
libraries=/usr/lib/$machine

# prefix NAME-VERSION FAMILY HEADERS LIBRARY …: FAMILY is the ending of Debian's names of programs.
prefix() {
    folder=$1 family=$2 headers=$3
    shift 3
    mkdir -p "$folder/bin" "$folder/lib"
    ln -sfn "$headers" "$folder/include"
    for program in mpicc mpicxx mpic++ mpif77 mpif90 mpifort mpiexec mpirun; do
        [ ! -e "/usr/bin/$program.$family" ] || ln -sf "/usr/bin/$program.$family" "$folder/bin/$program"
    done
    ln -sf "$@" "$folder/lib/"
}

if [ -e /usr/bin/mpicc.openmpi ]; then
    prefix "$1/openmpi-4.1.4" openmpi "$libraries/openmpi/include" "$libraries"/openmpi/lib/lib*.so*
    ln -sf /usr/bin/ompi_info /usr/bin/orted "$1/openmpi-4.1.4/bin/"
fi
if [ -e /usr/bin/mpicc.mpich ]; then
    prefix "$1/mpich-4.0.2" mpich "/usr/include/$machine/mpich" "$libraries"/libmpich*.so*
    ln -sf /usr/bin/mpichversion /usr/bin/hydra_pmi_proxy "$1/mpich-4.0.2/bin/"
    # As MPICH calls it where Debian does not rename it.
    ln -sf "$libraries/libmpich.so" "$1/mpich-4.0.2/lib/libmpi.so"
fi
