#!/usr/bin/env bash
# A worker in shell, over plain HTTP: it registers, asks for work, does it, and reports. Needs curl and jq.
#
#   INTERLOCK_SERVER=http://127.0.0.1:8420 examples/workers/shell.sh
#
# INTERLOCK_API_KEY_FILE names a file with the key of a worker; by default the one that `interlock up` leaves in its data
# folder. IDLE_POLLS_MAX ends the worker after so many polls without work; without it, it goes on until it is stopped.
set -euo pipefail

server=${INTERLOCK_SERVER:-http://127.0.0.1:8420}
umask 077
headers=$(mktemp)
echo 'content-type: application/json' >"$headers"
key_file=${INTERLOCK_API_KEY_FILE:-interlock-data/local.key}
if [[ -n ${INTERLOCK_API_KEY_FILE:-} || -r $key_file ]]; then
    # In a file, so that the key stands in no list of processes.
    printf 'authorization: Bearer %s\n' "$(<"$key_file")" >>"$headers"
fi

call() { # PATH BODY
    curl --silent --show-error --fail-with-body --max-time 90 --header "@$headers" --data "$2" "$server/api/v1/agent/$1"
}

# Each task takes its input as JSON on stdin and prints its output as JSON. Exit status 75 means: try again later.
task_greet() {
    local input name
    input=$(cat)
    name=$(jq -r .name <<<"$input")
    if [[ $(jq -r .fail_first <<<"$input") == true && $attempt == 1 ]]; then
        echo "the first attempt fails, as it was asked to" >&2
        return 75
    fi
    jq -n --arg text "Hello, $name" '{text: $text}'
}
task_shout() { jq '{text: (.text | ascii_upcase)}'; }

hello=$(jq -n --arg worker "shell:$$" '{worker: $worker, queues: ["default"], slots: 1}')
if ! registered=$(call register "$hello"); then
    echo "the server does not take this worker: ${registered:-no answer from $server}" >&2
    echo "INTERLOCK_API_KEY_FILE names the file with its key; \`interlock key create NAME --role worker\` makes one" >&2
    rm -f "$headers"
    exit 1
fi
session=$(jq -r .session <<<"$registered")

# One heartbeat renews the session, whatever it is doing. What it holds is listed, so that a lost claim is noticed.
held=$(mktemp)
echo '[]' >"$held"
heartbeats() {
    while sleep "$(jq -r '.renew_every_ms / 1000' <<<"$registered")"; do
        call heartbeat "$(jq -n --arg session "$session" --slurpfile held "$held" \
            '{session: $session, held: $held[0]}')" >/dev/null || true
    done
}
heartbeats &
beating=$!
finish() {
    kill "$beating" 2>/dev/null || true
    call unregister "$(jq -n --arg session "$session" '{session: $session}')" >/dev/null || true
    rm -f "$held" "$headers"
}
trap finish EXIT
trap 'exit 0' INT TERM

idle=0
while :; do
    polled=$(call poll "$(jq -n --arg session "$session" '{session: $session, max: 1, wait_ms: 1000}')")
    work=$(jq -c '.assignments[0] // empty' <<<"$polled")
    if [[ -z $work ]]; then
        idle=$((idle + 1))
        [[ -n ${IDLE_POLLS_MAX:-} && $idle -ge $IDLE_POLLS_MAX ]] && exit 0
        continue
    fi
    idle=0
    at=$(jq -c '{tenant, run, position, attempt, epoch}' <<<"$work")
    jq -c '[del(.epoch)]' <<<"$at" >"$held"
    attempt=$(jq -r .attempt <<<"$work")
    handler=$(jq -r .handler <<<"$work")
    errors=$(mktemp)
    status=0
    if declare -F "task_$handler" >/dev/null; then
        output=$(jq -c .input <<<"$work" | "task_$handler" 2>"$errors") || status=$?
        case $status in
            0) outcome=$(jq -n --argjson output "$output" '{status: "completed", output: $output}') ;;
            75) outcome=$(jq -n --rawfile message "$errors" \
                '{status: "retry", error: {class: "unavailable", code: "TRY_AGAIN", message: $message}}') ;;
            *) outcome=$(jq -n --rawfile message "$errors" \
                '{status: "dead", error: {class: "terminal", code: "TASK_FAILED", message: $message}}') ;;
        esac
    else
        # Somebody else may have this task.
        outcome='{"status": "unknown_task"}'
    fi
    rm -f "$errors"
    echo "$handler attempt $attempt: $(jq -r .status <<<"$outcome")"
    # A repeat of this call gets the first answer, so curl may simply try again.
    curl --silent --show-error --fail-with-body --retry 5 --retry-all-errors --header "@$headers" \
        --data "$(jq -n --argjson at "$at" --argjson outcome "$outcome" '$at + {outcome: $outcome}')" \
        "$server/api/v1/agent/$session/complete-step" >/dev/null
    echo '[]' >"$held"
done
