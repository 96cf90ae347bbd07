# Reads the Makefile; prints what is wrong with the words that make was given, as one sentence.
# In the environment: `goals` the targets, `given` the names of the variables. A target takes the
# variables in capitals in the brackets that end its line of `make help`; PYTHON every target takes.
/^[a-z][a-z-]*:($|[^=])/ {
    target = $0
    sub(/:.*/, "", target)
    targets[target]
    if (match($0, /## .*\([^()]*\)$/)) {
        listed = substr($0, RSTART)
        sub(/.*\(/, "", listed)
        gsub(/"[^"]*"|<[^>]*>/, "", listed)
        count = split(listed, words, /[^A-Za-z_]+/)
        for (i = 1; i <= count; i++)
            if (words[i] ~ /^[A-Z][A-Z_]+$/) takes[target] = takes[target] " " words[i]
    }
}
function least(a, b) { return a < b ? a : b }
# How many letters have to be inserted, removed or changed to turn one word into another.
function distance(one, other,    i, j, row, left, above) {
    for (j = 0; j <= length(other); j++) row[j] = j
    for (i = 1; i <= length(one); i++) {
        left = row[0]
        row[0] = i
        for (j = 1; j <= length(other); j++) {
            above = row[j]
            row[j] = least(left + (substr(one, i, 1) != substr(other, j, 1)),
                           least(above, row[j - 1]) + 1)
            left = above
        }
    }
    return row[length(other)]
}
# The nearest of some words, as a question in brackets; nothing where none is near.
function meant(word, known,    count, words, i, far, best, nearest) {
    best = int(length(word) / 2) + 1
    count = split(known, words, " ")
    for (i = 1; i <= count; i++) {
        far = distance(toupper(word), toupper(words[i]))
        if (far < best) { best = far; nearest = words[i] }
    }
    return nearest == "" ? "" : " (did you mean " nearest "?)"
}
function add(word) { said = said (said == "" ? "" : ", ") word }
END {
    for (target in targets) all = all " " target
    asked = ENVIRON["goals"] == "" ? "help" : ENVIRON["goals"]
    count = split(asked, goals, " ")
    for (i = 1; i <= count; i++)
        # Files that are made, and what shells request to complete a word, are not our targets.
        if (goals[i] !~ /[\/.]/ && !(goals[i] in targets)) add(goals[i] meant(goals[i], all))
    if (said != "") {
        print "there is no target " said "; see: make help"
        exit
    }
    count = split(asked, goals, " ")
    for (i = 1; i <= count; i++) {
        known = split(takes[goals[i]], words, " ")
        for (j = 1; j <= known; j++)
            if (index(own " ", " " words[j] " ") == 0) own = own " " words[j]
    }
    count = split(ENVIRON["given"], given, " ")
    for (i = 1; i <= count; i++)
        if (given[i] != "PYTHON" && given[i] !~ /^__/ && index(own " ", " " given[i] " ") == 0)
            add(given[i] meant(given[i], own))
    if (said != "") {
        gsub(/ /, ", ", own)
        print "make " asked " does not take " said "; it takes " (own == "" ? "no variable" : substr(own, 3))
    }
}
