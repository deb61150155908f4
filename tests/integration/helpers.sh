# What the scripts beside this one share: they source it, count with it, and end with $failed.
failed=0 passed=0
# say STATUS WORDS: 0 passes; else the words are told.
say() {
    if [ "$1" = 0 ]; then passed=$((passed + 1)); else echo "FAILED: $2"; failed=$((failed + 1)); fi
}
# check WORDS COMMAND...: the same of a command.
check() {
    local words=$1
    shift
    "$@"
    say $? "$words"
}
# expect CODE TEXT ARGUMENTS...: the command ends with CODE, and TEXT stands in what it prints, which is $out.
expect() {
    local code=$1 text=$2 status
    shift 2
    out=$("$twagent" "$@" 2>&1 </dev/null)
    status=$?
    if [ $status -ne "$code" ] || [[ "$out" != *"$text"* ]]; then
        printf 'twagent %s: exit %d (expected %d), printed:\n%s\nexpected in it: %s\n' "$*" $status "$code" "${out:0:2000}" "$text"
        failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
}
# also TEXT...: so does each TEXT; no second command is run for it.
also() {
    local text
    for text; do
        [[ "$out" == *"$text"* ]]
        say $? "expected $text in: ${out:0:2000}"
    done
}
# measured_once: a machine's ceilings, which take a second of every core, are those of all tests of this build.
measured_once() {
    local ceilings=${twagent%/*}/tests/ceilings
    mkdir -p "$ceilings" "$XDG_CACHE_HOME/twagent" && ln -s "$ceilings" "$XDG_CACHE_HOME/twagent/ceilings"
}
