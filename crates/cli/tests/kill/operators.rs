//! What people and other systems do while processes are killed: they cancel, vote, send signals, pause and resume, and
//! look at the ledger where an effect is in doubt.

use std::time::Duration;

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
    /// Somebody cancels it.
    Cancel,
    /// Somebody pauses it, and resumes it later.
    Pause,
}

const STORIES: [Story; 8] =
    [Story::Plain, Story::Plain, Story::Plain, Story::Signal, Story::Signal, Story::Vote, Story::Cancel, Story::Pause];

pub struct Run {
    pub id: String,
    pub story: Story,
    /// What the story asks for was said, and acknowledged.
    told: bool,
    ended: bool,
}

pub fn plan(story: Story) -> Value {
    let retry = json!({ "max_attempts": 100, "backoff": { "fixed": { "delay": 20 } } });
    let append = |key: &str, effect: &str| json!({ "key": key, "kind": "task", "handler": "append", "effect": effect, "retry": retry });
    let between = match story {
        Story::Signal => json!({ "key": "between", "kind": "wait", "signal": { "type": "go" } }),
        Story::Vote => json!({ "key": "between", "kind": "approval", "message": "go on?" }),
        Story::Plain | Story::Cancel | Story::Pause => json!({ "key": "between", "kind": "wait", "for": 30 }),
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
    pub async fn start(&mut self, random: &mut fastrand::Rng) {
        let story = STORIES[random.usize(..STORIES.len())];
        let id = self.client.start(&plan(story), &format!("run-{}", self.runs.len())).await;
        self.runs.push(Run { id, story, told: false, ended: false });
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
        let Run { id, story, told, .. } = &self.runs[index];
        let (id, story, told) = (id.clone(), *story, *told);
        let run = self.client.run(&id).await;
        let state = run["state"].as_str().unwrap();
        if ["succeeded", "failed", "canceled"].contains(&state) {
            assert!(
                state == "succeeded" || (state == "canceled" && story == Story::Cancel),
                "{id} ({story:?}) ended badly: {run}"
            );
            self.runs[index].ended = true;
            return;
        }
        let because = json!({ "reason": "an operator wants it" });
        match story {
            Story::Signal if !told => {
                let path = format!("/runs/{id}/signals");
                let body = json!({ "type": "go" });
                let key = format!("signal-{id}");
                let (status, answer) = self.client.insist(reqwest::Method::POST, &path, Some(&body), Some(&key)).await;
                // The first request may still be worked on.
                assert!(matches!(status, 200..=202 | 409), "{status}: {answer}");
                self.runs[index].told = status < 202;
            }
            Story::Vote if state == "waiting_approval" => {
                self.approver.tell(&id, "approve", json!({ "approve": true })).await;
            }
            Story::Cancel if !told => self.runs[index].told = self.client.tell(&id, "cancel", because).await < 300,
            Story::Pause if !told => self.runs[index].told = self.client.tell(&id, "pause", because).await < 300,
            Story::Plain | Story::Signal | Story::Vote | Story::Cancel | Story::Pause => {}
        }
        if state == "paused" || story == Story::Cancel {
            self.settle_doubts(&id).await;
        }
        if state == "paused" && told && story == Story::Pause {
            self.client.tell(&id, "resume", json!({})).await;
        }
    }

    /// Looks at the outside world, and says what happened.
    async fn settle_doubts(&self, run: &str) {
        for step in self.client.steps(run).await.iter().filter(|step| step["state"] == "in_doubt") {
            let key = step["key"].as_str().unwrap();
            let outcome = if self.ledger.happened(run, key) { "happened" } else { "did_not_happen" };
            self.client.resolve(run, key, outcome).await;
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

    /// The ledger against the runs: every effect there, the unsafe ones exactly once; of canceled runs at most once.
    pub async fn judge(&self) {
        let calls = self.ledger.calls();
        let mut expected = 0;
        for Run { id, .. } in &self.runs {
            let steps = self.client.steps(id).await;
            for step in steps.iter().filter(|step| step["key"] != "between") {
                let key = step["key"].as_str().unwrap();
                let mark = format!("#{id}/{key}/");
                let called: Vec<_> = calls.iter().filter(|(call, _)| call.contains(&mark)).collect();
                expected += called.len();
                assert!(called.len() <= 1, "{id} {key}: one key for one effect, but {called:?}");
                if step["state"] == "succeeded" {
                    assert_eq!(called.len(), 1, "{id} {key} succeeded without its effect");
                }
                if key == "second" {
                    assert!(called.iter().all(|(_, count)| **count == 1), "{id}: an unsafe effect was repeated");
                }
            }
        }
        assert_eq!(calls.len(), expected, "effects that belong to no run");
    }
}
