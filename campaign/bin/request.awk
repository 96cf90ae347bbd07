# Reads the Makefile; prints what is wrong with the words that make was given, as one sentence.
# In the environment: `goals` the targets, `given` the names of the variables. A target takes the
# variables in capitals in the brackets that end its line of `make help`; PYTHON every target takes.
/^[a-z][a-z-]*:($|[^=])/ {
    target = $0
    sub(/:.*/, "", target)
    if (!(target in targets)) all = all " " target
    targets[target]
    if (match($0, /## .*\([^()]*\)$/)) {
        listed = substr($0, RSTART)
        sub(/.*\(/, "", listed)
        gsub(/"[^"]*"|<[^>]*>/, "", listed)
        count = split(listed, words, /[^A-Za-z_]+/)
        for (i = 1; i <= count; i++)
            if (words[i] ~ /^[A-Z][A-Z_]+$/) {
                takes[target] = takes[target] " " words[i]
                if (!(words[i] in taker)) taker[words[i]] = target
            }
    }
}
function least(a, b) { return a < b ? a : b }
# How many letters have to be inserted, removed, changed or swapped with their neighbour to turn one
# word into another.
function distance(one, other,    i, j, cell) {
    for (j = 0; j <= length(other); j++) cell[0, j] = j
    for (i = 1; i <= length(one); i++) {
        cell[i, 0] = i
        for (j = 1; j <= length(other); j++) {
            cell[i, j] = least(cell[i - 1, j - 1] + (letter(one, i) != letter(other, j)),
                               least(cell[i - 1, j], cell[i, j - 1]) + 1)
            if (i > 1 && j > 1 && letter(one, i) == letter(other, j - 1) &&
                letter(one, i - 1) == letter(other, j))
                cell[i, j] = least(cell[i, j], cell[i - 2, j - 2] + 1)
        }
    }
    return cell[length(one), length(other)]
}
function letter(word, i) { return substr(word, i, 1) }
# The nearest of some words, as a question in brackets; nothing where none is near. Of two that are
# as near, the one that begins as the word does.
function meant(word, known,    count, words, i, far, best, first, is_first, nearest) {
    best = int(length(word) / 2) + 1
    count = split(known, words, " ")
    for (i = 1; i <= count; i++) {
        far = distance(toupper(word), toupper(words[i]))
        first = toupper(letter(word, 1)) == toupper(letter(words[i], 1))
        if (far < best || nearest != "" && far == best && first && !is_first) {
            best = far
            nearest = words[i]
            is_first = first
        }
    }
    return nearest == "" ? "" : " (did you mean " nearest "?)"
}
function add(word) { said = said (said == "" ? "" : ", ") word }
END {
    asked = ENVIRON["goals"] == "" ? "help" : ENVIRON["goals"]
    count = split(asked, goals, " ")
    for (i = 1; i <= count; i++)
        # Files that are made, and what shells request to complete a word, are not our targets.
        if (goals[i] !~ /[\/.]/ && !(goals[i] in targets))
            add(goals[i] (goals[i] in taker ? " (write " goals[i] "=<value>)" : meant(goals[i], all)))
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
    if (said != "" && ENVIRON["goals"] == "")
        for (i in given)
            if (given[i] in taker) {
                print "name a target before its variables, such as: make " taker[given[i]] " " given[i] "=<value>"
                exit
            }
    if (said != "") {
        gsub(/ /, ", ", own)
        print "make " asked " does not take " said "; it takes " (own == "" ? "no variable" : substr(own, 3))
    }
}
