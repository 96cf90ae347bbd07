# Read by the launchers that boot daemons of their own, in the containers of a job's nodes:
#
#     . "${0%/*}/on_nodes.sh"
#
# One container is started on each node, in a folder that the nodes share. What a remote shell would
# be asked for is a request in that folder, which the launcher on the other node answers. So no node
# needs a remote shell, no container needs Slurm, and all processes are children of the job's.

# The cores that this process may run on, one a line.
allowed_cores() {
    taskset -cp $$ | sed 's/.*: //' | tr , '\n' | while IFS=- read -r first last; do
        seq "$first" "${last:-$first}"
    done
}

# Become an ordinary user, for daemons that refuse to run as root. Root of a container is often an
# ordinary user outside; here it becomes one inside, too: outside it is who it was, so it may do
# what it could.
become_ordinary() {
    if [ "$(id -u)" = 0 ]; then
        exec unshare --user --map-user=1000 --map-group=1000 "$@"
    fi
}

# Read the options into `ranks` and `pinned`, and leave their number in `options`.
read_options() {
    ranks='' pinned='' options=0
    while [ $# -gt 0 ]; do
        case $1 in
            --pinned) pinned=yes used=1 ;;
            -n) [ $# -gt 1 ] || usage; ranks=$2 used=2 ;;
            -*) usage ;;
            *) break ;;
        esac
        shift "$used"
        options=$((options + used))
    done
    case $ranks in '' | 0 | *[!0-9]*) usage ;; esac
    [ $# -gt 0 ] || usage
}

# Set `nodes`, `node`, `job`, and `shared`, the folder of requests, which is there if it is needed.
# The first argument is the launcher's name, which distinguishes its files.
find_nodes() {
    nodes=${SLURM_NNODES:-1} node=${SLURM_NODEID:-0}
    job=${SLURM_JOB_ID:-$$}.${SLURM_STEP_ID:-0}
    shared=$PWD/$1.$job
    if [ "$nodes" != 1 ]; then mkdir -p "$shared" || exit 1; fi
}

# Make `session`, the folder of this node's daemons, which goes when the launcher ends.
make_session() {
    session=${TMPDIR:-/tmp}/$1.$job
    mkdir "$session" || exit 1
    trap 'rm -rf "$session"' EXIT
    # A daemon without room for what it notes would die without a word, and others wait for it.
    if ! head -c 65536 /dev/zero >"$session/room" 2>/dev/null; then
        echo "$1: $(hostname): no space left in ${session%/*}, where $2 keeps its session" >&2
        exit 1
    fi
    rm "$session/room"
}

# Leave a text in a file of the shared folder, whole or not at all.
leave() {
    printf '%s\n' "$2" >"$1.new" && mv "$1.new" "$1"
}

# Wait for a file of the shared folder.
await() {
    until [ -e "$1" ]; do sleep 0.02; done
}

# What a remote shell would do: have a command run on another node. The arguments are the shared
# folder, the node's name, and the command.
run_on_node() {
    request=$1/$2.$$
    shift 2
    leave "$request.command" "$*"
    await "$request.status"
    cat "$request.output"
    exit "$(cat "$request.status")"
}

# On every node but the first: run the commands that are asked for, until the end.
serve() {
    leave "$shared/host.$node" "$(hostname)"
    while [ -d "$shared" ]; do
        for command in "$shared/$(hostname)".*.command; do
            request=${command%.command}
            [ -e "$command" ] && [ ! -e "$request.status" ] || continue
            sh -c "$(cat "$command")" </dev/null >"$request.output" 2>&1
            leave "$request.status" $?
        done
        sleep 0.02
    done
}

# The nodes' names, in Slurm's order, one a line.
names_of_nodes() {
    leave "$shared/host.0" "$(hostname)"
    for number in $(seq 0 $((nodes - 1))); do
        await "$shared/host.$number"
        cat "$shared/host.$number"
    done
}
