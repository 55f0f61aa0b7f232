"""Makes what scripts/api-fuzz asks about: one of each thing, the keys, and the settings that name them."""

import json
import pathlib
import sys
import urllib.request

base, scratch = sys.argv[1], pathlib.Path(sys.argv[2])
SOURCE = """
name: fuzzed
on: { ticket: {}, signal: { type: fuzzed } }
steps:
  - { id: sure, approval: Go on? }
  - { id: work, task: work, rollback: { task: undo } }
"""


def post(path, body, key):
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{base}/api/v1{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


admin = (scratch / "key").read_text().strip()
worker = post("/keys", {"name": "fuzz", "roles": ["worker"]}, admin)["text"]
(scratch / "worker-key").write_text(worker)

post("/workflows", {"source": SOURCE}, admin)
run = post("/runs", {"workflow": "fuzzed"}, admin)["run_id"]
schedule = post("/schedules", {"name": "s", "workflow": "fuzzed", "cron": "0 3 * * *", "paused": True}, admin)
inbound = post("/webhooks", {"name": "w", "source": "generic"}, admin)
session = post("/agent/register", {"worker": "w", "queues": ["q"], "slots": 1}, worker)["session"]

# Nothing happens behind a long poll here, so no request waits for it.
guessing = {"wait_ms": 0}
knowing = {
    **guessing,
    "path.run": run,
    "path.session_id": run,
    "path.workflow": "fuzzed",
    "path.schedule": schedule["schedule_id"],
    "path.endpoint": inbound["endpoint_id"],
    "path.session": session,
}
for name, parameters in (("guessing", guessing), ("knowing", knowing)):
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in parameters.items()]
    (scratch / f"{name}.toml").write_text("\n".join(["[parameters]", *lines, ""]))
