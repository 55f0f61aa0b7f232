"""Starts a run, watches it until it waits for approval, approves it as a person, and watches it to its end."""

import os

from interlock_client import AuthenticatedClient
from interlock_client.api.approvals import approvals_list, approvals_vote
from interlock_client.api.auth import auth_token
from interlock_client.api.runs import runs_events, runs_get, runs_start
from interlock_client.api.users import users_create
from interlock_client.api.workflows import workflows_apply
from interlock_client.models import (
    CastVote,
    CreateUser,
    File,
    NewTokenPassword,
    NewTokenPasswordBy,
    Problem,
    Role,
    StartRunWorkflow,
)

PASSWORD = "correct horse battery"
SOURCE = """name: ship
steps:
  - { id: sure, approval: { message: Ship it? } }
  - { id: done, transform: shipped }
"""


def client(token):
    return AuthenticatedClient(base_url=os.environ["INTERLOCK_URL"], token=token, raise_on_unexpected_status=True)


def must(answer):
    if answer is None or isinstance(answer, Problem) or hasattr(answer, "detail") and hasattr(answer, "code"):
        raise SystemExit(f"refused: {answer}")
    return answer


api = client(os.environ["INTERLOCK_KEY"])
must(workflows_apply.sync(client=api, body=File(source=SOURCE)))
must(users_create.sync(client=api, body=CreateUser(name="ada", roles=[Role.APPROVER, Role.OPERATOR], password=PASSWORD)))
run = must(runs_start.sync(client=api, body=StartRunWorkflow(workflow="ship", subject="from Python"))).run_id


def until(kind, last_event_id):
    """Follows the run's events until one of a type comes."""
    while True:
        page = must(runs_events.sync(run, client=api, last_event_id=last_event_id, wait_ms=10_000))
        for event in page.events:
            if event.type_ == kind:
                return event.id
        last_event_id = page.last_event_id


asked = until("approval.requested", "0")
password = NewTokenPassword(by=NewTokenPasswordBy.PASSWORD, name="ada", password=PASSWORD)
person = client(must(auth_token.sync(client=api, body=password)).token)
approval = must(approvals_list.sync(client=person, run=run)).approvals[0]
must(approvals_vote.sync(approval.approval, client=person, body=CastVote(approve=True, digest=approval.digest)))
until("session.completed", asked)
print(f"the run has {must(runs_get.sync(run, client=api)).state}")
