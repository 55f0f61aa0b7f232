#!/usr/bin/env bash
# The smallest worker, for a task whose repeat does no harm. Needs curl and jq. shell.sh beside it is the complete one.
#   INTERLOCK_SERVER=http://127.0.0.1:8420 INTERLOCK_API_KEY_FILE=interlock-data/local.key examples/workers/smallest.sh
server=${INTERLOCK_SERVER:-http://127.0.0.1:8420} key=${INTERLOCK_API_KEY_FILE:-interlock-data/local.key}

hello() { jq '{text: "Hello, \(.name)"}'; } # the task: input on stdin, output on stdout, both JSON

# call PATH BODY: prints the answer. Without one it calls again, after growing pauses: every call is safe to repeat.
call() {
    local answer status pause=1
    while :; do
        answer=$(curl --silent --max-time 90 --write-out '\n%{http_code}' --header 'content-type: application/json' \
            --header @<(printf 'authorization: Bearer %s' "$(<"$key")") --data "$2" "$server/api/v1/agent/$1")
        status=${answer##*$'\n'} answer=${answer%$'\n'*}
        case $status in
            2??) echo "$answer" && return 0 ;;
            000 | 408 | 429 | 5??) sleep "$pause" && pause=$((pause < 8 ? pause * 2 : 15)) ;;
            *) echo "$1: $answer" >&2 && return $((status == 410 ? 10 : 1)) ;;
        esac
    done
}
register() {
    answer=$(call register '{"worker": "shell:'$$'", "queues": ["default"], "slots": 1, "tasks": ["hello"]}') || exit 1
    session=$(jq .session <<<"$answer") every=$(jq '.renew_every_ms / 1000' <<<"$answer") # the id with its quotes
    echo "registered $(jq -r .session <<<"$answer")"
}
beat() { call heartbeat "{\"session\": $session, \"held\": [$1]}" >/dev/null; } # renews the lease of what is held
trap 'call unregister "{\"session\": $session}" >/dev/null' EXIT
trap 'exit 0' INT TERM
register
while polled=$(beat && call poll "{\"session\": $session, \"max\": 1, \"wait_ms\": 1000}") || [ $? = 10 ]; do
    [ -z "$polled" ] && register && continue # the session was over
    work=$(jq -c '.assignments[0] // empty' <<<"$polled") && [ -n "$work" ] || continue
    while sleep "$every"; do beat "$(jq '{tenant, run, position, attempt}' <<<"$work")"; done & beating=$!
    outcome='{"status": "retry", "error": {"class": "unavailable", "code": "HELLO_FAILED", "message": "it failed"}}'
    output=$(jq .input <<<"$work" | hello) && outcome="{\"status\": \"completed\", \"output\": $output}"
    report=$(jq --argjson outcome "$outcome" '{tenant, run, position, attempt, epoch, $outcome}' <<<"$work")
    call "$(jq -r . <<<"$session")/complete-step" "$report" >/dev/null
    kill $beating
done
