#!/bin/bash
trap 'echo $? >launch_exit_code' EXIT
trap 'exit 143' TERM
uname -n >launch_host
/checkout/.wyeast/venv/bin/python /checkout/reframe_checks/mixins/page_cache.py warm /checkout/.wyeast/images/mpich-5.0.2.sif || exit $?
date +%s.%N >container_started
apptainer exec -B"/checkout/.wyeast/reframe/local/stage/local/default/container/StartUp_12203557:/rfm_workdir" --pwd /rfm_workdir --userns --cleanenv --no-home --env=LAM_RANKS_BOOTED=lam_booted /checkout/.wyeast/images/mpich-5.0.2.sif /bin/true || exit $?
date +%s.%N >container_ended
/checkout/.wyeast/venv/bin/python /checkout/reframe_checks/mixins/page_cache.py warm /checkout/.wyeast/images/mpich-5.0.2.sif || exit $?
head -v -n 80 /proc/sys/kernel/hostname /proc/sys/kernel/osrelease /proc/loadavg /proc/cmdline /proc/cpuinfo /proc/meminfo /proc/self/status /sys/devices/system/node/has_cpu /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq /sys/kernel/mm/transparent_hugepage/enabled /sys/class/net/*/operstate /sys/class/net/*/speed 2>/dev/null >launch_node
{ date +%s.%N; head -n 1 /proc/stat; } >launch_started
apptainer exec -B"/checkout/.wyeast/reframe/local/stage/local/default/container/StartUp_12203557:/rfm_workdir" --pwd /rfm_workdir --userns --cleanenv --no-home --env=LAM_RANKS_BOOTED=lam_booted /checkout/.wyeast/images/mpich-5.0.2.sif mpiexec -bind-to none -n 4 startup
launch_exit_code=$?
{ date +%s.%N; head -n 1 /proc/stat; } >launch_ended
exit $launch_exit_code
