#!/usr/bin/env python3
"""A worker in Python, over plain HTTP, with nothing but the standard library.

    INTERLOCK_SERVER=http://127.0.0.1:8420 python3 examples/workers/python.py

INTERLOCK_API_KEY_FILE names a file with the key of a worker; by default the one that `interlock up` leaves in its data
folder. IDLE_POLLS_MAX ends the worker after so many polls without work; without it, it goes on until it is stopped.
GREETINGS_FILE names the file that the task `post` appends to.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

SERVER = os.environ.get("INTERLOCK_SERVER", "http://127.0.0.1:8420")
LOCAL_KEY_FILE = "interlock-data/local.key"
IDLE_POLLS_MAX = int(os.environ.get("IDLE_POLLS_MAX", "0"))
GREETINGS_FILE = os.environ.get("GREETINGS_FILE", os.devnull)

# An effect is sent only while at least this much of the lease is left, in seconds.
SEND_MARGIN = 5
# How long a result is offered to a server that does not answer, in seconds.
REPORT_PATIENCE = 600


class TryAgain(Exception):
    """The task failed in a way that passes, and has changed nothing."""


class Withheld(Exception):
    """The effect is not permitted, or not yet. The attempt is over."""


class CertainlyNot(Exception):
    """The other system has said no: the effect did not happen."""


class Refused(Exception):
    """The server has answered, and the answer is no. A repeat gets the same."""

    def __init__(self, status, code, detail):
        super().__init__(f"{code}: {detail}")
        self.status = status


# A task takes its input and the attempt, and returns its output.
def greet(task_input, attempt):
    if task_input["fail_first"] and attempt.number == 1:
        raise TryAgain("the first attempt fails, as it was asked to")
    return {"text": f"Hello, {task_input['name']}"}


def shout(task_input, attempt):
    return {"text": task_input["text"].upper()}


def post(task_input, attempt):
    """Acts on something outside, and must not do so twice: see `Attempt.effect`."""

    def append(key):
        with open(GREETINGS_FILE, "a", encoding="utf-8") as file:
            file.write(f"{task_input['text']}\n")
        return {"text": task_input["text"]}

    return attempt.effect("file:append", task_input, append)


TASKS = {"greet": greet, "shout": shout, "post": post}


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
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            if error.code >= 500 or error.code in (408, 429):
                raise OSError(f"the server answers {error.code}") from error
            problem = json.loads(error.read() or b"{}")
            raise Refused(error.code, problem.get("code", ""), problem.get("detail", "")) from error

    def retry(self, path, body, worthwhile):
        """Repeats a call that got no answer, after growing pauses. Every call is safe to repeat."""
        pause = 0.2
        while True:
            try:
                return self.call(path, body)
            except OSError as error:
                if not worthwhile():
                    raise
                print(f"{path}: {error}; trying again", file=sys.stderr)
            time.sleep(pause * random.uniform(0.5, 1))
            pause = min(pause * 2, 15)


class Session:
    """One registration. Its lease is counted from when a renewal was sent, so that it never ends later here."""

    def __init__(self, server):
        self.server = server
        sent_at = time.monotonic()
        hello = {
            "worker": f"python:{os.getpid()}",
            "queues": ["default"],
            "slots": 1,
            "tasks": list(TASKS),
            "capabilities": ["effects"],
        }
        registered = server.retry("register", hello, lambda: not STOPPING.is_set())
        self.id, self.lease_until = registered["session"], sent_at + registered["lease_ms"] / 1000
        self.renew_every = registered["renew_every_ms"] / 1000
        self.held, self.over = [], threading.Event()
        threading.Thread(target=self.heartbeats, daemon=True).start()

    def heartbeats(self):
        while not self.over.wait(self.renew_every):
            sent_at = time.monotonic()
            try:
                renewed = self.server.call("heartbeat", {"session": self.id, "held": list(self.held)})
            except (OSError, Refused) as error:
                print(f"heartbeat: {error}", file=sys.stderr)
                continue
            if not renewed["known"]:
                return self.over.set()
            self.lease_until = sent_at + renewed["lease_ms"] / 1000

    def covers_a_send(self):
        return not self.over.is_set() and time.monotonic() + SEND_MARGIN <= self.lease_until


class Attempt:
    def __init__(self, session, work):
        self.session, self.server, self.number = session, session.server, work["attempt"]
        self.at = {name: work[name] for name in ("tenant", "run", "position", "attempt")}
        self.named = {**self.at, "epoch": work["epoch"]}
        self.effect_class, self.effects = work["effect"], 0

    def effect(self, template, request, perform):
        """Acts on another system. The intent is durable before, the outcome after; a repeat gets the recorded answer.

        Effects are performed one after the other, in the same order each time: their number is part of their key.
        """
        intent = {"template": template, "number": self.effects, "effect": self.effect_class, "request": request}
        self.effects += 1
        # An intent is of use only while the effect may still be sent.
        path = f"{self.session.id}/effects"
        answer = self.server.retry(path, {**self.named, **intent}, self.session.covers_a_send)
        if answer["answer"] == "performed":
            return answer.get("response")
        if answer["answer"] != "perform":
            # Not permitted, or not yet: the attempt is over, and the server knows so.
            raise Withheld("; ".join(answer.get("reasons", [])))
        receipt = answer["receipt"]
        if not self.session.covers_a_send():
            self.outcome(receipt, False, None)
            raise TryAgain("the lease was too short to perform the effect; nothing was sent")
        try:
            response = perform(answer["key"])
        except CertainlyNot:
            self.outcome(receipt, False, None)
            raise
        # Any other exception does not say whether the effect happened: no outcome is reported, and the step is in doubt.
        self.outcome(receipt, True, response)
        return response

    def outcome(self, receipt, happened, response):
        body = {**self.named, "receipt": receipt, "happened": happened, "response": response}
        self.server.retry(f"{self.session.id}/outcomes", body, patience())

    def run(self, work):
        task = TASKS.get(work["handler"])
        if task is None:
            return {"status": "unknown_task"}  # another worker may have it
        try:
            return {"status": "completed", "output": task(work["input"], self)}
        except TryAgain as error:
            return {"status": "retry", "error": {"class": "unavailable", "code": "TRY_AGAIN", "message": str(error)}}
        except Exception as error:  # noqa: BLE001 - every exception of user code is the step's error
            return {"status": "dead", "error": {"class": "terminal", "code": "TASK_FAILED", "message": repr(error)}}

    def report(self, outcome):
        # Also when the session is over: the attempt may still be the current one.
        body = {**self.named, "outcome": outcome}
        try:
            self.server.retry(f"{self.session.id}/complete-step", body, patience())
        except (OSError, Refused) as error:
            print(f"the result is dropped: {error}", file=sys.stderr)


def patience():
    until = time.monotonic() + REPORT_PATIENCE
    return lambda: time.monotonic() < until


STOPPING = threading.Event()


def serve(session):
    """Works until the session is over or the worker is told to stop. Answers whether to go on."""
    idle = 0
    while not STOPPING.is_set() and not session.over.is_set():
        poll = {"session": session.id, "max": 1, "wait_ms": 1000}
        try:
            polled = session.server.retry("poll", poll, lambda: not STOPPING.is_set())
        except Refused as error:
            if error.status == 410:
                break
            raise
        idle = 0 if polled["assignments"] else idle + 1
        if IDLE_POLLS_MAX and idle >= IDLE_POLLS_MAX:
            return False
        for work in polled["assignments"]:
            attempt = Attempt(session, work)
            session.held.append(attempt.at)
            outcome = attempt.run(work)
            print(f"{work['handler']} attempt {work['attempt']}: {outcome['status']}", flush=True)
            attempt.report(outcome)
            session.held.remove(attempt.at)
    return not STOPPING.is_set()


def main():
    server = Server()
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: STOPPING.set())
    goes_on = True
    while goes_on:
        try:
            session = Session(server)
        except Refused as error:
            sys.exit(
                f"the server does not take this worker: {error}. INTERLOCK_API_KEY_FILE names the file with its key; "
                "`interlock key create NAME --role worker` makes one"
            )
        print(f"registered {session.id}", flush=True)
        goes_on = serve(session)
        if session.over.is_set():
            print("the session is over; registering again", file=sys.stderr)
        session.over.set()
    try:
        server.call("unregister", {"session": session.id})
    except (OSError, Refused) as error:
        print(f"unregister: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
