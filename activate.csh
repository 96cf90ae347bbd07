# Source this file in tcsh, from the project's folder: source activate.csh; it sets what `activate`
# sets in other shells.
set wyeast = ( "`sh campaign/bin/activated`" )
# Of a checkout that was activated before.
if ( $#wyeast > 1 ) unsetenv WYEAST_HOME
if ( $#wyeast > 1 ) unsetenv WYEAST_ACTIVATED
while ( $#wyeast > 1 )
    setenv $wyeast[1] "$wyeast[2]"
    shift wyeast
    shift wyeast
end
unset wyeast
foreach name ( PYTHONHOME PYTHONPLATLIBDIR PYTHONOPTIMIZE PYTHONWARNINGS PYTHONINSPECT PYTHONIOENCODING \
    PYTHONDEVMODE PYTHONTRACEMALLOC PYTHONMALLOC PYTHONHASHSEED PYTHONVERBOSE PYTHONDEBUG \
    PYTHONPROFILEIMPORTTIME PYTHONWARNDEFAULTENCODING )
    unsetenv $name
end
unset name
rehash
