#!/bin/bash
trap 'echo $? >launch_exit_code' EXIT
trap 'exit 143' TERM
apptainer exec -B"/checkout/.wyeast/reframe/local/stage/local/default/container/Linpack_9ffd2f54:/rfm_workdir" --userns --cleanenv --no-home --pwd /rfm_workdir /checkout/.wyeast/images/openmpi-5.0.11.sif hpl_dat --p 1 --q 1 --n 4000 --nb 192 --nodes 1 --memory-bytes-per-node 25276514304 --output HPL.dat || exit $?
head -v -n 80 /proc/sys/kernel/hostname /proc/sys/kernel/osrelease /proc/loadavg /proc/cmdline /proc/cpuinfo /proc/meminfo /proc/self/status /sys/devices/system/node/has_cpu /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq /sys/kernel/mm/transparent_hugepage/enabled /sys/class/net/*/operstate /sys/class/net/*/speed 2>/dev/null >launch_node
{ date +%s.%N; head -n 1 /proc/stat; } >launch_started
apptainer exec -B"/checkout/.wyeast/reframe/local/stage/local/default/container/Linpack_9ffd2f54:/rfm_workdir" --pwd /rfm_workdir --userns --cleanenv --no-home /checkout/.wyeast/images/openmpi-5.0.11.sif mpiexec --map-by core --bind-to core -n 1 xhpl
launch_exit_code=$?
{ date +%s.%N; head -n 1 /proc/stat; } >launch_ended
exit $launch_exit_code
