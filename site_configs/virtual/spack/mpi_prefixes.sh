#!/bin/sh
# Debian's MPIs share /usr. This gives each that is installed a prefix of symbolic links of its own,
# so that whoever is told one prefix cannot find the other MPI there: mpi_prefixes.sh FOLDER
set -eu
[ $# = 1 ] || { echo "usage: mpi_prefixes.sh FOLDER" >&2; exit 2; }
libraries=/usr/lib/$(gcc -dumpmachine)

link() { # NAME: the one in /etc/alternatives' words; the rest: PROGRAM=FILE …
    prefix=$1 headers=$2; shift 2
    mkdir -p "$prefix/bin" "$prefix/lib"
    ln -sfn "$headers" "$prefix/include"
    for pair; do
        [ ! -e "${pair#*=}" ] || ln -sf "${pair#*=}" "$prefix/${pair%%=*}"
    done
}

if [ -e /usr/bin/mpicc.openmpi ]; then
    link "$1/openmpi-4.1.4" "$libraries/openmpi/include" \
        bin/mpicc=/usr/bin/mpicc.openmpi bin/mpicxx=/usr/bin/mpicxx.openmpi \
        bin/mpic++=/usr/bin/mpic++.openmpi bin/mpif77=/usr/bin/mpif77.openmpi \
        bin/mpif90=/usr/bin/mpif90.openmpi bin/mpifort=/usr/bin/mpifort.openmpi \
        bin/mpiexec=/usr/bin/mpiexec.openmpi bin/mpirun=/usr/bin/mpirun.openmpi \
        bin/ompi_info=/usr/bin/ompi_info bin/orted=/usr/bin/orted
    for file in "$libraries"/openmpi/lib/lib*.so*; do
        ln -sf "$file" "$1/openmpi-4.1.4/lib/"
    done
fi
if [ -e /usr/bin/mpicc.mpich ]; then
    link "$1/mpich-4.0.2" "/usr/include/$(gcc -dumpmachine)/mpich" \
        bin/mpicc=/usr/bin/mpicc.mpich bin/mpicxx=/usr/bin/mpicxx.mpich \
        bin/mpic++=/usr/bin/mpic++.mpich bin/mpif77=/usr/bin/mpif77.mpich \
        bin/mpif90=/usr/bin/mpif90.mpich bin/mpifort=/usr/bin/mpifort.mpich \
        bin/mpiexec=/usr/bin/mpiexec.mpich bin/mpirun=/usr/bin/mpirun.mpich \
        bin/mpichversion=/usr/bin/mpichversion bin/hydra_pmi_proxy=/usr/bin/hydra_pmi_proxy \
        lib/libmpi.so="$libraries/libmpich.so"
    for file in "$libraries"/libmpich*.so*; do
        ln -sf "$file" "$1/mpich-4.0.2/lib/"
    done
fi
