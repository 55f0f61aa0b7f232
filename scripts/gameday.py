#!/usr/bin/env python3
"""Rehearses a failover: two servers and two workers on one PostgreSQL, a worker killed in the middle of a step, then a server.

    scripts/with-postgres scripts/gameday.py INTERLOCK [--lease-ms 20000] [--runs 12]

Says how long each loss took to be noticed and to be made good, and fails if that is more than 30 s, if a run is lost, or if a step
ran more often than the server has recorded.
"""

import argparse
import collections
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

WITHIN_S = 30
WORKFLOW = """
name: gameday
steps:
  - { id: before, task: note, effect: read }
  - { id: act, task: slow, effect: read }
  - { id: after, task: note, effect: read }
"""
# One line when it begins and one when it ends: what really ran, whatever the store has on record.
PROGRAM = """#!/bin/sh
cat >/dev/null
echo "begin $INTERLOCK_RUN_ID $INTERLOCK_STEP $INTERLOCK_ATTEMPT" >>"{ledger}"
sleep {seconds}
echo "end $INTERLOCK_RUN_ID $INTERLOCK_STEP $INTERLOCK_ATTEMPT" >>"{ledger}"
echo '{{}}'
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Fleet:
    """The processes, each with what starts it again."""

    def __init__(self, binary, folder, store, lease_ms):
        self.binary, self.folder, self.store, self.lease_ms = binary, folder, store, lease_ms
        self.running = {}

    def start(self, name, arguments):
        log = open(self.folder / f"{name}.log", "ab")
        quiet = {key: value for key, value in os.environ.items() if not key.startswith("INTERLOCK_")}
        quiet["INTERLOCK_CONFIG_DIR"] = str(self.folder / "config")
        command = [self.binary, *arguments]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=quiet, cwd=self.folder, start_new_session=True
        )
        self.running[name] = process

    def server(self, name, port):
        self.start(
            name,
            ["server", "--listen", f"127.0.0.1:{port}", "--store", self.store, "--data", str(self.folder / name)]
            + ["--secret-file", str(self.folder / "secret"), "--payloads", str(self.folder / "payloads")]
            + ["--bootstrap-key-file", str(self.folder / "admin.key"), "--session-lease-ms", str(self.lease_ms)],
        )

    def worker(self, name, port):
        tasks = [f"{task}={self.folder / (task + '.sh')}" for task in ("note", "slow")]
        self.start(
            name,
            ["worker", "--server", f"http://127.0.0.1:{port}", "--name", name, "--slots", "4"]
            + ["--api-key-file", str(self.folder / "worker.key"), "--task", tasks[0], "--task", tasks[1]],
        )

    def kill(self, name):
        """As a power cut would: the process, and everything that it has started."""
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def end(self):
        for process in self.running.values():
            process.terminate()
        for process in self.running.values():
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class Api:
    """Asks whichever server answers."""

    def __init__(self, ports):
        self.ports, self.key = list(ports), None

    def call(self, method, path, body=None):
        failure = None
        for port in list(self.ports):
            headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1{path}", data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                sys.exit(f"gameday: {method} {path} was refused: {error.read().decode()}")
            except OSError as error:
                failure = error
                self.ports.append(self.ports.pop(0))
        raise failure

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body):
        return self.call("POST", path, body)


def until(what, is_so, seconds=90):
    deadline = time.time() + seconds
    while time.time() < deadline:
        try:
            found = is_so()
        except OSError:
            found = None
        if found:
            return found
        time.sleep(0.1)
    sys.exit(f"gameday: {what} did not happen within {seconds} s")


def attempts(api, run):
    return api.get(f"/runs/{run}/attempts")["attempts"]


def held_by(api, runs, worker):
    """Attempts at the slow step that this worker has now."""
    found = [(run, attempt) for run in runs for attempt in attempts(api, run)]
    is_held = lambda attempt: attempt["outcome"] == "running" and attempt.get("worker") == worker
    return [(run, attempt) for run, attempt in found if is_held(attempt) and attempt["step"] == "act"]


def start_runs(api, count):
    return [api.post("/runs", {"workflow": "gameday"})["run_id"] for _ in range(count)]


def made_good(api, lost, killed_at):
    """For each lost attempt: after how many seconds it was noticed, and after how many another attempt had the step."""

    def successors():
        told = []
        for run, attempt in lost:
            same = [one for one in attempts(api, run) if one["position"] == attempt["position"]]
            ended = next(one for one in same if one["attempt"] == attempt["attempt"]).get("ended_at")
            after = next((one for one in same if one["attempt"] > attempt["attempt"]), None)
            if not ended or not after:
                return None
            told.append((ended / 1000 - killed_at, after["started_at"] / 1000 - killed_at))
        return told

    return until("that every lost step was taken over", successors)


def report(title, lost, times):
    noticed, taken = max(time for time, _ in times), max(time for _, time in times)
    print(f"{title}: {len(lost)} steps lost; noticed after {noticed:.1f} s, taken over after {taken:.1f} s at the latest")
    return taken


def ledger_of(path):
    counted = collections.Counter()
    for line in path.read_text().splitlines():
        what, run, step, _attempt = line.split()
        counted[(what, run, step)] += 1
    return counted


def check(api, runs, ledger):
    """Nothing is lost, and nothing was done that is not on record."""
    wrong = []
    counted = ledger_of(ledger)
    repeats = 0
    for run in runs:
        state = api.get(f"/runs/{run}")["state"]
        if state != "succeeded":
            wrong.append(f"{run} is {state}")
        told = collections.defaultdict(list)
        for attempt in attempts(api, run):
            told[attempt["step"]].append(attempt)
        for step in ("before", "act", "after"):
            done = [attempt for attempt in told[step] if attempt["outcome"] == "completed"]
            if len(done) != 1:
                wrong.append(f"{run} {step} was completed {len(done)} times")
            begun = counted[("begin", run, step)]
            if not 1 <= begun <= len(told[step]):
                wrong.append(f"{run} {step} ran {begun} times, and {len(told[step])} attempts are recorded")
            repeats += begun - 1
    return wrong, repeats


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("interlock")
    parser.add_argument("--lease-ms", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=12)
    asked = parser.parse_args()
    store = os.environ.get("INTERLOCK_TEST_POSTGRES") or sys.exit("gameday: run it by scripts/with-postgres, or `make gameday`")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="interlock-gameday-"))
    ledger = folder / "ledger"
    ledger.touch()
    for task, seconds in (("note", 0.05), ("slow", 4)):
        program = folder / f"{task}.sh"
        program.write_text(PROGRAM.format(ledger=ledger, seconds=seconds))
        program.chmod(0o755)
    fleet = Fleet(os.path.abspath(asked.interlock), folder, store, asked.lease_ms)
    ports = [free_port(), free_port()]
    try:
        wrong = rehearse(fleet, Api(ports), ports, ledger, asked.runs)
    except BaseException:
        print(f"gameday: the logs are in {folder}", file=sys.stderr)
        raise
    finally:
        fleet.end()
    if wrong:
        print("\n".join(["gameday: FAILED", *wrong, f"the logs are in {folder}"]))
        sys.exit(1)
    shutil.rmtree(folder)
    print("gameday: passed")


def rehearse(fleet, api, ports, ledger, count):
    folder = fleet.folder
    fleet.server("server-a", ports[0])
    until("that the first admin's key is there", lambda: (folder / "admin.key").exists())
    api.key = until("a key", lambda: (folder / "admin.key").read_text().strip())
    until("that server-a answers", lambda: api.get("/me"))
    fleet.server("server-b", ports[1])
    only_b = Api([ports[1]])
    only_b.key = api.key
    until("that server-b answers", lambda: only_b.get("/me"))
    (folder / "worker.key").touch(mode=0o600)
    (folder / "worker.key").write_text(api.post("/keys", {"name": "gameday", "roles": ["worker"]})["text"])
    api.post("/workflows", {"source": WORKFLOW})
    fleet.worker("worker-1", ports[0])
    fleet.worker("worker-2", ports[1])
    names = lambda: {worker["worker"] for worker in api.get("/workers")["workers"]}
    until("that both workers are there", lambda: {"worker-1", "worker-2"} <= names())
    print(f"two servers, two workers, {count} runs twice, leases of {fleet.lease_ms / 1000:g} s")

    late = []
    runs = start_runs(api, count)
    lost = until("that worker-1 is in the middle of a step", lambda: held_by(api, runs, "worker-1"))
    killed_at = time.time()
    fleet.kill("worker-1")
    lost = held_by(api, runs, "worker-1") or lost
    late.append(report("worker-1 was killed", lost, made_good(api, lost, killed_at)))
    fleet.worker("worker-1", ports[0])
    until("that worker-1 is back", lambda: "worker-1" in names())

    more = start_runs(api, count)
    runs += more
    lost = until("that worker-1 is in the middle of a step", lambda: held_by(api, more, "worker-1"))
    killed_at = time.time()
    fleet.kill("server-a")
    until("that server-b answers alone", lambda: only_b.get("/me"))
    print(f"server-a was killed: server-b answered after {time.time() - killed_at:.1f} s")
    # Its worker has no server to report to; what it held is taken over like that of a worker that was killed.
    lost = held_by(only_b, more, "worker-1") or lost
    late.append(report("worker-1 was cut off with it", lost, made_good(only_b, lost, killed_at)))
    fleet.server("server-a", ports[0])
    until("that worker-1 is back", lambda: "worker-1" in {w["worker"] for w in api.get("/workers")["workers"]})

    ended = lambda: all(api.get(f"/runs/{run}")["state"] == "succeeded" for run in runs)
    until("that all runs have succeeded", ended, seconds=180)
    wrong, repeats = check(api, runs, ledger)
    print(f"{len(runs)} runs succeeded; {repeats} steps ran again, each with a recorded attempt")
    wrong += [f"a loss was made good after {time:.1f} s, more than {WITHIN_S} s" for time in late if time > WITHIN_S]
    return wrong


main()
