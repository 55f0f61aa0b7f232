//! Every way to decide, by every role, in every situation. What is expected of a cell is worked out here, from the rules that
//! people are told, and from nothing of the server's: who may decide is one short list, and whether a vote counts follows
//! from it.
//!
//! The command line decides through [`Way::Decision`]; bulk jobs have no verb that decides (`bulk_matrix`).

use std::time::Duration;

use interlock_core::tenant::identity::Role;
use serde_json::{Value, json};

use crate::approvals::{Person, card};
use crate::harness::{Api, ApiResponse, failed, plan, task};
use crate::slack::{APPROVE, SlackMessage, Slacked};

/// By which route a person decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Run,
    Execution,
    Vote,
    Decision,
    Slack,
}

impl Way {
    const OVER_HTTP: [Self; 4] = [Self::Run, Self::Execution, Self::Vote, Self::Decision];
}

/// How the voter is related to what is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    /// Nothing speaks against them but, perhaps, their role.
    Stranger,
    /// They have started the run.
    Starter,
    /// A key of theirs has started the run.
    Requester,
    /// They have approved already, and another person is missing.
    Again,
    /// They belong to another tenant.
    WrongTenant,
    Expired,
    /// Another person has approved, and it is through.
    Used,
    /// What they have looked at is not what would be done now.
    Changed(Change),
}

/// How an action differs from what was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Not at all: it was only asked for anew, which is another question.
    Nothing,
    Value,
    Type,
    FieldAdded,
    FieldRemoved,
    FieldRenamed,
}

impl Change {
    const ALL: [Self; 6] =
        [Self::Nothing, Self::Value, Self::Type, Self::FieldAdded, Self::FieldRemoved, Self::FieldRenamed];

    /// What is asked of the step instead of `{"target": "db-1", "count": 1}`.
    fn input(self) -> Value {
        match self {
            Self::Nothing => json!({ "target": "db-1", "count": 1 }),
            Self::Value => json!({ "target": "db-1", "count": 2 }),
            Self::Type => json!({ "target": "db-1", "count": "1" }),
            Self::FieldAdded => json!({ "target": "db-1", "count": 1, "force": true }),
            Self::FieldRemoved => json!({ "target": "db-1" }),
            Self::FieldRenamed => json!({ "targets": "db-1", "count": 1 }),
        }
    }
}

fn situations() -> Vec<Situation> {
    let mut all = vec![
        Situation::Stranger,
        Situation::Starter,
        Situation::Requester,
        Situation::Again,
        Situation::WrongTenant,
        Situation::Expired,
        Situation::Used,
    ];
    all.extend(Change::ALL.map(Situation::Changed));
    all
}

/// What becomes of a vote.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// It is one more vote.
    Counts,
    /// It is answered like the first one, and is no second vote.
    IsKnown,
    Refused(u16, String),
}

/// Long enough to look at a card.
const EXPIRES_AFTER_MS: u64 = 300;
/// The same for one that has to get into Slack first.
const SLACK_EXPIRES_AFTER_MS: u64 = 3_000;

const MAY_DECIDE: [Role; 2] = [Role::Approver, Role::Admin];

/// The rules. Who may not decide at all is told that, whatever it is about; others learn nothing of another tenant's; then it
/// has to be there to be decided, and be what was looked at, each time anew; then it must not be their own.
fn expected(way: Way, role: Role, situation: Situation) -> Verdict {
    let refused = |status, code: &str| Verdict::Refused(status, code.to_owned());
    if !MAY_DECIDE.contains(&role) {
        return refused(403, "PERMISSION_DENIED");
    }
    match situation {
        Situation::Stranger => Verdict::Counts,
        Situation::Again => Verdict::IsKnown,
        Situation::Starter | Situation::Requester => refused(409, "APPROVAL_VOTE_REFUSED"),
        Situation::WrongTenant if [Way::Run, Way::Execution].contains(&way) => refused(404, "RUN_NOT_FOUND"),
        Situation::WrongTenant => refused(404, "APPROVAL_NOT_FOUND"),
        // The run has ended with it. Who names no approval is told that there is none.
        Situation::Expired | Situation::Used if way == Way::Run => refused(409, "APPROVAL_NOT_OPEN"),
        Situation::Expired | Situation::Used => refused(409, "RUN_TERMINAL_STATE"),
        Situation::Changed(_) => refused(409, "APPROVAL_CHANGED"),
    }
}

/// The people of every role, and the server where they decide.
struct Voters<'a> {
    api: &'a Api,
    /// By role, in the order of [`Role::ALL`].
    people: Vec<Person<'a>>,
    strangers: Vec<Person<'a>>,
    /// Keys that belong to them, to start runs with.
    keys: Vec<String>,
    /// A person with the roles approver and operator, for situations that need a second person.
    other: Person<'a>,
}

fn name(role: Role) -> String {
    format!("{role}-person")
}

fn user(role: Role) -> String {
    format!("U0{}", role.as_str().to_uppercase())
}

impl<'a> Voters<'a> {
    async fn new(at: &'a Slacked, elsewhere: &'a Api) -> Self {
        let api = &at.api;
        let (mut people, mut strangers, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        for role in Role::ALL {
            people.push(Person::new(api, &name(*role), json!([role]), json!([])).await);
            at.link_long_ago(&name(*role), &user(*role)).await;
            strangers.push(Person::in_tenant(elsewhere, "two", &name(*role), json!([role])).await);
            let key = json!({ "name": format!("of {role}"), "roles": ["operator"], "owner": name(*role) });
            keys.push(api.post("/keys", key).await.text("text"));
        }
        let other = Person::new(api, "other", json!(["approver", "operator"]), json!([])).await;
        Self { api, people, strangers, keys, other }
    }

    /// A run that waits for an approval, in this situation for people of that role; none where there can be none.
    async fn waiting(&self, role: usize, situation: Situation) -> Option<String> {
        self.waiting_for(role, situation, EXPIRES_AFTER_MS).await
    }

    /// The same, with the time after which it expires where that is the situation.
    async fn waiting_for(&self, role: usize, situation: Situation, expires_after_ms: u64) -> Option<String> {
        let quorum = if situation == Situation::Again { 2 } else { 1 };
        let mut gate = json!({ "key": "gate", "kind": "approval", "quorum": quorum, "message": "go?" });
        if situation == Situation::Expired {
            gate["expires_after"] = json!(expires_after_ms);
        }
        let body = json!({ "plan": plan(json!([gate])) });
        Some(match situation {
            Situation::Starter if ![Role::Operator, Role::Admin].contains(&Role::ALL[role]) => return None,
            Situation::Starter => self.people[role].post("/runs", body).await.text("run_id"),
            Situation::Requester => self.api.with_key(&self.keys[role]).post("/runs", body).await.text("run_id"),
            Situation::Changed(_) => self.asked_again().await,
            _ => self.api.post("/runs", body).await.text("run_id"),
        })
    }

    /// A run whose guarded step is to be tried again with an input, for which people are asked.
    async fn asked_again(&self) -> String {
        let gate = json!({ "key": "gate", "kind": "approval", "message": "go?", "on_reject": "pause" });
        let mut act = task("act");
        act["on_failure"] = json!("pause");
        let run = self.api.post("/runs", json!({ "plan": plan(json!([gate, act])) })).await.text("run_id");
        let word = json!({ "approve": true, "digest": card(self.api, &run).await["digest"] });
        self.other.post(&format!("/runs/{run}/approve"), word).await.ok();
        let session = self.api.register().await;
        let assignment = self.api.poll(&session).await;
        assert_eq!(assignment["run"], json!(run));
        self.api.report(&session, &assignment, failed("NO")).await.ok();
        self.api.post("/agent/unregister", json!({ "session": session })).await;
        self.ask_with(&run, json!({ "target": "db-1", "count": 1 })).await;
        run
    }

    /// A run that waits in this situation, with its card in Slack and as the API shows it.
    async fn seen_in_slack(
        &self,
        at: &Slacked,
        role: usize,
        situation: Situation,
    ) -> Option<(String, SlackMessage, Value)> {
        let run = self.waiting_for(role, situation, SLACK_EXPIRES_AFTER_MS).await?;
        let looked_at = card(self.api, &run).await;
        let approval = looked_at["approval"].as_str().expect("it is open").to_owned();
        let seen = at.noted(at.slack.card_for(&approval, APPROVE).await).await;
        Some((run, seen, looked_at))
    }

    async fn ask_with(&self, run: &str, input: Value) {
        let asked = self.api.post(&format!("/runs/{run}/retry"), json!({ "input": input })).await;
        assert!(asked.status.is_success(), "{}", asked.body);
    }

    /// What happens after the voter has looked at the card, and before they decide on it.
    async fn meanwhile(&self, role: usize, situation: Situation, run: &str, looked_at: &Value) {
        match situation {
            Situation::Again if MAY_DECIDE.contains(&Role::ALL[role]) => {
                decide(&self.people[role], Way::Vote, run, looked_at).await.ok();
            }
            Situation::Used => {
                decide(&self.other, Way::Vote, run, looked_at).await.ok();
            }
            Situation::Expired => {
                while self.api.get(&format!("/runs/{run}")).await.text("state") == "waiting_approval" {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
            Situation::Changed(change) => {
                let path = format!("/approvals/{}/vote", looked_at["approval"].as_str().unwrap());
                let no = json!({ "approve": false, "digest": looked_at["digest"], "notes": "not like this" });
                self.other.post(&path, no).await.ok();
                self.ask_with(run, change.input()).await;
            }
            _ => {}
        }
    }

    /// Votes of a person on all approvals of a run.
    async fn votes(&self, run: &str, person: &str) -> usize {
        let shown = self.api.get(&format!("/approvals?run={run}")).await.ok();
        let rows = shown["approvals"].as_array().unwrap();
        rows.iter().flat_map(|row| row["votes"].as_array().unwrap()).filter(|vote| vote["person"] == person).count()
    }

    async fn over_http(&self, way: Way, role: usize, situation: Situation) -> Option<Verdict> {
        // On a slow machine it may have expired before the test could look.
        let (run, looked_at) = loop {
            let run = self.waiting(role, situation).await?;
            let looked_at = card(self.api, &run).await;
            if !looked_at.is_null() {
                break (run, looked_at);
            }
        };
        self.meanwhile(role, situation, &run, &looked_at).await;
        let who = if situation == Situation::WrongTenant { &self.strangers[role] } else { &self.people[role] };
        let before = self.votes(&run, &name(Role::ALL[role])).await;
        // The voter names what they have looked at; where it has changed, under the approval that is open now.
        let mut means = looked_at.clone();
        if matches!(situation, Situation::Changed(_)) {
            means["approval"] = card(self.api, &run).await["approval"].clone();
            means["position"] = card(self.api, &run).await["position"].clone();
        }
        let answer = decide(who, way, &run, &means).await;
        let counted = self.votes(&run, &name(Role::ALL[role])).await - before;
        Some(match (answer.status.as_u16(), counted) {
            (200, 1) => Verdict::Counts,
            (200, 0) => Verdict::IsKnown,
            (_, 0) => {
                let (status, code) = answer.problem();
                Verdict::Refused(status, code.to_owned())
            }
            (status, counted) => panic!("{way:?} answers {status} and counts {counted} votes: {}", answer.body),
        })
    }
}

/// A yes to what was looked at.
async fn decide(who: &Person<'_>, way: Way, run: &str, looked_at: &Value) -> ApiResponse {
    let (approval, digest) = (looked_at["approval"].as_str().unwrap(), &looked_at["digest"]);
    let step = looked_at["position"].as_u64().unwrap() + 1;
    match way {
        Way::Run => who.post(&format!("/runs/{run}/approve"), json!({ "approve": true, "digest": digest })).await,
        Way::Execution => {
            let body = json!({ "step_number": step, "approved": true, "digest": digest });
            who.post(&format!("/executions/{run}/approve"), body).await
        }
        Way::Vote => {
            who.post(&format!("/approvals/{approval}/vote"), json!({ "approve": true, "digest": digest })).await
        }
        Way::Decision => {
            let body = json!({ "decision": "approve", "digest": digest });
            who.post(&format!("/approvals/{approval}/decision"), body).await
        }
        Way::Slack => unreachable!("a press is not a request of a person"),
    }
}

async fn no_way_to_decide_has_a_hole(at: Slacked) {
    let elsewhere = at.api.with_key(&at.api.other_key);
    let scene = Voters::new(&at, &elsewhere).await;
    let (mut cells, mut holes) = (0, Vec::new());
    for way in Way::OVER_HTTP {
        for (index, role) in Role::ALL.iter().enumerate() {
            for situation in situations() {
                // How it has changed makes no difference to those who may not decide.
                if matches!(situation, Situation::Changed(change) if change != Change::Value)
                    && !MAY_DECIDE.contains(role)
                {
                    continue;
                }
                let Some(found) = scene.over_http(way, index, situation).await else { continue };
                let wanted = expected(way, *role, situation);
                cells += 1;
                if found != wanted {
                    holes.push(format!("{way:?} / {role} / {situation:?}: {found:?}, not {wanted:?}"));
                }
            }
        }
    }
    assert!(holes.is_empty(), "{} of {cells} cells:\n{}", holes.len(), holes.join("\n"));
    assert_eq!(cells, 4 * (5 * 8 - 3 + 2 * 5), "nothing is left out but starters who may not start");
    drop(scene);
    at.end().await;
}

#[tokio::test]
async fn no_way_to_decide_over_http_has_a_hole() {
    no_way_to_decide_has_a_hole(Slacked::new().await).await;
}

#[tokio::test]
async fn no_way_to_decide_over_http_has_a_hole_on_postgres() {
    no_way_to_decide_has_a_hole(Slacked::on_postgres("who_decides").await).await;
}

/// The digest that a button says.
fn digest_in(value: &str) -> &str {
    value.split_once('.').expect("an approval and a digest").1
}

/// The card of a run.
async fn card_of(at: &Slacked, run: &str) -> SlackMessage {
    at.noted(at.slack.card_showing(run).await).await
}

/// Slack answers a press at once, and tells the user who pressed in a whisper why it does not count.
async fn no_press_has_a_hole(at: Slacked) {
    let elsewhere = at.api.with_key(&at.api.other_key);
    let scene = Voters::new(&at, &elsewhere).await;
    let mut cells = 0;
    for situation in situations().into_iter().filter(|situation| *situation != Situation::WrongTenant) {
        for (index, role) in Role::ALL.iter().enumerate() {
            let matters = matches!(situation, Situation::Stranger) || MAY_DECIDE.contains(role);
            let asked = if matters { scene.seen_in_slack(&at, index, situation).await } else { None };
            let Some((run, seen, looked_at)) = asked else { continue };
            cells += 1;
            scene.meanwhile(index, situation, &run, &looked_at).await;
            let (before, whispers) = (scene.votes(&run, &name(*role)).await, at.slack.held().whispered.len());
            if matches!(situation, Situation::Changed(_)) {
                // The card that is open now, with what the user has seen on the one before it.
                let open = card(&at.api, &run).await["approval"].as_str().unwrap().to_owned();
                let current = at.noted(at.slack.card_for(&open, APPROVE).await).await;
                let value = seen.button(APPROVE).unwrap();
                at.pressed(&user(*role), APPROVE, &seen).await;
                at.slack.whisper(whispers).await;
                at.pressed_with(&user(*role), APPROVE, &current, &format!("{open}.{}", digest_in(&value))).await;
                at.slack.whisper(whispers + 1).await;
            } else {
                at.pressed(&user(*role), APPROVE, &seen).await;
            }
            let wanted = expected(Way::Slack, *role, situation);
            let place = format!("{role} / {situation:?}");
            match wanted {
                Verdict::Counts => {
                    at.slack.card_showing(&format!("Approved by {}", name(*role))).await;
                    assert_eq!(scene.votes(&run, &name(*role)).await - before, 1, "{place}");
                }
                Verdict::Refused(..) => {
                    at.slack.whisper(whispers).await;
                    assert_eq!(scene.votes(&run, &name(*role)).await, before, "{place}");
                }
                Verdict::IsKnown => {
                    let whispered = at.slack.held().whispered.len();
                    assert_eq!((scene.votes(&run, &name(*role)).await, whispered), (before, whispers), "{place}");
                }
            }
        }
    }
    // Strangers of every role; in the other situations the two roles that may decide, but an approver starts no run.
    assert_eq!(cells, Role::ALL.len() + 2 * (situations().len() - 2) - 1);
    // A Slack user who is linked in another tenant only is not linked here.
    let run = scene.waiting(0, Situation::Stranger).await.unwrap();
    let (seen, whispers) = (card_of(&at, &run).await, at.slack.held().whispered.len());
    at.link_elsewhere("approver-person", "U0ELSEWHERE").await;
    at.pressed("U0ELSEWHERE", APPROVE, &seen).await;
    at.slack.whisper(whispers).await;
    assert_eq!(at.api.get(&format!("/runs/{run}")).await.text("state"), "waiting_approval");
    drop(scene);
    at.end().await;
}

#[tokio::test]
async fn no_press_in_slack_has_a_hole() {
    no_press_has_a_hole(Slacked::new().await).await;
}

#[tokio::test]
async fn no_press_in_slack_has_a_hole_on_postgres() {
    no_press_has_a_hole(Slacked::on_postgres("who_presses").await).await;
}

/// A key decides nothing, whatever its roles, on any way.
#[tokio::test]
async fn no_key_decides() {
    let at = Slacked::new().await;
    let elsewhere = at.api.with_key(&at.api.other_key);
    let scene = Voters::new(&at, &elsewhere).await;
    let run = scene.waiting(0, Situation::Stranger).await.unwrap();
    let card = card(&at.api, &run).await;
    let approval = card["approval"].as_str().unwrap();
    for (path, body) in [
        (format!("/runs/{run}/approve"), json!({ "approve": true, "digest": card["digest"] })),
        (format!("/executions/{run}/approve"), json!({ "step_number": 1, "approved": true })),
        (format!("/approvals/{approval}/vote"), json!({ "approve": true, "digest": card["digest"] })),
        (format!("/approvals/{approval}/decision"), json!({ "decision": "approve", "digest": card["digest"] })),
    ] {
        assert_eq!(at.api.post(&path, body).await.problem(), (403, "PERSON_REQUIRED"), "{path}");
    }
    let bulk = json!({ "action": "approve", "filter": { "state": "waiting_approval" }, "expected_count": 1 });
    let refused = at.api.post("/bulk", bulk).await;
    assert!(refused.status.is_client_error(), "a bulk job approves nothing: {}", refused.body);
    assert_eq!(at.api.get(&format!("/runs/{run}")).await.text("state"), "waiting_approval");
    drop(scene);
    at.end().await;
}
