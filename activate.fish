# Source this file in fish: source activate.fish; it sets what `activate` sets in other shells.
set -l found (sh (status dirname)/campaign/bin/activated)
or return 1
# Of a checkout that was activated before.
set -e WYEAST_HOME WYEAST_ACTIVATED
set -e PYTHONHOME PYTHONPLATLIBDIR PYTHONOPTIMIZE PYTHONWARNINGS PYTHONINSPECT PYTHONIOENCODING \
    PYTHONDEVMODE PYTHONTRACEMALLOC PYTHONMALLOC PYTHONHASHSEED PYTHONVERBOSE PYTHONDEBUG \
    PYTHONPROFILEIMPORTTIME PYTHONWARNDEFAULTENCODING
for place in (seq 1 2 (count $found))
    set -gx $found[$place] $found[(math $place + 1)]
end
