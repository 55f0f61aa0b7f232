//! Schedules, deliveries and messages: what each guard lets through, and what it does not.

use interlock_core::ids::{InboundId, OutboundId, OutboxId, RunId, ScheduleId};
use interlock_core::json::{Hash, Json};
use interlock_core::limits::IDEMPOTENCY_COMPLETED_TTL;
use interlock_core::state::IdempotencyState;
use interlock_core::time::{Millis, Timestamp};
use interlock_core::trigger::schedule::{DstPolicy, Overlap, SlotState};
use interlock_core::trigger::{EndpointState, Origin, Source};
use interlock_store::{
    AddInbound, AddOutbound, AddSchedule, AttemptRow, BeginDelivery, ChangeSchedule, Changed, DeliveryBegun,
    DeliveryRef, DeliveryRow, DeliveryTaken, DisableOutbound, Fingerprint, FinishDelivery, InboundRow, LogAttempt,
    NewMessage, OutboundRow, PublishMessages, RemoveInbound, RemoveOutbound, RemoveSchedule, RetakeDelivery,
    ScheduleRow, ScheduleSpec, Secrets, SignedBody, SlotRow, Store, Stored, TakeMessage, Write,
};

use crate::harness::{NOW, TestDatabase, World, fresh};

crate::on_every_store!(
    a_schedule_changes_only_from_what_was_read,
    a_delivery_is_processed_once_and_taken_over_when_left,
    what_was_about_the_same_is_recent_for_a_while,
    a_signed_body_is_one_delivery_whatever_its_id,
    a_failed_delivery_is_tried_anew_by_a_repeat_under_another_id,
    an_id_that_is_not_signed_keeps_no_other_body_away,
    what_was_said_in_other_words_is_the_first_ones_too,
    messages_are_published_once_and_taken_by_one,
);

const LOCK: Millis = Millis::from_mins(5);

async fn ask<W: Write>(store: &Store, write: W) -> W::Answer {
    store.write(write).await.unwrap()
}

fn secrets() -> Secrets {
    Secrets { current: "sealed".into(), previous: Some(("older".into(), NOW)) }
}

fn schedule(world: &World, name: &str) -> ScheduleRow {
    ScheduleRow {
        tenant: world.tenant,
        id: ScheduleId(fresh()),
        spec: ScheduleSpec {
            name: name.into(),
            workflow: "nightly".into(),
            origin: Origin::Api,
            cron: "0 3 * * *".into(),
            timezone: "Europe/Berlin".into(),
            dst: DstPolicy::Once,
            overlap: Overlap::Queue,
            catch_up: Millis::from_hours(1),
            jitter: Millis(7),
            inputs: Json::trusted("{}"),
            workspace: "main".into(),
            paused: false,
        },
        note: None,
        done_at: NOW,
        next_at: Some(NOW + Millis(10)),
        last_run: None,
        revision: 1,
        created_at: NOW,
        created_by: Some("ada".into()),
        updated_at: NOW,
    }
}

async fn a_schedule_changes_only_from_what_was_read(database: &TestDatabase) {
    let world = database.world().await;
    let store = &world.store;
    let row = schedule(&world, "nightly");
    assert_eq!(ask(store, AddSchedule(row.clone())).await, Stored::Stored);
    assert_eq!(ask(store, AddSchedule(schedule(&world, "nightly"))).await, Stored::Duplicate);
    assert_eq!(store.schedule_named(world.tenant, "nightly").await.unwrap(), Some(row.clone()));
    assert_eq!(store.due_schedules(NOW, 10).await.unwrap(), []);
    assert_eq!(store.due_schedules(NOW + Millis(10), 10).await.unwrap(), std::slice::from_ref(&row));
    assert_eq!(store.next_schedule(NOW).await.unwrap(), row.next_at);

    let slot = |at: u64, state| SlotRow {
        slot_at: NOW + Millis(at),
        state,
        run: Some(RunId(fresh())),
        note: Some("why".into()),
        at: NOW,
    };
    let slots = vec![slot(1, SlotState::Started), slot(2, SlotState::Queued)];
    let spec = ScheduleSpec { paused: true, ..row.spec.clone() };
    let changed = ScheduleRow { spec, next_at: None, note: Some("n".into()), ..row.clone() };
    let op = ChangeSchedule { row: changed.clone(), slots: slots.clone() };
    assert_eq!(ask(store, op.clone()).await, Changed::Done);
    assert_eq!(ask(store, op).await, Changed::Gone, "the revision has moved on");
    let kept = store.schedule(world.tenant, row.id).await.unwrap().unwrap();
    assert_eq!(kept, ScheduleRow { revision: 2, ..changed });
    assert_eq!(store.slots(world.tenant, row.id, 10).await.unwrap(), [slots[1].clone(), slots[0].clone()]);
    assert_eq!(store.queued_slots(world.tenant, row.id, 10).await.unwrap(), [slots[1].clone()]);

    let remove = RemoveSchedule { tenant: world.tenant, schedule: row.id };
    assert_eq!(ask(store, remove).await, Changed::Done);
    assert_eq!(ask(store, remove).await, Changed::Gone);
    assert_eq!(store.slots(world.tenant, row.id, 10).await.unwrap(), []);
    world.store.close().await;
}

async fn inbound(world: &World) -> InboundRow {
    let row = InboundRow {
        secret_by: None,
        tenant: world.tenant,
        id: InboundId(fresh()),
        name: "hooks".into(),
        source: Source::GitHub,
        header: None,
        secondary: true,
        paused: false,
        secrets: secrets(),
        created_at: NOW,
        created_by: None,
    };
    assert_eq!(ask(&world.store, AddInbound(row.clone())).await, Stored::Stored);
    row
}

fn delivery(row: &InboundRow, key: &str) -> DeliveryRow {
    DeliveryRow {
        at: DeliveryRef { tenant: row.tenant, endpoint: row.id, key: key.into() },
        event: "push".into(),
        payload: Json::trusted("{}"),
        received_at: NOW,
        retry_at: Some(NOW + LOCK),
    }
}

fn begin(delivery: &DeliveryRow, now: Timestamp) -> BeginDelivery {
    BeginDelivery {
        delivery: delivery.clone(),
        source: Source::GitHub,
        request_hash: Hash::of(b"body"),
        signed_body: None,
        now,
        lock_until: now + LOCK,
    }
}

/// A delivery of a sender who signs the body alone.
fn begin_signed(row: &InboundRow, key: &str, body: &str, now: Timestamp) -> BeginDelivery {
    let hash = Hash::of(body.as_bytes());
    let signed_body = Some(SignedBody {
        body: Fingerprint { hash, since: now - IDEMPOTENCY_COMPLETED_TTL },
        about: None,
        key: format!("body:{body}"),
        has_id: false,
        instead_of: None,
    });
    let delivery = DeliveryRow { received_at: now, ..delivery(row, key) };
    BeginDelivery { request_hash: hash, signed_body, ..begin(&delivery, now) }
}

/// Asks to begin a delivery: which one it is, and what becomes of it.
async fn taken(store: &Store, begin: BeginDelivery) -> (String, DeliveryBegun) {
    let DeliveryTaken { key, begun, .. } = ask(store, begin).await;
    (key, begun)
}

fn of(key: &str, begun: DeliveryBegun) -> (String, DeliveryBegun) {
    (key.to_owned(), begun)
}

fn finish(at: &DeliveryRef, attempt: u32, state: IdempotencyState, now: Timestamp) -> FinishDelivery {
    let response = Some(Json::trusted("{\"runs\":[]}"));
    let (at, expires_at) = (at.clone(), now + Millis::from_hours(1));
    FinishDelivery { at, attempt, state, response, error: Some("why".into()), now, expires_at, retry_at: None }
}

async fn a_delivery_is_processed_once_and_taken_over_when_left(database: &TestDatabase) {
    let world = database.world().await;
    let store = &world.store;
    let endpoint = inbound(&world).await;
    assert_eq!(store.inbound_endpoint(endpoint.id).await.unwrap(), Some(endpoint.clone()));
    let row = delivery(&endpoint, "github:1");
    let at = row.at.clone();
    let begun = async |begin: BeginDelivery| ask(store, begin).await.begun;
    assert_eq!(begun(begin(&row, NOW)).await, DeliveryBegun::Begun(1));
    assert_eq!(begun(begin(&row, NOW)).await, DeliveryBegun::InFlight);
    let mut other = begin(&row, NOW);
    other.request_hash = Hash::of(b"another body");
    assert_eq!(begun(other).await, DeliveryBegun::Mismatch);

    // Its server is gone; the lock runs out.
    assert_eq!(store.due_deliveries(NOW, 10).await.unwrap(), []);
    let later = NOW + LOCK;
    assert_eq!(store.due_deliveries(later, 10).await.unwrap(), std::slice::from_ref(&row));
    let retake = |now: Timestamp| RetakeDelivery { at: at.clone(), now, lock_until: now + LOCK };
    assert_eq!(ask(store, retake(later)).await, DeliveryBegun::Begun(2));
    assert_eq!(ask(store, retake(later)).await, DeliveryBegun::InFlight);

    let finish = |attempt, state, now| finish(&at, attempt, state, now);
    let gone = ask(store, finish(1, IdempotencyState::Completed, later)).await;
    assert_eq!(gone, Changed::Gone, "the first attempt was taken over");
    assert_eq!(ask(store, finish(2, IdempotencyState::Failed, later)).await, Changed::Done);
    assert_eq!(ask(store, retake(later)).await, DeliveryBegun::Begun(3));
    assert_eq!(ask(store, finish(3, IdempotencyState::Failed, later)).await, Changed::Done);
    assert_eq!(begun(begin(&row, later)).await, DeliveryBegun::Spent);
    let forgotten = later + Millis::from_hours(1);
    assert_eq!(begun(begin(&row, forgotten)).await, DeliveryBegun::Begun(1), "an old failure is forgotten");
    assert_eq!(ask(store, finish(1, IdempotencyState::Completed, forgotten)).await, Changed::Done);
    assert_eq!(begun(begin(&row, forgotten)).await, DeliveryBegun::Finished);
    assert_eq!(store.due_deliveries(forgotten + LOCK, 10).await.unwrap(), []);
    let listed = store.deliveries(world.tenant, endpoint.id, forgotten, 10).await.unwrap();
    assert_eq!((listed.len(), listed[0].state, listed[0].attempts), (1, IdempotencyState::Completed, 1));

    let remove = RemoveInbound { tenant: world.tenant, endpoint: endpoint.id };
    assert_eq!(ask(store, remove).await, Changed::Done);
    assert_eq!(store.inbound_endpoint(endpoint.id).await.unwrap(), None);
    world.store.close().await;
}

async fn what_was_about_the_same_is_recent_for_a_while(database: &TestDatabase) {
    let world = database.world().await;
    let endpoint = inbound(&world).await;
    let about = Hash::of(b"pull request 7");
    let begin = |key: &str, now: Timestamp| {
        // Each says it in other words.
        let mut op = begin_signed(&endpoint, key, key, now);
        let signed = op.signed_body.as_mut().unwrap();
        signed.about = Some(Fingerprint { hash: about, since: now - Millis::from_secs(5) });
        op
    };
    let (store, first) = (&world.store, of("github:1", DeliveryBegun::InFlight));
    assert_eq!(taken(store, begin("github:1", NOW)).await, of("github:1", DeliveryBegun::Begun(1)));
    assert_eq!(taken(store, begin("github:2", NOW + Millis(4_999))).await, first);
    assert_eq!(taken(store, begin("github:3", NOW + Millis(5_000))).await, first);
    let fourth = taken(store, begin("github:4", NOW + Millis(5_001))).await;
    assert_eq!(fourth, of("github:4", DeliveryBegun::Begun(1)));
    world.store.close().await;
}

async fn what_was_said_in_other_words_is_the_first_ones_too(database: &TestDatabase) {
    let world = database.world().await;
    let endpoint = inbound(&world).await;
    let about = Hash::of(b"pull request 7");
    let begin = |key: &str, body: &str, now: Timestamp| {
        let mut op = begin_signed(&endpoint, key, body, now);
        let signed = op.signed_body.as_mut().unwrap();
        signed.about = Some(Fingerprint { hash: about, since: now - Millis::from_secs(5) });
        op
    };
    let (store, first) = (&world.store, of("github:1", DeliveryBegun::InFlight));
    assert_eq!(taken(store, begin("github:1", "a", NOW)).await, of("github:1", DeliveryBegun::Begun(1)));
    assert_eq!(taken(store, begin("github:2", "b", NOW)).await, first);
    let later = NOW + Millis::from_mins(1);
    assert_eq!(
        taken(store, begin("github:2", "b", later)).await,
        first,
        "it is sent once more when the seconds are over"
    );
    assert_eq!(taken(store, begin("github:2", "c", later)).await, of("github:2", DeliveryBegun::Begun(1)));
    // A repeat of the first does not make the seconds begin anew.
    assert_eq!(taken(store, begin("github:1", "a", later + Millis::from_secs(4))).await, first);
    let another = taken(store, begin("github:3", "d", later + Millis::from_secs(6))).await;
    assert_eq!(another, of("github:3", DeliveryBegun::Begun(1)));
    world.store.close().await;
}

async fn a_signed_body_is_one_delivery_whatever_its_id(database: &TestDatabase) {
    let world = database.world().await;
    let endpoint = inbound(&world).await;
    let store = &world.store;
    let send =
        async |key: &str, body: &str, now: Timestamp| taken(store, begin_signed(&endpoint, key, body, now)).await;
    let first = of("webhook:1", DeliveryBegun::InFlight);
    assert_eq!(send("webhook:1", "a", NOW).await, of("webhook:1", DeliveryBegun::Begun(1)));
    assert_eq!(send("webhook:1", "a", NOW).await, first, "the same again");
    assert_eq!(send("webhook:2", "a", NOW).await, first, "its body under another id");
    let listed = store.deliveries(world.tenant, endpoint.id, NOW + Millis(1), 10).await.unwrap();
    assert_eq!(listed.len(), 1, "a repeat leaves nothing behind under its id");
    assert_eq!(send("webhook:2", "b", NOW).await, of("webhook:2", DeliveryBegun::Begun(1)), "the id was not taken");

    // The day is counted from the first one on.
    let nearly = NOW + IDEMPOTENCY_COMPLETED_TTL;
    let at = DeliveryRef { key: "webhook:1".into(), ..delivery(&endpoint, "").at };
    ask(store, finish(&at, 1, IdempotencyState::Completed, NOW)).await;
    assert_eq!(send("webhook:1", "a", nearly).await, of("webhook:1", DeliveryBegun::Finished));
    assert_eq!(send("webhook:3", "a", nearly).await, of("webhook:1", DeliveryBegun::Finished));
    assert_eq!(send("webhook:3", "a", nearly + Millis(1)).await, of("webhook:3", DeliveryBegun::Begun(1)));
    world.store.close().await;
}

async fn a_failed_delivery_is_tried_anew_by_a_repeat_under_another_id(database: &TestDatabase) {
    let world = database.world().await;
    let endpoint = inbound(&world).await;
    let store = &world.store;
    let send = async |key: &str| taken(store, begin_signed(&endpoint, key, "a", NOW)).await;
    let at = DeliveryRef { key: "webhook:1".into(), ..delivery(&endpoint, "").at };
    let fail = async |attempt| {
        assert_eq!(ask(store, finish(&at, attempt, IdempotencyState::Failed, NOW)).await, Changed::Done);
    };
    assert_eq!(send("webhook:1").await, of("webhook:1", DeliveryBegun::Begun(1)));
    for attempt in 1..3 {
        fail(attempt).await;
        assert_eq!(send("webhook:2").await, of("webhook:1", DeliveryBegun::Begun(attempt + 1)));
        assert_eq!(send("webhook:3").await, of("webhook:1", DeliveryBegun::InFlight), "one at a time");
    }
    let due = store.due_deliveries(NOW + LOCK, 10).await.unwrap();
    assert_eq!(
        due.iter().map(|row| row.at.key.as_str()).collect::<Vec<_>>(),
        ["webhook:1"],
        "another server may have it"
    );
    fail(3).await;
    assert_eq!(send("webhook:1").await, of("webhook:1", DeliveryBegun::Spent));
    assert_eq!(send("webhook:2").await, of("webhook:1", DeliveryBegun::Begun(1)), "its sender tries anew");

    // One that was dealt with and has started nothing gives way to the next, and that to nobody.
    ask(store, finish(&at, 1, IdempotencyState::Completed, NOW)).await;
    let instead = async |key: &str| {
        let mut op = begin_signed(&endpoint, key, "a", NOW);
        op.signed_body.as_mut().unwrap().instead_of = Some("webhook:1".into());
        taken(store, op).await
    };
    assert_eq!(instead("webhook:2").await, of("webhook:2", DeliveryBegun::Begun(1)));
    assert_eq!(instead("webhook:3").await, of("webhook:2", DeliveryBegun::InFlight));
    world.store.close().await;
}

async fn an_id_that_is_not_signed_keeps_no_other_body_away(database: &TestDatabase) {
    let world = database.world().await;
    let endpoint = inbound(&world).await;
    let store = &world.store;
    let send = async |key: &str, body: &str| taken(store, begin_signed(&endpoint, key, body, NOW)).await;
    assert_eq!(send("github:2", "captured").await, of("github:2", DeliveryBegun::Begun(1)));
    assert_eq!(send("github:2", "genuine").await, of("body:genuine", DeliveryBegun::Begun(1)));
    assert_eq!(send("github:2", "genuine").await, of("body:genuine", DeliveryBegun::InFlight));
    assert_eq!(send("github:9", "genuine").await, of("body:genuine", DeliveryBegun::InFlight));
    // An id inside the body is signed: its sender has used it twice.
    let mut own = begin_signed(&endpoint, "github:2", "third", NOW);
    own.signed_body.as_mut().unwrap().has_id = true;
    assert_eq!(taken(store, own).await, of("github:2", DeliveryBegun::Mismatch));
    assert_eq!(
        send("github:3", "third").await,
        of("github:3", DeliveryBegun::Begun(1)),
        "what was refused is not known"
    );
    // What a delivery says stays as it came first, whatever stands beside the body of a repeat.
    let mut again = begin_signed(&endpoint, "github:3", "third", NOW + LOCK);
    again.delivery.event = "another".into();
    assert_eq!(taken(store, again).await, of("github:3", DeliveryBegun::Begun(2)));
    let at = DeliveryRef { key: "github:3".into(), ..delivery(&endpoint, "").at };
    let stored = store.delivery(&at).await.unwrap().unwrap();
    assert_eq!((stored.event.as_str(), stored.retry_at), ("push", Some(NOW + LOCK + LOCK)));
    world.store.close().await;
}

async fn messages_are_published_once_and_taken_by_one(database: &TestDatabase) {
    let world = database.world().await;
    let store = &world.store;
    let row = OutboundRow {
        tenant: world.tenant,
        id: OutboundId(fresh()),
        name: Some("desk".into()),
        url: "https://example.org/".into(),
        description: None,
        events: Some(vec!["session.*".into()]),
        workflows: None,
        secrets: secrets(),
        state: EndpointState::Enabled,
        note: None,
        fed_to: 7,
        fed_at: NOW,
        failing_since: None,
        created_at: NOW,
        created_by: None,
    };
    let (tenant, endpoint) = (world.tenant, row.id);
    assert_eq!(ask(store, AddOutbound(row.clone())).await, Stored::Stored);
    assert_eq!(store.fed_endpoints().await.unwrap(), std::slice::from_ref(&row));
    assert_eq!(store.outbound_endpoint_named(tenant, "desk").await.unwrap().as_ref(), Some(&row));
    let namesake = OutboundRow { id: OutboundId(fresh()), ..row.clone() };
    assert_eq!(ask(store, AddOutbound(namesake)).await, Stored::Duplicate, "a name stands for one endpoint");
    let (run, first, second) = (RunId(fresh()), OutboxId(fresh()), OutboxId(fresh()));
    // Places count, not ids.
    let (first, second) = (first.max(second), first.min(second));
    let message = |id, place| NewMessage { id, run, payload: Json::trusted("{}"), place };
    let messages = vec![message(first, 1), message(second, 2)];
    let publish = PublishMessages { tenant, endpoint, from: 7, to: 9, messages, at: NOW };
    assert_eq!(ask(store, publish.clone()).await, Changed::Done);
    assert_eq!(ask(store, publish).await, Changed::Gone, "another server has published these");
    let due = store.due_outbox(NOW, 10).await.unwrap();
    assert_eq!(due.iter().map(|message| message.id).collect::<Vec<_>>(), [first], "one at a time, in order");

    let until = NOW + Millis::from_mins(1);
    let take = TakeMessage { tenant, id: first, attempts: 0, now: NOW, until };
    assert_eq!(ask(store, take).await, Changed::Done);
    assert_eq!(ask(store, take).await, Changed::Gone);
    let attempt = AttemptRow {
        attempt: 1,
        at: NOW,
        duration: Millis(3),
        status: Some(500),
        error: Some("no".into()),
        excerpt: Some("oops".into()),
    };
    let log = LogAttempt { tenant, endpoint, message: first, attempt: attempt.clone() };
    assert_eq!(ask(store, log).await, Changed::Done);
    let tries = async |endpoint, from: OutboxId, to| store.attempts(tenant, endpoint, from..=to).await.unwrap();
    assert_eq!(tries(endpoint, first, first).await, [(first, attempt.clone())]);
    assert!(tries(OutboundId(fresh()), second, first).await.is_empty(), "another endpoint's are not this one's");
    let failing = store.outbound_endpoint(tenant, endpoint).await.unwrap().unwrap();
    assert_eq!((failing.failing_since, failing.fed_to), (Some(NOW), 9));
    let well = AttemptRow { attempt: 2, status: Some(200), error: None, ..attempt.clone() };
    ask(store, LogAttempt { tenant, endpoint, message: first, attempt: well.clone() }).await;
    let other = AttemptRow { attempt: 1, ..well.clone() };
    ask(store, LogAttempt { tenant, endpoint, message: second, attempt: other.clone() }).await;
    let page = [(second, other), (first, attempt.clone()), (first, well)];
    assert_eq!(tries(endpoint, second, first).await, page, "a page of messages at once, each with all its tries");
    assert_eq!(tries(endpoint, first, first).await, page[1..]);
    assert_eq!(store.outbound_endpoint(tenant, endpoint).await.unwrap().unwrap().failing_since, None);

    let listed = store.messages(tenant, endpoint, None, 10).await.unwrap();
    assert_eq!(listed.iter().map(|message| message.id).collect::<Vec<_>>(), [first, second]);
    let between = store.messages_between(tenant, endpoint, NOW..NOW + Millis(1), 10).await.unwrap();
    assert_eq!(between.len(), 2);
    let disable = DisableOutbound { tenant, endpoint, note: "too long".into() };
    assert_eq!(ask(store, disable).await, Changed::Done);
    assert_eq!(store.fed_endpoints().await.unwrap(), []);
    assert_eq!(ask(store, RemoveOutbound { tenant, endpoint, at: NOW }).await, Changed::Done);
    assert_eq!(store.due_outbox(until, 10).await.unwrap(), [], "its messages end with it");
    world.store.close().await;
}
