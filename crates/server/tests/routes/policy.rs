//! Policy over HTTP, and what it does to runs: given, put in force, asked, replayed.

use interlock_core::limits::REFUSED_WORKERS_MAX;
use serde_json::{Value, json};

use crate::approvals::{Person, card, yes};
use crate::harness::{Api, plan, task};

/// The shipped policy and one file more. Without its tests, which would be run whenever it is given: they have a test of their own.
pub async fn shipped_and(api: &Api, text: &str) -> Value {
    let mut files = api.get("/policy/files").await.ok()["files"].clone();
    files.as_object_mut().unwrap().retain(|name, _| !name.ends_with("_test.rego"));
    files["own.rego"] = json!(text);
    files
}

/// Denies and asks by what an action is called.
pub const BY_NAME: &str = r#"package interlock

deny contains {"rule": "by_name", "text": "it is called so"} if input.action.operation == "forbidden"

ask contains {"rule": "by_name", "text": "it is called so"} if input.action.operation == "ask-first"
"#;

/// Has two answers for one action, so that the policy cannot decide on it.
pub const CONTRADICTS: &str = r#"package interlock

own := 1 if input.action.operation == "contradicts"

own := 2 if input.action.operation == "contradicts"

deny contains {"rule": "own", "text": "never"} if own == 3
"#;

/// Puts the shipped policy and one file more in force.
pub async fn put_in_force(api: &Api, text: &str) -> u64 {
    let files = shipped_and(api, text).await;
    let version =
        api.post("/policy/versions", json!({ "files": files, "note": "a test" })).await.ok()["version"].clone();
    let now = api.send("PATCH", "/api/v1/policy", json!({ "active": version })).await.ok();
    assert_eq!(now["active"], version);
    version.as_u64().unwrap()
}

/// A step that nothing objects to in any run begins unasked.
#[tokio::test(start_paused = true)]
async fn a_plain_task_passes_unasked() {
    let api = Api::new().await;
    let session = api.register().await;
    for _ in 0..2 {
        let run = api.start(json!([task("a")])).await;
        let assignment = api.poll(&session).await;
        api.report(&session, &assignment, crate::harness::completed(json!(1))).await.ok();
        let decided = api.get(&format!("/runs/{run}/decisions")).await.ok();
        assert_eq!(decided["decisions"], json!([]), "it is allowed in every run");
        assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");
    }
    api.end().await;
}

/// Rules that look at the arguments of a command are asked in every run: what one run's arguments are allowed says nothing about
/// another's.
#[tokio::test(start_paused = true)]
async fn leave_for_a_command_is_leave_for_its_arguments_only() {
    const BY_ARGUMENT: &str = r#"package interlock

default decision := {"verdict": "allow", "tier": "low", "reasons": [{"rule": "fine", "text": "fine"}], "obligations": null}

decision := {"verdict": "deny", "tier": "high", "reasons": [{"rule": "no_drop", "text": "never"}], "obligations": null} if {
	"drop" in input.action.argv
}
"#;
    let api = Api::new().await;
    let files = json!({ "own.rego": BY_ARGUMENT });
    let version = api.post("/policy/versions", json!({ "files": files })).await.ok()["version"].clone();
    api.send("PATCH", "/api/v1/policy", json!({ "active": version })).await.ok();
    let source = "name: says\nprofile: dev-flex\ninputs: { word: { type: string, required: true } }\nsteps:\n  \
                  - { id: say, run: [/usr/bin/echo, \"${{ inputs.word }}\"] }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    for (word, state) in [("hello", "pending"), ("drop", "failed"), ("hello", "pending")] {
        let run = api.post("/runs", json!({ "workflow": "says", "inputs": { "word": word } })).await.text("run_id");
        let now = api.get(&format!("/runs/{run}")).await.ok();
        assert_eq!(now["state"], state, "{word}: {now}");
        let decided = api.get(&format!("/runs/{run}/decisions")).await.ok();
        assert_eq!(decided["decisions"][0]["input"]["action"]["argv"], json!(["/usr/bin/echo", word]), "{decided}");
    }
    api.end().await;
}

/// People see what they sign, whole, and their vote counts for that and nothing else.
#[tokio::test(start_paused = true)]
async fn the_card_shows_the_whole_action() {
    let api = Api::new().await;
    put_in_force(&api, BY_NAME).await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let mut digests = Vec::new();
    for database in ["orders", "test"] {
        let mut step = task("a");
        step["handler"] = json!("ask-first");
        step["with"] = json!({ "database": database });
        let run = api.post("/runs", json!({ "plan": plan(json!([step])) })).await.text("run_id");
        let card = card(&api, &run).await;
        let action = &card["action"];
        assert_eq!((&action["operation"], &action["step"]), (&json!("ask-first"), &json!("a")), "{card}");
        assert_eq!(action["input"], json!({ "database": database }));
        assert_eq!(action.get("undone_by"), None, "nothing undoes it");
        digests.push((run, card["digest"].clone()));
    }
    let (first, second) = (&digests[0], &digests[1]);
    let other = json!({ "approve": true, "digest": second.1 });
    let refused = ada.post(&format!("/runs/{}/approve", first.0), other).await;
    assert_eq!(refused.problem(), (409, "APPROVAL_CHANGED"));
    ada.post(&format!("/runs/{}/approve", first.0), json!({ "approve": true, "digest": first.1 })).await.ok();
    api.end().await;
}

/// A step that only reads needed no permission, so there is none that could cover what undoes it.
#[tokio::test(start_paused = true)]
async fn the_rollback_of_a_read_step_is_judged_for_itself() {
    let api = Api::new().await;
    let source = "name: w\nprofile: prod-critical\nsteps:\n  - { id: look, task: look, effect: read, rollback: { task: drop } }\n  \
                  - { id: w, wait: { for: 1h } }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let session = api.register().await;
    let run = api.post("/runs", json!({ "workflow": "w" })).await.text("run_id");
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, crate::harness::completed(json!(1))).await.ok();
    let preview = api.get(&format!("/runs/{run}/rollback")).await.ok();
    let foretold = &preview["undone"][0]["policy"];
    api.post(&format!("/runs/{run}/rollback"), json!({ "reason": "in a hurry" })).await;
    let decided = api.get(&format!("/runs/{run}/decisions")).await.ok();
    let last = decided["decisions"].as_array().unwrap().last().expect("it was judged").clone();
    assert_eq!(last["operation"], "drop", "{decided}");
    assert_ne!(last["verdict"], "allow", "{decided}");
    assert_eq!(foretold["verdict"], last["verdict"], "the preview has asked the same policy: {preview}");
    assert!(!foretold["reasons"].as_array().unwrap().is_empty(), "{preview}");
    assert!(preview["asks"].as_str().unwrap().contains("`look`"), "{preview}");
    api.end().await;
}

/// Rules that come into force are checked before a step is handed to a worker: one that will not ask again, and one
/// that asks before some of its effects, because it is not known whether this is one of them.
#[tokio::test(start_paused = true)]
async fn a_step_that_nobody_has_taken_yet_is_held_against_new_rules() {
    let api = Api::new().await;
    let forbidden = |effect: &str| json!([{ "key": "a", "kind": "task", "handler": "forbidden", "effect": effect }]);
    let mut runs = Vec::new();
    for effect in ["idempotent", "keyed", "unsafe"] {
        runs.extend([api.start(forbidden(effect)).await, api.start(forbidden(effect)).await]);
    }
    put_in_force(&api, BY_NAME).await;
    for session in [api.register().await, api.register_naming_effects().await] {
        for _ in 0..3 {
            let polled = api.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 100 })).await.ok();
            assert_eq!(polled["assignments"], json!([]));
        }
    }
    for run in runs {
        let ended = api.get(&format!("/runs/{run}")).await.ok();
        assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("policy_denied")), "{ended}");
    }
    api.end().await;
}

/// A task's own code calls its effects what it likes. What rules say of the task holds for them, also rules that came into force
/// after it was handed out; and a program is its task, whatever the worker calls its effect.
#[tokio::test(start_paused = true)]
async fn an_effect_is_held_against_rules_about_its_task() {
    const ONLY_KNOWN: &str = r#"package interlock

deny contains {"rule": "only_known", "text": "it is not on the list"} if {
	input.workflow.name == "w"
	not input.action.operation in {"forbidden", "drop"}
}
"#;
    let api = Api::new().await;
    let session = api.register_naming_effects().await;
    let taken = |handler: &'static str| {
        let (api, session) = (&api, &session);
        async move {
            let step = json!([{ "key": "a", "kind": "task", "handler": handler, "effect": "unsafe" }]);
            let plan = json!({ "workflow": "w", "version": 1, "steps": step });
            let run = api.post("/runs", json!({ "plan": plan })).await.text("run_id");
            (run, api.poll(session).await)
        }
    };
    let asks = |assignment: Value, template: &'static str| {
        let (api, session) = (&api, &session);
        async move {
            let mut intent = crate::set_up::intent(&assignment, 0, "unsafe");
            intent["template"] = json!(template);
            api.post(&format!("/agent/{session}/effects"), intent).await.ok()["answer"].clone()
        }
    };
    let ((run, charges), (_, programs)) = (taken("forbidden").await, taken("forbidden").await);
    put_in_force(&api, BY_NAME).await;
    assert_eq!(asks(charges, "card:charge").await, "denied", "the task is forbidden by now");
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["reason"], "policy_denied");
    assert_eq!(asks(programs, "exec:forbidden").await, "denied");
    put_in_force(&api, ONLY_KNOWN).await;
    let ((_, charges), (_, programs)) = (taken("drop").await, taken("drop").await);
    assert_eq!(asks(charges, "card:charge").await, "denied", "the effect has a name of its own");
    assert_eq!(asks(programs, "exec:drop").await, "perform", "a program is its task");
    api.end().await;
}

/// Denies a step to a worker without a sandbox.
const BY_WORKER: &str = r#"package interlock

deny contains {"rule": "by_worker", "text": "it has no sandbox"} if {
	input.worker != null
	not "dev-flex" in input.worker.profiles
}
"#;

/// A worker that has proven the sandbox of `dev-flex`.
async fn register_sandboxed(api: &Api) -> String {
    let capabilities = json!(["effects", "command:dev-flex"]);
    let hello = json!({ "worker": "boxed", "queues": ["default"], "slots": 10, "capabilities": capabilities });
    api.post("/agent/register", hello).await.text("session")
}

async fn polled(api: &Api, session: &str) -> Value {
    let asked = json!({ "session": session, "max": 1, "wait_ms": 100 });
    api.post("/agent/poll", asked).await.ok()["assignments"].clone()
}

/// A worker that is about to act is a fact for the rules. What they deny because of it is denied to this worker alone, once, and
/// another one may have the step.
#[tokio::test(start_paused = true)]
async fn a_rule_about_the_worker_refuses_the_worker_and_not_the_run() {
    let api = Api::new().await;
    put_in_force(&api, BY_WORKER).await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register_naming_effects().await;
    for _ in 0..3 {
        assert_eq!(polled(&api, &session).await, json!([]), "it is not handed out to it");
    }
    let waiting = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!(waiting["state"], "pending", "{waiting}");
    let decided = api.get(&format!("/runs/{run}/decisions")).await.ok();
    let denied: Vec<_> =
        decided["decisions"].as_array().unwrap().iter().filter(|decision| decision["verdict"] == "deny").collect();
    assert_eq!(denied.len(), 1, "it is recorded once: {decided}");
    assert_eq!(denied[0]["input"]["worker"]["environments"], json!(["*"]), "{decided}");
    let events = api.get(&format!("/runs/{run}/events")).await.ok().to_string();
    assert!(events.contains(r#""worker":"test""#), "the worker is named: {events}");
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let cause = &why["because"][0];
    assert_eq!((&cause["cause"], &cause["workers"]), (&json!("unclaimed"), &json!(0)), "{why}");
    assert_eq!(cause["refused"][0]["worker"], "test", "{why}");
    assert!(cause["refused"][0]["why"].as_str().unwrap().contains("by_worker: it has no sandbox"), "{why}");
    // Another worker has what the rule asks for.
    let boxed = register_sandboxed(&api).await;
    let assignment = api.poll(&boxed).await;
    api.report(&boxed, &assignment, crate::harness::completed(json!(1))).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");
    api.end().await;
}

/// The same right before an effect, where a connector is judged. From then on its step is judged when a worker comes for it, so that no
/// second worker begins in vain.
#[tokio::test(start_paused = true)]
async fn a_rule_about_the_worker_refuses_the_worker_at_the_effect_too() {
    let api = Api::new().await;
    put_in_force(&api, BY_WORKER).await;
    let with = json!({ "connection": "slack", "channel": "C1", "text": "hi" });
    let post = json!({ "key": "say", "kind": "connector", "operation": "slack.post", "with": with });
    let run = api.start(json!([post])).await;
    let register = |worker: &'static str, more: &'static str| {
        let api = &api;
        async move {
            let capabilities = json!(["effects", "connector", more]);
            let hello = json!({ "worker": worker, "queues": ["default"], "slots": 10, "capabilities": capabilities });
            api.post("/agent/register", hello).await.text("session")
        }
    };
    let asks = |session: String, assignment: Value| {
        let api = &api;
        async move {
            let mut intent = crate::set_up::intent(&assignment, 0, "unsafe");
            intent["template"] = json!("slack:post:C1");
            intent["request"] = assignment["input"].clone();
            api.post(&format!("/agent/{session}/effects"), intent).await.ok()["answer"].clone()
        }
    };
    let plain = register("plain", "x").await;
    let assignment = api.poll(&plain).await;
    assert_eq!(asks(plain.clone(), assignment).await, "denied");
    let waiting = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&waiting["state"], &waiting["reason"]), (&json!("running"), &Value::Null), "{waiting}");
    let other = register("other", "y").await;
    for session in [&plain, &other] {
        assert_eq!(polled(&api, session).await, json!([]), "it is not handed out to it");
    }
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let refused = why["because"][0]["refused"].as_array().unwrap();
    let refused: Vec<_> = refused.iter().map(|refused| &refused["worker"]).collect();
    assert_eq!(refused, ["plain", "other"], "{why}");
    let boxed = register("boxed", "command:dev-flex").await;
    let assignment = api.poll(&boxed).await;
    assert_eq!(assignment["attempt"], 2, "the one that was refused at the claim began nothing: {assignment}");
    assert_eq!(asks(boxed, assignment).await, "perform");
    api.end().await;
}

const BY_ENROLMENT: &str = r#"package interlock

deny contains {"rule": "enrolled_only", "text": "it has no certificate"} if {
	input.workflow.name == "shares"
	input.worker != null
	not input.worker.enrolled
}
"#;

/// A run that one worker takes as a whole is not offered to a worker that the rules deny its first step.
#[tokio::test(start_paused = true)]
async fn a_rule_about_the_worker_keeps_runs_from_it_that_one_worker_takes_as_a_whole() {
    let api = Api::new().await;
    put_in_force(&api, BY_ENROLMENT).await;
    let run = crate::assignments::start(&api).await;
    let session = crate::assignments::keeper(&api, "plain").await;
    let asked = json!({ "session": session, "max": 1, "wait_ms": 100 });
    for _ in 0..2 {
        let polled = api.post("/agent/poll", asked.clone()).await.ok();
        assert_eq!((&polled["assignments"], &polled["offers"]), (&json!([]), &Value::Null), "{polled}");
    }
    let events = api.get(&format!("/runs/{run}/events")).await.ok().to_string();
    assert!(!events.contains("session.offered") && events.contains(r#""worker":"plain""#), "{events}");
    let decided = api.get(&format!("/runs/{run}/decisions")).await.ok();
    let denied = decided["decisions"].as_array().unwrap().iter().filter(|decision| decision["verdict"] == "deny");
    assert_eq!(denied.count(), 1, "it is refused once: {decided}");
    api.end().await;
}

/// A run notes only so many workers that the rules keep from it. The others are not waited for either, so that the search ends.
#[tokio::test(start_paused = true)]
async fn workers_beyond_those_that_a_run_notes_as_refused_are_not_waited_for() {
    let api = Api::new().await;
    put_in_force(&api, BY_ENROLMENT).await;
    let run = crate::assignments::start(&api).await;
    let mut sessions = Vec::new();
    for number in 0..REFUSED_WORKERS_MAX + 2 {
        let session = crate::assignments::keeper(&api, &format!("plain-{number}")).await;
        let asked = json!({ "session": session, "max": 1, "wait_ms": 100 });
        assert_eq!(api.post("/agent/poll", asked).await.ok()["assignments"], json!([]));
        sessions.push(session);
    }
    let mut shown = Value::Null;
    for _ in 0..60 {
        for session in &sessions {
            api.post("/agent/heartbeat", json!({ "session": session, "held": [] })).await.ok();
        }
        let asked = json!({ "session": sessions[0], "max": 1, "wait_ms": 4_000 });
        assert_eq!(api.post("/agent/poll", asked).await.ok()["assignments"], json!([]));
        shown = api.get(&format!("/runs/{run}")).await.ok();
        if shown["reason"] == "failed_assignment" {
            break;
        }
    }
    assert_eq!(shown["reason"], "failed_assignment", "{shown}");
    api.end().await;
}

/// Neither a start nor a report hands a step to a worker that the rules have not seen: both would be ways around them.
#[tokio::test(start_paused = true)]
async fn a_rule_about_the_worker_holds_where_steps_are_handed_on() {
    let api = Api::new().await;
    put_in_force(&api, BY_WORKER).await;
    let session = api.register_naming_effects().await;
    let waits = polled(&api, &session);
    let starts = api.start(json!([task("a"), task("b")]));
    let (given, run) = tokio::join!(waits, starts);
    assert_eq!(given, json!([]), "the start has not claimed its first step for it");
    let boxed = register_sandboxed(&api).await;
    let assignment = api.poll(&boxed).await;
    assert_eq!(assignment["step"], "a");
    let mut report = crate::harness::attempt(&assignment);
    report["outcome"] = crate::harness::completed(json!(1));
    report["claim_next"] = json!(true);
    api.post(&format!("/agent/{boxed}/complete-step"), report).await.ok();
    assert_eq!(polled(&api, &session).await, json!([]));
    assert_eq!(api.poll(&boxed).await["step"], "b", "it comes for the next one as for any other");
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "running");
    api.end().await;
}

/// Under other rules a worker is judged anew, and what no worker may do ends the run as it always has.
#[tokio::test(start_paused = true)]
async fn a_refused_worker_is_judged_anew_under_other_rules() {
    let api = Api::new().await;
    put_in_force(&api, BY_WORKER).await;
    let run = api.start(json!([task("a")])).await;
    let session = api.register_naming_effects().await;
    assert_eq!(polled(&api, &session).await, json!([]));
    put_in_force(&api, BY_NAME).await;
    assert_eq!(api.get(&format!("/runs/{run}/why")).await.ok()["because"][0]["refused"], Value::Null);
    let assignment = api.poll(&session).await;
    assert_eq!(assignment["step"], "a", "these rules say nothing of workers");
    // The name is forbidden to all: that the worker is no good either makes no difference.
    let forbidden = json!([{ "key": "a", "kind": "task", "handler": "forbidden", "effect": "idempotent" }]);
    put_in_force(&api, BY_WORKER).await;
    let run = api.start(forbidden).await;
    put_in_force(&api, &format!("{BY_WORKER}\n{}", BY_NAME.replace("package interlock", ""))).await;
    assert_eq!(polled(&api, &session).await, json!([]));
    let ended = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("policy_denied")), "{ended}");
    api.end().await;
}

/// Where a step reaches far, people are asked before every step, profile or not.
#[tokio::test(start_paused = true)]
async fn a_plan_without_a_profile_is_held_to_what_it_declares() {
    let api = Api::new().await;
    let far = json!({ "key": "b", "kind": "task", "handler": "b", "blast_radius": "high" });
    let run = api.start(json!([task("a"), far])).await;
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "waiting_approval", "every step asks");
    let read = json!([{ "key": "r", "kind": "task", "handler": "r", "effect": "read", "blast_radius": "high" }]);
    let run = api.start(read).await;
    let state = api.get(&format!("/runs/{run}")).await.ok()["state"].clone();
    assert_eq!(state, "waiting_approval", "what it says of its effect makes nothing of its reach");
    // A connector knows what it does, whatever a plan says.
    let post = json!({ "key": "p", "kind": "connector", "operation": "slack.post", "effect": "read" });
    let rules = json!({ "approval": { "mode": "per_step" } });
    let plan = json!({ "workflow": "w", "version": 1, "steps": [post], "rules": rules });
    let run = api.post("/runs", json!({ "plan": plan })).await.text("run_id");
    assert_eq!(card(&api, &run).await["action"]["effect"], "unsafe");
    api.end().await;
}

/// A plan says beforehand what the policy will say: the tenant's own, for a file and for a workflow.
#[tokio::test(start_paused = true)]
async fn a_plan_predicts_what_will_be_decided() {
    let api = Api::new().await;
    put_in_force(&api, BY_NAME).await;
    let source = "name: w\nprofile: prod-critical\nsteps:\n  - { id: a, task: forbidden, rollback: { task: undo } }\n  \
                  - { id: b, task: b, destructive: true, rollback: { task: undo } }\n  - { id: c, task: c, effect: read }\n";
    let of_file = api.post("/workflows/plan", json!({ "source": source, "inputs": {} })).await.ok();
    let policy = |walk: &Value, step: usize| walk["steps"][step]["policy"].clone();
    assert_eq!(policy(&of_file, 0)["verdict"], "deny");
    assert!(policy(&of_file, 0)["reasons"].to_string().contains("by_name: it is called so"), "{of_file}");
    let asked = policy(&of_file, 1);
    assert_eq!(
        (&asked["verdict"], &asked["quorum"], &asked["tier"]),
        (&json!("needs_approval"), &json!(2), &json!("high"))
    );
    assert_eq!((&asked["excluded"], &asked["self_approval"]), (&json!(["starter", "author"]), &Value::Null), "{asked}");
    assert_eq!(policy(&of_file, 2), Value::Null, "nothing is judged that only reads");
    api.post("/workflows", json!({ "source": source })).await.ok();
    let stored = api.post("/workflows/plan", json!({ "workflow": "w", "inputs": {} })).await.ok();
    assert_eq!((policy(&stored, 0), policy(&stored, 1)), (policy(&of_file, 0), asked));
    // And so it is decided.
    let run = api.post("/runs", json!({ "workflow": "w" })).await.text("run_id");
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["reason"], "policy_denied");
    api.end().await;
}

/// What is declared is judged: two people, neither of them the author or the starter.
#[tokio::test(start_paused = true)]
async fn a_destructive_step_needs_two_keys() {
    let api = Api::new().await;
    let wipe = "name: wipe\nsteps: [{ id: wipe, task: wipe, effect: unsafe, destructive: true }]\n";
    let author = Person::new(&api, "wendy", json!(["admin", "approver"]), json!([])).await;
    author.post("/workflows", json!({ "source": wipe })).await.ok();
    let [ada, bob] = [
        Person::new(&api, "ada", json!(["approver"]), json!([])).await,
        Person::new(&api, "bob", json!(["approver"]), json!([])).await,
    ];
    let run = api.post("/runs", json!({ "workflow": "wipe" })).await.text("run_id");
    let open = card(&api, &run).await;
    assert_eq!((&open["quorum"], &open["state"]), (&json!(2), &json!("requested")), "{open}");
    assert!(open["message"].as_str().unwrap().contains("two_keys"), "{open}");
    let decided = api.get(&format!("/runs/{run}/decisions")).await.ok()["decisions"][0].clone();
    assert_eq!((&decided["verdict"], &decided["tier"]), (&json!("needs_approval"), &json!("high")));
    assert_eq!(decided["bundle"], api.get("/policy").await.ok()["active_hash"]);

    let path = format!("/approvals/{}/vote", open["approval"].as_str().unwrap());
    let yes = json!({ "approve": true, "digest": open["digest"] });
    assert_eq!(author.post(&path, yes.clone()).await.problem(), (409, "APPROVAL_VOTE_REFUSED"));
    ada.post(&path, yes.clone()).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "waiting_approval");
    let session = api.register().await;
    bob.post(&path, yes).await.ok();
    // The worker names no effects: its claim is the intent, and what people agreed to is leave for it.
    let assignment = api.poll(&session).await;
    api.report(&session, &assignment, crate::harness::completed(json!(1))).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");
    // The run has ended, and still says who approved it and by which rule.
    let why = api.get(&format!("/runs/{run}/why")).await.ok();
    let decided = &why["because"][0]["approvals"][0];
    assert_eq!((&decided["state"], &decided["step"]), (&json!("approved"), &json!("wipe")), "{why}");
    assert_eq!(decided["approved_by"], json!(["ada", "bob"]), "{why}");
    assert!(decided["asked"].as_str().unwrap().contains("two_keys"), "{why}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_mode_is_asked_by_the_policy() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let source =
        "name: two\napproval: { mode: per_step }\nsteps: [{ id: a, task: a }, { id: look, task: b, effect: read }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "two" })).await.text("run_id");
    assert!(card(&api, &run).await["message"].as_str().unwrap().contains("mode_per_step"));
    ada.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await.ok();
    let session = api.register().await;
    for _ in 0..2 {
        let assignment = api.poll(&session).await;
        api.report(&session, &assignment, crate::harness::completed(json!(1))).await.ok();
    }
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded", "what only reads is not asked about");
    api.end().await;
}

/// Before a phase people see all of it that is known, and agree to exactly that. What depends on an earlier step's output is
/// asked about when it is reached.
#[tokio::test(start_paused = true)]
async fn a_phase_is_agreed_to_as_a_list() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let source = "name: phased\ninputs: { host: { type: string, required: true } }\napproval: { mode: per_phase }\nsteps:\n  \
                  - { id: a, task: stop, with: { host: \"${{ inputs.host }}\" }, phase: main }\n  \
                  - { id: b, task: wipe, with: { host: \"${{ inputs.host }}\" }, phase: main }\n  \
                  - { id: c, task: report, with: { of: \"${{ steps.a.output }}\" }, phase: main }\n  \
                  - { id: d, task: check, phase: postchecks }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let planned = json!({ "workflow": "phased", "inputs": { "host": "db-1" } });
    let foretold = api.post("/workflows/plan", planned).await.ok()["steps"].clone();
    let verdicts: Vec<_> = (0..4).map(|step| foretold[step]["policy"]["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["needs_approval", "allow", "needs_approval", "needs_approval"], "as it comes below");
    assert!(foretold[1]["notes"].to_string().contains("along with step `a`"), "{foretold}");
    let run = api.post("/runs", json!({ "workflow": "phased", "inputs": { "host": "db-1" } })).await.text("run_id");
    let session = api.register().await;
    let agree = async || {
        let open = card(&api, &run).await;
        ada.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await.ok();
        open["action"].clone()
    };
    let finish = async || {
        let assignment = api.poll(&session).await;
        api.report(&session, &assignment, crate::harness::completed(json!(1))).await.ok();
        assignment["step"].clone()
    };
    let first = agree().await;
    assert_eq!((&first["step"], &first["input"]), (&json!("a"), &json!({ "host": "db-1" })), "{first}");
    let then: Vec<_> = first["then"].as_array().unwrap().iter().map(|later| later["step"].clone()).collect();
    assert_eq!(then, [json!("b")], "c is not known yet, and d is of another phase: {first}");
    assert_eq!(first["then"][0]["input"], json!({ "host": "db-1" }));
    assert_eq!((finish().await, finish().await), (json!("a"), json!("b")), "b was agreed to with a");
    let third = agree().await;
    assert_eq!((&third["step"], &third["input"]), (&json!("c"), &json!({ "of": 1 })), "{third}");
    assert_eq!(finish().await, json!("c"));
    assert_eq!(agree().await["step"], "d");
    assert_eq!(finish().await, json!("d"));
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "succeeded");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_tenants_own_rules_count_from_then_on_and_can_be_taken_back() {
    let api = Api::new().await;
    let steps = || json!({ "plan": plan(json!([{ "key": "a", "kind": "task", "handler": "forbidden" }])) });
    let before = api.post("/runs", steps()).await.text("run_id");
    let shipped = api.get("/policy").await.ok();
    assert_eq!((shipped.get("active"), &shipped["revision"]), (None, &json!(0)));
    let version = put_in_force(&api, BY_NAME).await;
    assert_ne!(api.get("/policy").await.ok()["active_hash"], shipped["active_hash"]);
    let run = api.post("/runs", steps()).await.text("run_id");
    let ended = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("policy_denied")), "{ended}");
    assert_eq!(api.get(&format!("/runs/{before}")).await.ok()["state"], "pending", "it was judged before");
    // Another tenant has its own.
    let other = api.with_key(&api.other_key);
    assert_eq!(other.get("/policy").await.ok()["active_hash"], shipped["active_hash"]);
    assert_eq!(other.get(&format!("/policy/files?version={version}")).await.problem(), (404, "POLICY_NOT_FOUND"));

    // The same files again are the same version.
    let again = api.post("/policy/versions", json!({ "files": shipped_and(&api, BY_NAME).await })).await.ok();
    assert_eq!(again["version"], version);
    let stale = api.send("PATCH", "/api/v1/policy", json!({ "active": 0, "revision": 1 })).await;
    assert_eq!(stale.problem(), (409, "POLICY_CHANGED"));
    let back = api.send("PATCH", "/api/v1/policy", json!({ "active": 0 })).await.ok();
    assert_eq!((back.get("active"), &back["active_hash"]), (None, &shipped["active_hash"]));
    let run = api.post("/runs", steps()).await.text("run_id");
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "pending");
    api.end().await;
}

/// Rules that come after people have agreed, and before a worker has come, are not too late.
#[tokio::test(start_paused = true)]
async fn what_people_have_agreed_to_is_judged_once_more_when_it_is_taken() {
    let api = Api::new().await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let source = "name: w\napproval: { mode: per_step }\nsteps: [{ id: a, task: forbidden, effect: idempotent }]\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    let run = api.post("/runs", json!({ "workflow": "w" })).await.text("run_id");
    ada.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await.ok();
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "pending", "a worker has to come");
    put_in_force(&api, BY_NAME).await;
    let session = api.register().await;
    let polled = api.post("/agent/poll", json!({ "session": session, "max": 1, "wait_ms": 100 })).await.ok();
    assert_eq!(polled["assignments"], json!([]), "{polled}");
    let ended = api.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("policy_denied")), "{ended}");
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn rules_that_are_not_sound_are_refused_by_file_and_line() {
    let api = Api::new().await;
    for (text, says) in [
        ("package interlock\ndeny contains", "own.rego"),
        ("package interlock\ndeny contains {\"rule\": \"x\", \"text\": \"y\"} if input.step.nothing\n", "nothing"),
    ] {
        let refused = api.post("/policy/versions", json!({ "files": shipped_and(&api, text).await })).await;
        assert_eq!(refused.problem(), (422, "POLICY_INVALID"), "{}", refused.body);
        assert!(refused.text("detail").contains(says), "{}", refused.body);
    }
    // A test of its own that fails keeps it out.
    let mut files = shipped_and(&api, BY_NAME).await;
    files["own_test.rego"] = json!("package own_test\ntest_never if 1 == 2\n");
    let refused = api.post("/policy/versions", json!({ "files": files })).await;
    assert_eq!(refused.problem(), (422, "POLICY_INVALID"));
    assert!(refused.text("detail").contains("test_never"), "{}", refused.body);
    let none = api.send("PATCH", "/api/v1/policy", json!({ "active": 7 })).await;
    assert_eq!(none.problem(), (404, "POLICY_NOT_FOUND"));
    assert_eq!(api.send("PATCH", "/api/v1/policy", json!({})).await.problem(), (400, "REQUEST_INVALID"));
    api.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_tests_of_a_policy_are_told_one_by_one() {
    let api = Api::new().await;
    let shipped = api.post("/policy/tests", json!({})).await.ok();
    assert_eq!(shipped["failed"], 0);
    assert_eq!(shipped["passed"].as_u64(), Some(shipped["tests"].as_array().unwrap().len() as u64));
    assert!(shipped["passed"].as_u64().unwrap() > 20, "{shipped}");
    let mut files = api.get("/policy/files").await.ok()["files"].clone();
    files["own_test.rego"] = json!("package own_test\n\ntest_right if 1 + 1 == 2\n\ntest_wrong if 1 + 1 == 3\n");
    let own = api.post("/policy/tests", json!({ "files": files })).await.ok();
    assert_eq!(own["failed"], 1);
    let wrong = own["tests"].as_array().unwrap().iter().find(|test| test["outcome"] != "passed").unwrap();
    let expected = json!({ "name": "own_test.test_wrong", "file": "own_test.rego", "line": 5, "outcome": "failed" });
    assert_eq!(*wrong, expected);
    files["own_test.rego"] = json!("package own_test\n\ntest_ if");
    assert_eq!(api.post("/policy/tests", json!({ "files": files })).await.problem(), (422, "POLICY_INVALID"));
    let no_decision = json!({ "own_test.rego": "package own_test\n\ntest_right if 1 + 1 == 2\n" });
    for path in ["/policy/tests", "/policy/versions"] {
        assert_eq!(api.post(path, json!({ "files": no_decision })).await.problem(), (422, "POLICY_INVALID"), "{path}");
    }
    assert_eq!(
        api.post("/policy/tests", json!({ "files": {}, "version": 1 })).await.problem(),
        (400, "REQUEST_INVALID")
    );
    assert_eq!(api.post("/policy/tests", json!({ "version": 7 })).await.problem(), (404, "POLICY_NOT_FOUND"));
    assert_eq!(api.get("/policy/versions").await.ok()["versions"], json!([]), "nothing is kept");
    api.end().await;
}

/// Under the rules that decided, a replay finds nothing else; under others it says what would change. Rules that are tried
/// beside them are asked, and decide nothing.
#[tokio::test(start_paused = true)]
async fn other_rules_are_held_against_what_was_decided() {
    let api = Api::new().await;
    let version = put_in_force(&api, BY_NAME).await;
    api.send("PATCH", "/api/v1/policy", json!({ "active": 0, "shadow": version })).await.ok();
    let run = api
        .post("/runs", json!({ "plan": plan(json!([{ "key": "a", "kind": "task", "handler": "forbidden" }])) }))
        .await
        .text("run_id");
    assert_eq!(api.get(&format!("/runs/{run}")).await.ok()["state"], "pending", "the shadow decides nothing");
    let decided = api.get(&format!("/runs/{run}/decisions")).await.ok()["decisions"][0].clone();
    assert_eq!((&decided["verdict"], &decided["shadow"]["answer"]["verdict"]), (&json!("allow"), &json!("deny")));

    let same = api.post("/policy/replay", json!({ "days": 1 })).await.ok();
    assert_eq!((&same["decisions"], &same["same"], &same["more"]), (&json!(1), &json!(1), &json!(false)), "{same}");
    let other = api.post("/policy/replay", json!({ "days": 1, "version": version })).await.ok();
    assert_eq!((&other["newly_denied"], &other["differences"][0]["run_id"]), (&json!(1), &json!(run)), "{other}");
    let shipped = api.post("/policy/replay", json!({ "days": 1, "version": 0 })).await.ok();
    assert_eq!(shipped["same"], 1, "the policy that comes with the server has no version: {shipped}");

    let asked = json!({ "input": decided["input"], "version": version });
    let answer = api.post("/policy/eval", asked).await.ok();
    assert_eq!(answer["verdict"], "deny");
    assert!(answer["explained"].as_str().unwrap().contains("by_name"), "{answer}");
    assert_eq!(api.post("/policy/eval", json!({ "input": { "run": 1 } })).await.problem(), (422, "INPUT_INVALID"));
    let eve = Person::new(&api, "eve", json!(["viewer"]), json!([])).await;
    let refused = eve.post("/policy/eval", json!({ "input": decided["input"] })).await;
    assert_eq!(refused.problem(), (403, "PERMISSION_DENIED"), "whoever only looks does not have the server compute");
    assert_eq!(api.post("/policy/replay", json!({ "days": 0 })).await.problem(), (422, "INPUT_INVALID"));
    api.end().await;
}

/// No decision is kept of what is allowed in every run: a replay asks other rules about those steps as the workflows have them.
#[tokio::test(start_paused = true)]
async fn a_replay_tells_of_steps_that_are_allowed_in_every_run() {
    let api = Api::new().await;
    let source = "name: w\nsteps:\n  - { id: a, task: forbidden }\n  - { id: b, task: ask-first }\n  - { id: c, task: c }\n  \
                  - { id: look, task: forbidden, effect: read }\n";
    api.post("/workflows", json!({ "source": source })).await.ok();
    api.post("/runs", json!({ "workflow": "w" })).await.ok();
    let files = shipped_and(&api, BY_NAME).await;
    let version = api.post("/policy/versions", json!({ "files": files })).await.ok()["version"].clone();
    let same = api.post("/policy/replay", json!({ "days": 1 })).await.ok();
    assert_eq!(same["decisions"], 0, "what is allowed in every run is not kept: {same}");
    let standing = &same["standing"];
    assert_eq!((&standing["steps"], &standing["same"]), (&json!(3), &json!(3)), "{same}");
    let other = api.post("/policy/replay", json!({ "days": 1, "version": version })).await.ok();
    let standing = &other["standing"];
    let counts = ["same", "newly_denied", "newly_gated", "newly_undecided"].map(|count| standing[count].clone());
    assert_eq!(counts, [1, 1, 1, 0].map(|count| json!(count)), "{other}");
    let reasons = ["by_name: it is called so"];
    let denied = json!({ "workflow": "w", "version": 1, "step": "a", "after": "deny", "reasons": reasons });
    assert_eq!(standing["differences"][0], denied, "{other}");
    api.end().await;
}

/// Rules look at what is done, however long it is, and people are told where to find all of it.
#[tokio::test(start_paused = true)]
async fn a_long_input_is_judged_whole_and_shown_by_where_it_is() {
    const BY_FIELD: &str = r#"package interlock

deny contains {"rule": "by_field", "text": "not this one"} if input.fields.database == "orders"

ask contains {"rule": "by_field", "text": "this one"} if input.fields.database == "customers"
"#;
    let api = Api::new().await;
    put_in_force(&api, BY_FIELD).await;
    let ada = Person::new(&api, "ada", json!(["approver"]), json!([])).await;
    let mut runs = Vec::new();
    for database in ["orders", "customers"] {
        let inputs = json!({ "database": database, "padding": "x".repeat(100_000) });
        let steps = json!([{ "key": "gate", "kind": "approval" }, task("act")]);
        let run = api.post("/runs", json!({ "plan": plan(steps), "inputs": inputs })).await.text("run_id");
        ada.post(&format!("/runs/{run}/approve"), yes(&api, &run).await).await.ok();
        runs.push(run);
    }
    assert_eq!(api.get(&format!("/runs/{}", runs[0])).await.ok()["reason"], "policy_denied");
    let card = card(&api, &runs[1]).await;
    let shown = &card["action"]["input"]["$payload"];
    assert!(shown["url"].as_str().is_some_and(|url| url.contains("/payloads/")), "{card}");
    assert!(!card.to_string().contains("$interlock.payload"), "the store's own mark stays inside: {card}");
    api.end().await;
}
