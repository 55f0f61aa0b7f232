//! Doubts that a lost worker left behind: the server asks the target what has become of a call, once no worker can be
//! sending it any more. What the target tells resolves the doubt; what it cannot tell is left to a person, and asked
//! about again, ever more seldom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_connectors::send::Operation;
use interlock_connectors::{CallFacts, Connector, Probed, bound, find};
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Json;
use interlock_core::machine::step::Resolution;
use interlock_core::plan::Work;
use interlock_core::run::Run;
use interlock_core::run::change::Context;
use interlock_core::run::receipt::Receipt;
use interlock_core::state::EffectClass;
use interlock_core::time::{Millis, Timestamp};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::Engine;
use crate::commands::control::ResolveRequest;
use crate::error::EngineError;

/// Doubts that are remembered; the scan finds the rest later.
const DOUBTS_MAX: usize = 10_000;
/// How long a target may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pauses between questions; the last one is repeated.
const PAUSES: [Millis; 4] = [Millis::from_secs(30), Millis::from_mins(2), Millis::from_mins(10), Millis::from_hours(1)];
/// Questions about one doubt; then it is a person's.
const QUESTIONS_MAX: u32 = 24;

/// Questions under way at once, of all tenants and of one. Each waits for a target, which may take its time: a tenant
/// whose targets do not answer holds up no other tenant.
const UNDER_WAY_MAX: usize = 32;
const UNDER_WAY_PER_TENANT_MAX: usize = 4;

/// When runs in doubt are asked about next, and which are asked about right now.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    state: Mutex<DoubtState>,
    /// Places that questions have left.
    pub freed: Notify,
}

#[derive(Debug, Default)]
struct DoubtState {
    open: BTreeMap<(TenantId, RunId), Question>,
    under_way: BTreeSet<(TenantId, RunId)>,
    /// The tenant that was served last: the next round begins behind it.
    last: Option<TenantId>,
}

#[derive(Debug, Clone, Copy)]
struct Question {
    at: Timestamp,
    asked: u32,
}

impl DoubtState {
    /// The due questions of each tenant, the oldest first, and how many more may be asked for it.
    fn due(&self, now: Timestamp) -> BTreeMap<TenantId, Vec<(Timestamp, RunId)>> {
        let mut due: BTreeMap<TenantId, Vec<(Timestamp, RunId)>> = BTreeMap::new();
        for ((tenant, run), question) in &self.open {
            let is_due = question.at <= now && question.asked < QUESTIONS_MAX;
            if is_due && !self.under_way.contains(&(*tenant, *run)) {
                due.entry(*tenant).or_default().push((question.at, *run));
            }
        }
        for (tenant, runs) in &mut due {
            // Taken from the end.
            runs.sort_unstable_by(|one, other| other.cmp(one));
            let asked = self.under_way.iter().filter(|(other, _)| other == tenant).count();
            let places = UNDER_WAY_PER_TENANT_MAX.saturating_sub(asked);
            runs.drain(..runs.len().saturating_sub(places));
        }
        due
    }
}

impl Doubts {
    fn state(&self) -> MutexGuard<'_, DoubtState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn note(&self, tenant: TenantId, run: RunId, at: Timestamp) {
        let mut state = self.state();
        if state.open.len() < DOUBTS_MAX {
            state.open.entry((tenant, run)).or_insert(Question { at, asked: 0 });
        }
    }

    /// The questions to ask now, one of each tenant in turn, as many as there are places for. They count as under way until
    /// [`Doubts::ended`].
    pub fn begin(&self, now: Timestamp) -> Vec<(TenantId, RunId)> {
        let mut state = self.state();
        let mut due = state.due(now);
        let mut begun = Vec::new();
        while state.under_way.len() < UNDER_WAY_MAX {
            due.retain(|_, runs| !runs.is_empty());
            let behind = state.last.and_then(|last| due.keys().copied().find(|tenant| *tenant > last));
            let Some(tenant) = behind.or_else(|| due.keys().next().copied()) else { break };
            let Some((_, run)) = due.get_mut(&tenant).and_then(Vec::pop) else { break };
            state.last = Some(tenant);
            state.under_way.insert((tenant, run));
            begun.push((tenant, run));
        }
        begun
    }

    /// The question has its answer, or gets none.
    fn ended(&self, tenant: TenantId, run: RunId) {
        self.state().under_way.remove(&(tenant, run));
        self.freed.notify_one();
    }

    fn forget(&self, tenant: TenantId, run: RunId) {
        self.state().open.remove(&(tenant, run));
    }

    /// Asks again at that instant, or after the next pause.
    fn again(&self, (tenant, run): (TenantId, RunId), now: Timestamp, at: Option<Timestamp>) {
        let mut state = self.state();
        let Some(question) = state.open.get_mut(&(tenant, run)) else { return };
        if let Some(at) = at {
            question.at = at;
            return;
        }
        let pause = PAUSES.get(question.asked as usize).or(PAUSES.last()).copied().unwrap_or_default();
        *question = Question { at: now + pause, asked: question.asked + 1 };
    }
}

/// A question under way, which gives its place back however it ends.
struct UnderWay<'a> {
    doubts: &'a Doubts,
    tenant: TenantId,
    run: RunId,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.doubts.ended(self.tenant, self.run);
    }
}

/// A call whose outcome is not known, and how its target is asked.
struct LostCall {
    step: String,
    connector: &'static dyn Connector,
    request: Json,
    facts: CallFacts,
    /// Where the run acts, by which secrets are picked.
    environment: &'static str,
}

impl Engine {
    /// Begins the questions that are due, side by side and in the background.
    pub(crate) fn probe_due_doubts(&self) {
        for (tenant, run) in self.0.targets.doubts.begin(self.now()) {
            let engine = self.clone();
            self.0.tasks.spawn(async move {
                let _place = UnderWay { doubts: &engine.0.targets.doubts, tenant, run };
                let asked = engine.0.stopping.run_until_cancelled(Box::pin(engine.probe_doubt(tenant, run))).await;
                if let Some(asked) = asked
                    && engine.noted("doubts", asked).is_none()
                {
                    // The store did not answer: not at once again.
                    engine.0.targets.doubts.again((tenant, run), engine.now(), None);
                }
            });
        }
    }

    /// Asks about one run, and says what came of it.
    async fn probe_doubt(&self, tenant: TenantId, id: RunId) -> Result<(), EngineError> {
        let doubts = &self.0.targets.doubts;
        let run = self.0.store.load_runs(&[(tenant, id)]).await?.pop();
        let Some((run, known_at)) = run.and_then(|run| run.doubt_settles_at().map(|at| (run, at))) else {
            doubts.forget(tenant, id);
            return Ok(());
        };
        if self.now() < known_at {
            doubts.again((tenant, id), self.now(), Some(known_at));
            return Ok(());
        }
        let Some(call) = self.lost_call(&run).await? else {
            // No target can be asked: a person has to resolve it.
            doubts.forget(tenant, id);
            return Ok(());
        };
        let operation = call.connector.declaration().operation;
        let asked_at = self.now();
        let (resolution, output, said) = match self.probed(tenant, &call).await {
            Probed::Happened(output) => (Resolution::Happened, output, "that it has happened"),
            Probed::NoTrace => {
                let evidence = json!({ "probe": operation, "found": false, "asked_at": asked_at });
                (Resolution::DidNotHappen, evidence, "that it has not happened")
            }
            Probed::CannotTell(why) => {
                info!(run = %id, operation, %why, "the target cannot tell what has become of a call");
                doubts.again((tenant, id), self.now(), None);
                return Ok(());
            }
        };
        let output = Json::of(&output).map_err(|error| EngineError::Store(error.to_string()))?;
        let reason = format!("its worker was lost; asked by the server, the target of `{operation}` says {said}");
        let metadata = json!({ "probe": operation, "asked_at": asked_at, "says": said });
        let by = Context { metadata: Some(Json::trusted(metadata.to_string())), ..Context::SYSTEM };
        let request = ResolveRequest { step: call.step, resolution, output: Some(output), reason };
        let resolved = self.runs().resolve(tenant, id, request, by).await;
        match resolved {
            Ok(_) => {
                info!(run = %id, operation, said, "a doubt was resolved by its target");
                doubts.forget(tenant, id);
            }
            // It was resolved meanwhile, or it is too early after a restore.
            Err(error) => {
                warn!(run = %id, operation, %error, "what a target says was not taken");
                doubts.again((tenant, id), self.now(), None);
            }
        }
        Ok(())
    }

    /// What was sent and never answered, where its target can be asked about it.
    async fn lost_call(&self, run: &Run) -> Result<Option<LostCall>, EngineError> {
        let spec = run.spec(run.position);
        let Work::Connector { operation, .. } = &spec.work else { return Ok(None) };
        let connector = find(operation).filter(|connector| connector.declaration().probe.is_some());
        let (Some(connector), Some(open)) = (connector, run.current().open_intent) else { return Ok(None) };
        let receipts = self.0.store.receipts(run.tenant, run.id).await?;
        let receipts: Vec<Receipt> = receipts.into_iter().map(|row| row.receipt).collect();
        let Some(sent) = receipts.iter().find(|receipt| receipt.id == open && !receipt.is_of_claim()) else {
            return Ok(None);
        };
        // What was there before the call is an effect of its own, which reads.
        let is_before = |receipt: &&Receipt| {
            (receipt.position, receipt.iteration, receipt.effect) == (sent.position, sent.iteration, EffectClass::Read)
        };
        let before = receipts.iter().find(is_before).and_then(|receipt| receipt.response.as_ref());
        let facts = CallFacts {
            key: sent.key.clone(),
            before: before.and_then(|before| before.to_value().ok()),
            since: Some(run.header.created_at),
        };
        let environment = run.plan.environment();
        Ok(Some(LostCall { step: spec.key.clone(), connector, request: sent.request.clone(), facts, environment }))
    }

    async fn probed(&self, tenant: TenantId, call: &LostCall) -> Probed {
        let Some(caller) = self.0.targets.caller.get() else {
            return Probed::CannotTell("this server has no connections to other systems".to_owned());
        };
        let fields = call.request.to_exact_value().and_then(|request| bound(call.connector, request));
        let fields = match fields {
            Ok(fields) => fields,
            Err(why) => return Probed::CannotTell(why),
        };
        let secrets = caller.step_in(tenant, call.environment);
        let operation = Operation { connector: call.connector, fields: &fields, secrets: &secrets };
        let probed = timeout(PROBE_TIMEOUT, caller.probe(operation, &call.facts)).await;
        secrets.end().await;
        probed.unwrap_or_else(|_| Probed::CannotTell(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn tenant(number: u128) -> TenantId {
        TenantId(Uuid::from_u128(number))
    }

    fn run(number: u128) -> RunId {
        RunId(Uuid::from_u128(number))
    }

    #[test]
    fn tenants_are_asked_about_in_turn_and_none_takes_every_place() {
        let doubts = Doubts::default();
        for number in 0..100 {
            doubts.note(tenant(1), run(number), Timestamp(i64::try_from(number).unwrap()));
        }
        doubts.note(tenant(2), run(500), Timestamp(0));
        doubts.note(tenant(3), run(600), Timestamp(900));
        let begun = doubts.begin(Timestamp(500));
        let of = |number| begun.iter().filter(|(of, _)| *of == tenant(number)).count();
        assert_eq!((of(1), of(2), of(3)), (UNDER_WAY_PER_TENANT_MAX, 1, 0), "the third one is not due");
        assert_eq!(begun[1].0, tenant(2), "in turn");
        assert_eq!((begun[0].1, begun[2].1), (run(0), run(1)), "the oldest first");
        assert!(doubts.begin(Timestamp(500)).is_empty(), "the first tenant has no place left");
        doubts.forget(tenant(1), run(0));
        doubts.ended(tenant(1), run(0));
        assert_eq!(doubts.begin(Timestamp(500)), [(tenant(1), run(4))]);
        assert_eq!(doubts.begin(Timestamp(900)), [(tenant(3), run(600))], "others are not held up");
    }

    #[test]
    fn no_more_targets_are_asked_at_once_than_there_are_places() {
        let doubts = Doubts::default();
        for number in 0..100 {
            doubts.note(tenant(number), run(number), Timestamp(0));
        }
        let first = doubts.begin(Timestamp(1));
        assert_eq!(first.len(), UNDER_WAY_MAX);
        for (tenant, run) in &first {
            doubts.ended(*tenant, *run);
        }
        let second = doubts.begin(Timestamp(1));
        assert!(second.iter().all(|(tenant, _)| first.iter().all(|(served, _)| served != tenant)), "the next in turn");
    }
}
