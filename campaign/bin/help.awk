# Reads the Makefile; prints its targets in groups, the usual ones first, each with what follows its
# two number signs.
BEGIN {
    add("The usual ones", "run report history nightly study help")
    add("Set up a site", "setup new-site check-site doctor calibrate accept-references")
    add("Images", "images image admit sign verify new-key push pull bill reproducibility spack " \
        "spack-lock spack-sources spack-mirror spack-externals spack-environment spack-release")
    add("Campaigns of others, and for others", "audit bundle rerun appendix sample")
    add("A cluster in a box", "cluster-up cluster-status cluster-shell cluster-down " \
        "cluster-performance")
    add("What the platform costs, and how its methods do", "performance analysis-performance " \
        "simulated-designs simulated-coverage")
    add("Work on it", "test test-long unit lint docs lock clean")
}
function add(title, names) { titles[++groups] = title; of[groups] = names }
function show(target) {
    printf "  make %-20s %s\n", target, said[target]
    delete said[target]
}
/^[a-z][a-z-]*:.*##/ {
    target = said_of = $0
    sub(/:.*/, "", target)
    sub(/^[^#]*## /, "", said_of)
    said[target] = said_of
    order[++count] = target
}
END {
    for (group = 1; group <= groups; group++) {
        print (group == 1 ? "" : "\n") titles[group] ":"
        number = split(of[group], names, " ")
        for (i = 1; i <= number; i++) if (names[i] in said) show(names[i])
    }
    for (i = 1; i <= count; i++)
        if (order[i] in said) {
            if (!others++) print "\nOthers:"
            show(order[i])
        }
}
