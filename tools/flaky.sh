# Sourced by tools/test: runs each failed test once more, alone, and tells a flaky test from one that fails.
# shellcheck shell=bash disable=SC2034

# The most flaky tests that leave a run green. None is the aim: each one is the next thing to mend.
MOST_FLAKY=2

# failed_tests OUTPUT: a line for each failed test in the output of `cargo test --no-fail-fast`, with tabs between the package, the
# executable (`doc` for documentation) and the name. Of an executable that crashed the name is `?`.
failed_tests() {
    awk -v OFS='\t' '
        /^     Running .* \(.*\)$/ { executable = $0; sub(/^.* \(/, "", executable); sub(/\)$/, "", executable); count = 0 }
        /^   Doc-tests / { executable = "doc"; count = 0 }
        $0 == "failures:" { listed = 1; count = 0; next }
        /^test result: / { listed = 0 }
        listed && /^    [^ ]/ { names[count++] = substr($0, 5) }
        /^error: (doctest|test) failed, to rerun pass `/ {
            package = $0
            sub(/^[^`]*`-p /, "", package)
            sub(/[ `].*$/, "", package)
            if (count == 0) names[count++] = "?"
            for (i = 0; i < count; i++) print package, executable, names[i]
            count = 0
        }
    ' "$1"
}

# first_output OUTPUT NAME: what the test printed when it failed in the whole run.
first_output() {
    awk -v head="---- $2 stdout ----" '
        $0 == head { inside = 1 }
        inside && $0 != head && (/^---- .* stdout ----$/ || $0 == "failures:") { exit }
        inside
    ' "$1"
}

# run_alone PACKAGE EXECUTABLE NAME: runs one test as cargo does, in the folder of its package. The executable is the one that failed, and
# the examples of documentation are those of the whole workspace: a narrower choice of packages would have cargo build again with other
# features.
run_alone() {
    local executable folder
    if [[ $2 == doc ]]; then
        cargo test --locked --workspace --doc -- --exact "$3"
    else
        executable=$(realpath "$2") && folder=$(cargo pkgid -p "$1") || return
        folder=${folder#*file://}
        (cd "${folder%%#*}" && "$executable" --exact "$3")
    fi 2>&1 | tee "$alone"
    # A name that no test has would pass with no test run.
    grep -q '^test result: ok. 1 passed' "$alone"
}

# rerun_failed OUTPUT: runs each failed test of OUTPUT alone. Prints `FLAKY: name` and the first output of those that pass now.
# Sets `flaky` and `failing` to how many passed and how many failed again.
rerun_failed() {
    local package executable name alone
    alone=$(mktemp)
    flaky=0 failing=0
    while IFS=$'\t' read -r -u 3 package executable name; do
        printf '\n== once more, alone: %s %s\n' "$package" "$name"
        if [[ $name == '?' ]]; then
            printf '%s ended before it named a test that failed\n' "$executable"
            failing=$((failing + 1))
        elif run_alone "$package" "$executable" "$name"; then
            flaky=$((flaky + 1))
            printf '\nFLAKY: %s\n' "$name"
            first_output "$1" "$name"
        else
            failing=$((failing + 1))
        fi
    done 3< <(failed_tests "$1")
    rm -f "$alone"
}
