//! Bulk jobs and approvals: every action of a job, on every state of a gate, by every kind of caller. A job does to a run what the
//! same directive on that run alone would have done, and none takes a run past its gate. Jobs decide on nothing.

use std::time::Duration;

use interlock_core::bulk::BulkAction;
use serde_json::{Value, json};

use crate::approvals::{Person, card};
use crate::harness::{Api, ApiResponse, failed, plan, task};

/// Where a run stands with its gate of two keys, and with the step behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GateState {
    Open,
    HalfApproved,
    /// Open, and an operator has paused the run.
    Paused,
    /// Rejected, and the run waits for a directive.
    Rejected,
    /// Rejected, and the run has ended with it.
    Over,
    /// Approved; the step behind it has failed, and the run waits for a directive.
    UsedUp,
    /// The same, and the run has ended with it.
    UsedUpAndOver,
}

impl GateState {
    const ALL: [Self; 7] =
        [Self::Open, Self::HalfApproved, Self::Paused, Self::Rejected, Self::Over, Self::UsedUp, Self::UsedUpAndOver];

    fn plan(self) -> Value {
        let stops = |ends: bool| if ends { "fail" } else { "pause" };
        let gate = json!({ "key": "ok", "kind": "approval", "quorum": 2, "approvers": ["sre"], "message": "delete?",
            "on_reject": stops(self == Self::Over), "on_expiry": "pause" });
        let mut delete = task("delete");
        delete["on_failure"] = json!(stops(self == Self::UsedUpAndOver));
        plan(json!([gate, delete]))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BulkCaller {
    Starter,
    /// May direct runs, and is one of those whom the gate asks.
    Approver,
    /// May direct runs, and is asked by no gate.
    Outsider,
    Key,
}

impl BulkCaller {
    const ALL: [Self; 4] = [Self::Starter, Self::Approver, Self::Outsider, Self::Key];
}

struct Scene<'a> {
    api: &'a Api,
    starter: Person<'a>,
    ada: Person<'a>,
    bob: Person<'a>,
    cat: Person<'a>,
}

impl<'a> Scene<'a> {
    async fn new(api: &'a Api) -> Self {
        let both = || json!(["operator", "approver"]);
        Self {
            api,
            starter: Person::new(api, "sam", both(), json!(["sre"])).await,
            ada: Person::new(api, "ada", both(), json!(["sre"])).await,
            bob: Person::new(api, "bob", both(), json!(["sre"])).await,
            cat: Person::new(api, "cat", json!(["operator"]), json!([])).await,
        }
    }

    async fn post(&self, caller: BulkCaller, path: &str, body: Value) -> ApiResponse {
        match caller {
            BulkCaller::Starter => self.starter.post(path, body).await,
            BulkCaller::Approver => self.ada.post(path, body).await,
            BulkCaller::Outsider => self.cat.post(path, body).await,
            BulkCaller::Key => self.api.post(path, body).await,
        }
    }

    async fn vote(&self, person: &Person<'_>, run: &str, approve: bool) {
        let open = card(self.api, run).await;
        let path = format!("/approvals/{}/vote", open["approval"].as_str().unwrap());
        let word = json!({ "approve": approve, "digest": open["digest"], "notes": "so be it" });
        person.post(&path, word).await.ok();
    }

    /// A run in that state, found by its label.
    async fn run(&self, state: GateState, label: &str) -> String {
        let body = json!({ "plan": state.plan(), "labels": { "cell": label } });
        let run = self.starter.post("/runs", body).await.text("run_id");
        match state {
            GateState::Open => {}
            GateState::HalfApproved => self.vote(&self.bob, &run, true).await,
            GateState::Paused => {
                self.api.post(&format!("/runs/{run}/pause"), json!({ "reason": "lunch" })).await.ok();
            }
            GateState::Rejected | GateState::Over => self.vote(&self.bob, &run, false).await,
            GateState::UsedUp | GateState::UsedUpAndOver => {
                self.vote(&self.ada, &run, true).await;
                self.vote(&self.bob, &run, true).await;
                let session = self.api.register().await;
                let assignment = self.api.poll(&session).await;
                assert_eq!(assignment["run"], json!(run));
                self.api.report(&session, &assignment, failed("BROKEN")).await.ok();
                self.api.post("/agent/unregister", json!({ "session": session })).await;
            }
        }
        run
    }

    /// Where a run stands, and the one that continues it: what people have been asked and have said counts, not when.
    async fn standing(&self, run: &str) -> Vec<Value> {
        let (mut told, mut next) = (Vec::new(), Some(run.to_owned()));
        while let Some(run) = next {
            let seen = self.api.get(&format!("/runs/{run}")).await.ok();
            let steps = self.api.get(&format!("/runs/{run}/steps")).await.ok();
            let steps: Vec<_> = steps["steps"].as_array().unwrap().iter().map(|step| step["state"].clone()).collect();
            let asked = self.api.get(&format!("/approvals?run={run}")).await.ok();
            let mut asked: Vec<_> = asked["approvals"]
                .as_array()
                .unwrap()
                .iter()
                .map(|row| json!([row["purpose"], row["state"], row["votes"].as_array().unwrap().len()]))
                .collect();
            asked.sort_by_key(Value::to_string);
            told.push(json!([seen["state"], seen["reason"], steps, asked]));
            next = seen["continued_by"].as_str().map(str::to_owned);
        }
        told
    }

    /// The directive on one run; whether it was taken.
    async fn single(&self, caller: BulkCaller, action: BulkAction, run: &str) -> bool {
        let body = if action == BulkAction::Cancel { json!({ "reason": "why" }) } else { json!({}) };
        self.post(caller, &format!("/runs/{run}/{action}"), body).await.status.is_success()
    }

    /// The same as a job; whether it was done to the run.
    async fn bulk(&self, caller: BulkCaller, action: BulkAction, label: &str) -> bool {
        let filter = json!({ "labels": { "cell": label } });
        let preview = self.post(caller, "/bulk/preview", json!({ "filter": filter, "action": action })).await.ok();
        if preview["count"] == 0 {
            return false;
        }
        let body = json!({ "action": action, "filter": filter, "expected_count": 1, "reason": "why" });
        let job = self.post(caller, "/bulk", body).await.text("job_id");
        for _ in 0..1_000 {
            let seen = self.api.get(&format!("/bulk/{job}")).await.ok();
            if seen["finished"] == true {
                return seen["succeeded"] == 1;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the job does not end");
    }

    /// Whether a worker would get anything.
    async fn hands_something_out(&self) -> bool {
        let session = self.api.register().await;
        let polled = self.api.post("/agent/poll", json!({ "session": session, "max": 8, "wait_ms": 50 })).await.ok();
        self.api.post("/agent/unregister", json!({ "session": session })).await;
        polled["assignments"] != json!([])
    }
}

#[tokio::test(start_paused = true)]
async fn no_bulk_job_by_any_caller_replaces_a_vote() {
    let api = Api::new().await;
    let scene = Scene::new(&api).await;
    let (mut cells, mut done, mut holes) = (0, 0, Vec::new());
    for state in GateState::ALL {
        for action in BulkAction::ALL {
            for caller in BulkCaller::ALL {
                let place = format!("{state:?} / {action} / {caller:?}");
                let alone = scene.run(state, &format!("{cells}-alone")).await;
                let taken = scene.single(caller, *action, &alone).await;
                let label = format!("{cells}-bulk");
                let many = scene.run(state, &label).await;
                let was_done = scene.bulk(caller, *action, &label).await;
                let (wanted, found) = (scene.standing(&alone).await, scene.standing(&many).await);
                if (taken, &wanted) != (was_done, &found) {
                    holes.push(format!("{place}: {was_done} {found:?}, alone {taken} {wanted:?}"));
                }
                if scene.hands_something_out().await {
                    holes.push(format!("{place}: a guarded step is handed out"));
                }
                (cells, done) = (cells + 1, done + usize::from(was_done));
            }
        }
    }
    assert!(holes.is_empty(), "{} of {cells} cells:\n{}", holes.len(), holes.join("\n"));
    assert_eq!(cells, GateState::ALL.len() * BulkAction::ALL.len() * BulkCaller::ALL.len());
    assert!(done > cells / 4, "only {done} of {cells} jobs did something");
    drop(scene);
    api.end().await;
}

/// There is no job that votes, skips or lets pass, whoever asks for it.
#[tokio::test(start_paused = true)]
async fn no_bulk_job_decides() {
    let api = Api::new().await;
    let scene = Scene::new(&api).await;
    let run = scene.run(GateState::HalfApproved, "open").await;
    let before = scene.standing(&run).await;
    for action in ["approve", "reject", "decide", "vote", "skip", "restart", "resolve"] {
        for caller in BulkCaller::ALL {
            let filter = json!({ "labels": { "cell": "open" } });
            let body = json!({ "action": action, "filter": filter, "expected_count": 1, "reason": "why" });
            let refused = scene.post(caller, "/bulk", body).await;
            assert!(refused.status.is_client_error(), "{action} by {caller:?}: {}", refused.body);
        }
    }
    assert_eq!(scene.standing(&run).await, before);
    drop(scene);
    api.end().await;
}
