#!/usr/bin/env python3
"""A worker in Python, over plain HTTP, with nothing but the standard library.

    INTERLOCK_SERVER=http://127.0.0.1:8420 python3 examples/workers/python.py

INTERLOCK_API_KEY_FILE names a file with the key of a worker; by default the one that `interlock up` leaves in its data
folder. IDLE_POLLS_MAX ends the worker after so many polls without work; without it, it goes on until it is stopped.
"""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

SERVER = os.environ.get("INTERLOCK_SERVER", "http://127.0.0.1:8420")
LOCAL_KEY_FILE = "interlock-data/local.key"
IDLE_POLLS_MAX = int(os.environ.get("IDLE_POLLS_MAX", "0"))


class TryAgain(Exception):
    """The task failed in a way that passes."""


# A task takes its input and the attempt's number, and returns its output.
def greet(task_input, attempt):
    if task_input["fail_first"] and attempt == 1:
        raise TryAgain("the first attempt fails, as it was asked to")
    return {"text": f"Hello, {task_input['name']}"}


def shout(task_input, attempt):
    return {"text": task_input["text"].upper()}


TASKS = {"greet": greet, "shout": shout}


class Server:
    def __init__(self):
        self.headers = {"content-type": "application/json"}
        key_file = os.environ.get("INTERLOCK_API_KEY_FILE")
        if not key_file and os.path.exists(LOCAL_KEY_FILE):
            key_file = LOCAL_KEY_FILE
        if key_file:
            with open(key_file, encoding="utf-8") as file:
                self.headers["authorization"] = f"Bearer {file.read().strip()}"

    def call(self, path, body):
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{SERVER}/api/v1/agent/{path}", data=data, headers=self.headers)
        with urllib.request.urlopen(request, timeout=90) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def insist(self, path, body):
        """Every call is safe to repeat: a repeat gets the first answer."""
        for pause in (0.2, 1, 5, 15, None):
            try:
                return self.call(path, body)
            except urllib.error.HTTPError as error:
                # Any other 4xx is an answer: the attempt is over, the result is dropped.
                if error.code < 500 and error.code not in (408, 429):
                    print(f"dropped: {error.read().decode()}", file=sys.stderr)
                    return None
                if pause is None:
                    raise
            except OSError:
                if pause is None:
                    raise
            time.sleep(pause)


def outcome_of(work):
    task = TASKS.get(work["handler"])
    if task is None:
        return {"status": "unknown_task"}  # somebody else may have it
    try:
        return {"status": "completed", "output": task(work["input"], work["attempt"])}
    except TryAgain as error:
        return {"status": "retry", "error": {"class": "unavailable", "code": "TRY_AGAIN", "message": str(error)}}
    except Exception as error:  # noqa: BLE001 - whatever user code throws is the step's error
        return {"status": "dead", "error": {"class": "terminal", "code": "TASK_FAILED", "message": repr(error)}}


def main():
    server = Server()
    hello = {"worker": f"python:{os.getpid()}", "queues": ["default"], "slots": 1}
    registered = server.insist("register", hello)
    if registered is None:
        sys.exit(
            "the server does not take this worker: INTERLOCK_API_KEY_FILE names the file with its key; "
            "`interlock key create NAME --role worker` makes one"
        )
    session, held, stopping = registered["session"], [], threading.Event()

    def heartbeats():
        while not stopping.wait(registered["renew_every_ms"] / 1000):
            try:
                server.call("heartbeat", {"session": session, "held": list(held)})
            except OSError as error:
                print(f"heartbeat: {error}", file=sys.stderr)

    threading.Thread(target=heartbeats, daemon=True).start()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: stopping.set())

    idle = 0
    while not stopping.is_set():
        polled = server.insist("poll", {"session": session, "max": 1, "wait_ms": 1000})
        if not polled or not polled["assignments"]:
            idle += 1
            if IDLE_POLLS_MAX and idle >= IDLE_POLLS_MAX:
                break
            continue
        idle = 0
        for work in polled["assignments"]:
            at = {name: work[name] for name in ("tenant", "run", "position", "attempt")}
            held.append(at)
            outcome = outcome_of(work)
            print(f"{work['handler']} attempt {work['attempt']}: {outcome['status']}", flush=True)
            server.insist(f"{session}/complete-step", {**at, "epoch": work["epoch"], "outcome": outcome})
            held.remove(at)
    stopping.set()
    server.insist("unregister", {"session": session})


if __name__ == "__main__":
    main()
