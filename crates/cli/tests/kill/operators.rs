//! What people and other systems do while processes are killed: they cancel, vote, send signals, pause, resume, restart,
//! make new runs from canceled ones, and look at the ledger where an effect is in doubt.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::ledger::Ledger;

/// What happens to a run beside its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Story {
    Plain,
    /// It waits for a signal.
    Signal,
    /// It waits for a person's vote.
    Vote,
    /// An operator cancels it.
    Cancel,
    /// An operator pauses it, and resumes it later.
    Pause,
    /// An operator pauses it, and has it begin again.
    Restart,
    /// An operator cancels it, and makes a new run from it.
    Successor,
}

/// They take turns.
const STORIES: [Story; 10] = [
    Story::Plain,
    Story::Signal,
    Story::Restart,
    Story::Vote,
    Story::Successor,
    Story::Cancel,
    Story::Pause,
    Story::Plain,
    Story::Successor,
    Story::Restart,
];

pub struct Run {
    /// The run, or the last one that was made from it.
    pub id: String,
    /// The first one, which the effects' keys name.
    pub root: String,
    pub story: Story,
    /// What the story asks for was said, and acknowledged.
    told: bool,
    /// It was restarted, or a new run was made from it.
    again: bool,
    ended: bool,
}

pub fn plan(story: Story) -> Value {
    let retry = json!({ "max_attempts": 100, "backoff": { "fixed": { "delay": 20 } } });
    let append = |key: &str, effect: &str| json!({ "key": key, "kind": "task", "handler": "append", "effect": effect, "retry": retry });
    let between = match story {
        Story::Signal => json!({ "key": "between", "kind": "wait", "signal": { "type": "go" } }),
        Story::Vote => json!({ "key": "between", "kind": "approval", "message": "go on?" }),
        Story::Plain | Story::Cancel | Story::Pause => json!({ "key": "between", "kind": "wait", "for": 30 }),
        // Mostly long enough for an operator to come before the end.
        Story::Restart | Story::Successor => json!({ "key": "between", "kind": "wait", "for": 600 }),
    };
    json!({ "workflow": "ledger", "version": 1, "steps": [
        append("first", "keyed"), between, append("second", "unsafe"), append("third", "keyed"),
    ]})
}

pub struct Operators<'a> {
    pub client: &'a Client,
    pub approver: &'a Client,
    pub ledger: &'a Ledger,
    pub runs: Vec<Run>,
}

impl Operators<'_> {
    pub async fn start(&mut self) {
        let story = STORIES[self.runs.len() % STORIES.len()];
        let id = self.client.start(&plan(story), &format!("run-{}", self.runs.len())).await;
        self.runs.push(Run { root: id.clone(), id, story, told: false, again: false, ended: false });
    }

    /// Looks after the newest open runs once; answers how many of all are still open.
    pub async fn look_after(&mut self, newest: usize) -> usize {
        let open: Vec<usize> = (0..self.runs.len()).filter(|index| !self.runs[*index].ended).collect();
        for index in open.iter().rev().take(newest) {
            self.look_after_one(*index).await;
        }
        self.runs.iter().filter(|run| !run.ended).count()
    }

    async fn look_after_one(&mut self, index: usize) {
        let id = self.runs[index].id.clone();
        let run = self.client.run(&id).await;
        let state = run["state"].as_str().unwrap();
        // Also where the answer was lost, and a second pause is refused.
        self.runs[index].told |= run["control"] == "paused";
        let Run { story, told, again, .. } = self.runs[index];
        let is_canceled_by_us = state == "canceled" && matches!(story, Story::Cancel | Story::Successor) && !again;
        if is_canceled_by_us && story == Story::Successor {
            self.make_successor(index).await;
            return;
        }
        if ["succeeded", "failed", "canceled"].contains(&state) {
            assert!(state == "succeeded" || is_canceled_by_us, "{id} ({story:?}) ended badly: {run}");
            self.runs[index].ended = true;
            return;
        }
        let because = json!({ "reason": "an operator wants it" });
        match story {
            Story::Signal if !told => self.runs[index].told = self.signal(&id).await,
            Story::Vote if state == "waiting_approval" => {
                self.approve(&id).await;
            }
            Story::Cancel | Story::Successor if !told && !again => {
                self.runs[index].told = self.client.tell(&id, "cancel", because).await < 300;
            }
            Story::Pause | Story::Restart if !told => {
                self.runs[index].told = self.client.tell(&id, "pause", because).await < 300;
            }
            _ => {}
        }
        if state == "paused" || story == Story::Cancel || (story == Story::Successor && !again) {
            self.settle_doubts(&self.runs[index]).await;
        }
        match story {
            // Refused while a step still runs, or is in doubt.
            Story::Restart if state == "paused" && told && !again => {
                self.runs[index].again = self.client.tell(&id, "restart", json!({ "from": "first" })).await < 300;
            }
            // A frozen server may carry out the pause once more, when it wakes up.
            Story::Pause | Story::Restart if state == "paused" && told => {
                self.client.tell(&id, "resume", json!({})).await;
            }
            _ => {}
        }
    }

    /// That a step behind the gate runs once more is another question than the gate's, and is decided on by its digest.
    async fn approve(&self, run: &str) {
        let body = Some(json!({ "approve": true }));
        let path = format!("/runs/{run}/approve");
        let (_, answer) = self.approver.with_retries(Method::POST, &path, body.as_ref(), None).await;
        if answer["code"] == "APPROVAL_DIGEST_REQUIRED" {
            let digest = &answer["approvals"][0]["digest"];
            self.approver.tell(run, "approve", json!({ "approve": true, "digest": digest })).await;
        }
    }

    /// Whether it was acknowledged.
    async fn signal(&self, run: &str) -> bool {
        let (path, key) = (format!("/runs/{run}/signals"), format!("signal-{run}"));
        let body = json!({ "type": "go" });
        let (status, answer) = self.client.with_retries(Method::POST, &path, Some(&body), Some(&key)).await;
        // The first request may still be worked on.
        assert!(matches!(status, 200..=202 | 409), "{status}: {answer}");
        status < 202
    }

    /// A new run goes on where the canceled one stopped. There is none while an earlier request is still worked on, and
    /// for a run that had done everything.
    async fn make_successor(&mut self, index: usize) {
        let canceled = &self.runs[index].id;
        if self.leaves_doubts(canceled).await {
            return;
        }
        let (path, key) = (format!("/runs/{canceled}/retry"), format!("successor-{canceled}"));
        let (status, answer) = self.client.with_retries(Method::POST, &path, Some(&json!({})), Some(&key)).await;
        match status {
            200 | 201 => {
                answer["run_id"].as_str().unwrap().clone_into(&mut self.runs[index].id);
                self.runs[index].again = true;
            }
            409 if answer["code"] == "IDEMPOTENCY_CONFLICT" => {}
            409 if answer["code"] == "RUN_INVALID_TRANSITION" => self.runs[index].ended = true,
            _ => panic!("{status}: {answer}"),
        }
    }

    /// Whether unsafe effects of an ended run are still in doubt. Those that the ledger has are settled at once, of the
    /// others the server believes only later that they did not happen.
    async fn leaves_doubts(&self, run: &str) -> bool {
        let (status, answer) =
            self.client.with_retries(Method::GET, &format!("/runs/{run}/receipts"), None, None).await;
        assert_eq!(status, 200, "{answer}");
        let receipts = answer["receipts"].as_array().unwrap().iter();
        let mut doubts = receipts.filter(|receipt| receipt["effect"] == "unsafe" && receipt["outcome_at"].is_null());
        let Some(receipt) = doubts.next() else { return false };
        let outcome = if self.ledger.has(receipt["key"].as_str().unwrap()) { "happened" } else { "did_not_happen" };
        self.client.resolve(run, "second", outcome).await;
        true
    }

    /// Looks at the outside world, and says what happened.
    async fn settle_doubts(&self, run: &Run) {
        for step in self.client.steps(&run.id).await.iter().filter(|step| step["state"] == "in_doubt") {
            let key = step["key"].as_str().unwrap();
            let outcome = if self.ledger.has(&effect_key(&run.root, step)) { "happened" } else { "did_not_happen" };
            self.client.resolve(&run.id, key, outcome).await;
        }
    }

    /// The blows are over: everything must come to its end.
    pub async fn finish(&mut self) {
        for _ in 0..1_500 {
            if self.look_after(usize::MAX).await == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let mut stuck = Vec::new();
        for run in self.runs.iter().filter(|run| !run.ended) {
            stuck.push(format!("{:?} {}", run.story, self.client.run(&run.id).await));
        }
        panic!("{} runs are stuck:\n{}", stuck.len(), stuck.join("\n"));
    }

    /// The ledger against the runs: every effect there, the unsafe ones exactly once; of canceled runs at most once. A
    /// restart asks for the effects again, under keys of their own.
    pub async fn judge(&self) {
        let calls = self.ledger.calls();
        let mut expected = 0;
        for Run { id, root, .. } in &self.runs {
            let steps = self.client.steps(id).await;
            for step in steps.iter().filter(|step| step["key"] != "between") {
                let key = step["key"].as_str().unwrap();
                let mark = format!("#{root}/{key}/");
                let called: Vec<_> = calls.iter().filter(|(call, _)| call.contains(&mark)).collect();
                expected += called.len();
                let iterations = step["iteration"].as_u64().unwrap() + 1;
                assert!(called.len() as u64 <= iterations, "{id} {key}: {iterations} iterations, but {called:?}");
                if step["state"] == "succeeded" {
                    let mark = effect_key(root, step);
                    let last = called.iter().filter(|(call, _)| call.contains(&mark));
                    assert_eq!(last.count(), 1, "{id} {key} succeeded without its effect: {called:?}");
                }
                if key == "second" {
                    assert!(called.iter().all(|(_, count)| **count == 1), "{id}: an unsafe effect was repeated");
                }
            }
        }
        assert_eq!(calls.len(), expected, "effects that belong to no run");
    }

    /// How many runs were restarted, and how many have a successor.
    pub fn begun_again(&self) -> [usize; 2] {
        [Story::Restart, Story::Successor]
            .map(|story| self.runs.iter().filter(|run| run.again && run.story == story).count())
    }
}

/// What the keys of a step's effects have in common, in the iteration that it is in.
fn effect_key(root: &str, step: &Value) -> String {
    format!("#{root}/{}/{}/", step["key"].as_str().unwrap(), step["iteration"])
}
