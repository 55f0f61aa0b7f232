#!/usr/bin/env bash
# A worker in shell, over plain HTTP: it registers, asks for work, does it, and reports. Needs curl and jq.
#
#   INTERLOCK_SERVER=http://127.0.0.1:8420 examples/workers/shell.sh
#
# INTERLOCK_API_KEY_FILE names a file with the key of a worker; by default the one that `interlock up` leaves in its data
# folder. IDLE_POLLS_MAX ends the worker after so many polls without work; without it, it goes on until it is stopped.
# GREETINGS_FILE names the file that the task `post` appends to.
set -euo pipefail

server=${INTERLOCK_SERVER:-http://127.0.0.1:8420}
greetings=${GREETINGS_FILE:-/dev/null}
send_margin=5     # seconds of the lease that must be left for an effect to be sent
patience=600      # seconds for which a result is offered to a server that does not answer

umask 077
folder=$(mktemp -d)
headers=$folder/headers
echo 'content-type: application/json' >"$headers"
key_file=${INTERLOCK_API_KEY_FILE:-interlock-data/local.key}
if [[ -n ${INTERLOCK_API_KEY_FILE:-} || -r $key_file ]]; then
    # In a file, so that the key stands in no list of processes.
    printf 'authorization: Bearer %s\n' "$(<"$key_file")" >>"$headers"
fi

# Seconds on the monotonic clock, where there is one.
now() { cut -d. -f1 /proc/uptime 2>/dev/null || date +%s; }

# call PATH BODY: prints the answer. Status 1: no answer, so repeat it; 2: the server says no; 3: no such session.
call() {
    local answer status
    answer=$(curl --silent --max-time 90 --write-out '\n%{http_code}' --header "@$headers" --data "$2" \
        "$server/api/v1/agent/$1") || return 1
    status=${answer##*$'\n'}
    printf '%s' "${answer%$'\n'*}"
    case $status in
        2??) return 0 ;;
        408 | 429 | 5??) return 1 ;;
        410) return 3 ;;
        *) return 2 ;;
    esac
}

# retry SECONDS PATH BODY: repeats a call that got no answer, after growing pauses. Every call is safe to repeat.
retry() {
    local until=$(($(now) + $1)) pause=1 status
    while :; do
        status=0
        call "$2" "$3" || status=$?
        [[ $status != 1 ]] && return "$status"
        [[ $(now) -ge $until ]] && return 1
        echo "$2: no answer; trying again" >&2
        sleep "$pause"
        pause=$((pause * 2 > 15 ? 15 : pause * 2))
    done
}

covers_a_send() { [[ -e $folder/lease && $(($(now) + send_margin)) -le $(<"$folder/lease") ]]; }

# effect TEMPLATE REQUEST FUNCTION: acts on another system. The intent is durable before, the outcome after; a repeat of
# the step gets the recorded answer. The function gets the effect's key, and prints its response. Status 75 says that
# nothing happened; any other failure says nothing, and the step is in doubt. One effect after the other, in the same
# order each time: the number is part of the key.
effects=0
effect() {
    local intent answer receipt response status=0 body
    intent=$(jq -n --argjson at "$at" --arg template "$1" --argjson number "$effects" --arg effect "$effect_class" \
        --argjson request "$2" '$at + {template: $template, number: $number, effect: $effect, request: $request}')
    effects=$((effects + 1))
    answer=$(retry "$send_margin" "$session/effects" "$intent") || { echo "$answer" >&2; return 1; }
    if [[ $(jq -r .answer <<<"$answer") == performed ]]; then
        jq -c .response <<<"$answer"
        return
    fi
    if [[ $(jq -r .answer <<<"$answer") != perform ]]; then
        # Not permitted, or not yet: the attempt is over, and the server knows so.
        jq -r '"the effect is not permitted: " + (.reasons | join("; "))' <<<"$answer" >&2
        return 1
    fi
    receipt=$(jq -r .receipt <<<"$answer")
    # Right before the first byte: is the lease still long enough?
    if covers_a_send; then
        response=$("$3" "$(jq -r .key <<<"$answer")") || status=$?
    else
        echo "the lease is too short to perform the effect; nothing was sent" >&2
        status=75
    fi
    case $status in
        0) body=$(jq -n --argjson response "$response" '{happened: true, response: $response}') ;;
        75) body='{"happened": false}' ;;
        *) return "$status" ;;
    esac
    retry "$patience" "$session/outcomes" "$(jq -n --argjson at "$at" --arg receipt "$receipt" --argjson body "$body" \
        '$at + {receipt: $receipt} + $body')" >&2 || return 1
    [[ $status == 0 ]] && printf '%s\n' "$response"
    return "$status"
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
# It acts on something outside, and must not do so twice.
task_post() {
    local input
    input=$(cat)
    append() {
        jq -r .text <<<"$input" >>"$greetings" && jq -c '{text}' <<<"$input"
    }
    effect file:append "$input" append
}

# What the worker can do: it is given steps of these tasks only, and asks before each effect.
tasks=$(declare -F | sed -n 's/^declare -f task_//p' | jq -Rn '[inputs]')
hello=$(jq -n --arg worker "shell:$$" --argjson tasks "$tasks" \
    '{worker: $worker, queues: ["default"], slots: 1, tasks: $tasks, capabilities: ["effects"]}')

# One heartbeat renews the session, also while a task runs. It lists the attempts that the worker holds, so that the
# server notices a lost claim. The lease counts from when the renewal was sent, so that it never ends later here than at
# the server.
heartbeats() {
    local sent_at renewed
    while sleep "$renew_every"; do
        sent_at=$(now)
        renewed=$(call heartbeat "$(jq -n --arg session "$session" --slurpfile held "$folder/held" \
            '{session: $session, held: $held[0]}')") || continue
        if [[ $(jq -r .known <<<"$renewed") == true ]]; then
            echo $((sent_at + $(jq '.lease_ms / 1000 | floor' <<<"$renewed"))) >"$folder/lease"
        else
            rm -f "$folder/lease"
            return
        fi
    done
}

beating='' session=''
begin_session() {
    local registered sent_at
    [[ -n $beating ]] && kill "$beating" 2>/dev/null || true
    sent_at=$(now)
    if ! registered=$(retry "$patience" register "$hello"); then
        echo "the server does not take this worker: ${registered:-no answer from $server}" >&2
        echo "INTERLOCK_API_KEY_FILE names the file with its key; \`interlock key create NAME --role worker\` makes one" >&2
        exit 1
    fi
    session=$(jq -r .session <<<"$registered")
    renew_every=$(jq -r '.renew_every_ms / 1000' <<<"$registered")
    echo '[]' >"$folder/held"
    echo $((sent_at + $(jq '.lease_ms / 1000 | floor' <<<"$registered"))) >"$folder/lease"
    heartbeats &
    beating=$!
    echo "registered $session"
}

finish() {
    [[ -n $beating ]] && kill "$beating" 2>/dev/null || true
    [[ -n $session ]] && call unregister "$(jq -n --arg session "$session" '{session: $session}')" >/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 0' INT TERM
begin_session

idle=0
while :; do
    status=0
    polled=$(retry "$patience" poll "$(jq -n --arg session "$session" '{session: $session, max: 1, wait_ms: 1000}')") \
        || status=$?
    case $status in
        0) ;;
        3)
            echo "the session is over; registering again" >&2
            begin_session
            continue
            ;;
        *)
            echo "the server gives no work: $polled" >&2
            exit 1
            ;;
    esac
    work=$(jq -c '.assignments[0] // empty' <<<"$polled")
    if [[ -z $work ]]; then
        idle=$((idle + 1))
        [[ -n ${IDLE_POLLS_MAX:-} && $idle -ge $IDLE_POLLS_MAX ]] && exit 0
        continue
    fi
    idle=0
    at=$(jq -c '{tenant, run, position, attempt, epoch}' <<<"$work")
    jq -c '[del(.epoch)]' <<<"$at" >"$folder/held"
    attempt=$(jq -r .attempt <<<"$work")
    handler=$(jq -r .handler <<<"$work")
    effect_class=$(jq -r .effect <<<"$work")
    status=0
    if declare -F "task_$handler" >/dev/null; then
        output=$(jq -c .input <<<"$work" | "task_$handler" 2>"$folder/errors") || status=$?
        case $status in
            0) outcome=$(jq -n --argjson output "$output" '{status: "completed", output: $output}') ;;
            75) outcome=$(jq -n --rawfile message "$folder/errors" \
                '{status: "retry", error: {class: "unavailable", code: "TRY_AGAIN", message: $message}}') ;;
            *) outcome=$(jq -n --rawfile message "$folder/errors" \
                '{status: "dead", error: {class: "terminal", code: "TASK_FAILED", message: $message}}') ;;
        esac
    else
        # Another worker may have this task.
        outcome='{"status": "unknown_task"}'
    fi
    echo "$handler attempt $attempt: $(jq -r .status <<<"$outcome")"
    # Also when the session is over by now: the attempt may still be the current one.
    retry "$patience" "$session/complete-step" \
        "$(jq -n --argjson at "$at" --argjson outcome "$outcome" '$at + {outcome: $outcome}')" >"$folder/answer" \
        || echo "the result is dropped: $(<"$folder/answer")" >&2
    echo '[]' >"$folder/held"
done
