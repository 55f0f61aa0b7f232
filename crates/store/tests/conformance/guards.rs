//! Every guard refuses what it should, and only that.

use interlock_core::decide::{Command, Queued};
use interlock_core::ids::{ApprovalId, RunId, SessionId, SignalId};
use interlock_core::json::{Hash, Json};
use interlock_core::limits;
use interlock_core::run::Run;
use interlock_core::run::approval::Vote;
use interlock_core::run::change::{IdempotencyRow, SideWrite};
use interlock_core::state::StepState;
use interlock_core::tenant::caps::Caps;
use interlock_core::tenant::identity::{Role, Roles};
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{
    AddUser, ChangeUser, Changed, NoteSignIn, PutTenant, Refusal, SignalIdentity, SignalRow, SignalStored,
    SignalSubject, SourceId, StoreSignal, Stored, SubjectSignaled, SubmitError, Tenant, UserRow,
};

use crate::harness::{NOW, StartOptions, TestDatabase, World, command, fresh, start_set, tasks, tenant_id};
use crate::people::user;

crate::on_every_store!(
    one_of_many_starts_with_the_same_key_wins,
    a_subject_is_held_by_one_run_at_a_time,
    a_subject_is_passed_on_in_order,
    the_queue_of_a_subject_has_a_limit,
    a_signal_instead_of_a_run_needs_a_holder,
    a_signal_needs_a_tenant,
    what_a_step_answered_before_a_restart_is_kept,
    a_signal_is_consumed_once,
    a_person_votes_once,
    a_vote_rests_on_accounts_as_they_were_read,
    a_refused_guard_writes_nothing,
    concurrency_is_capped,
    starts_are_rationed_by_the_minute,
    pending_runs_are_bounded,
    rows_that_the_database_refuses_harm_no_neighbour,
);

pub fn idempotency(key: &str) -> IdempotencyRow {
    IdempotencyRow {
        client: "cli".into(),
        key: key.into(),
        source: "api".into(),
        request_hash: Hash::of(key.as_bytes()),
        expires_at: NOW + Millis::from_hours(24),
    }
}

pub fn refusal(answer: Result<Box<interlock_core::run::change::ChangeSet>, SubmitError>) -> Option<Refusal> {
    match answer {
        Ok(_) => None,
        Err(SubmitError::Refused(refusal)) => Some(refusal),
        Err(other) => panic!("{other}"),
    }
}

async fn one_of_many_starts_with_the_same_key_wins(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    let starts: Vec<_> = (0..30)
        .map(|index| {
            let key = format!("key{}", index % 3);
            start_set(
                world.tenant,
                &plan,
                StartOptions { idempotency: Some(idempotency(&key)), ..StartOptions::default() },
            )
        })
        .collect();
    let submissions = starts.iter().map(|(_, change)| world.store.submit(change.clone()));
    let answers = futures::future::join_all(submissions).await;
    let mut winners = Vec::new();
    for ((run, _), answer) in starts.iter().zip(answers) {
        match refusal(answer) {
            None => winners.push(run.id),
            Some(refusal) => assert_eq!(refusal, Refusal::IdempotencyExists),
        }
    }
    assert_eq!(winners.len(), 3);
    for (run, _) in &starts {
        let loaded = world.store.load_runs(&[(world.tenant, run.id)]).await.unwrap();
        assert_eq!(loaded.len(), usize::from(winners.contains(&run.id)));
    }
    let record = world.store.idempotency(world.tenant, "cli", "key1").await.unwrap().unwrap();
    assert!(winners.contains(&record.run.unwrap()));
    assert_eq!(record.request_hash, Hash::of(b"key1"));
    assert!(world.store.idempotency(tenant_id(2), "cli", "key1").await.unwrap().is_none());
}

async fn a_subject_is_held_by_one_run_at_a_time(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    let wanted = || StartOptions { subject: Some("T-7".into()), ..StartOptions::default() };
    let mut first = world.start(&plan, wanted()).await;
    let (_, change) = start_set(world.tenant, &plan, wanted());
    let busy = refusal(world.store.submit(change).await);
    assert_eq!(busy, Some(Refusal::SubjectBusy { run: first.id }));
    assert_eq!(world.store.subject_holder(world.tenant, "T-7").await.unwrap(), Some(first.id));
    world.finish(&mut first, SessionId(fresh())).await;
    assert_eq!(world.store.subject_holder(world.tenant, "T-7").await.unwrap(), None);
    world.start(&plan, wanted()).await;
}

fn waits_for(subject: &str) -> StartOptions {
    StartOptions { subject: Some(subject.into()), queued: Some(Queued { cancels: false }), ..StartOptions::default() }
}

async fn a_subject_is_passed_on_in_order(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    let wanted = || StartOptions { subject: Some("T-8".into()), ..StartOptions::default() };
    let mut holder = world.start(&plan, wanted()).await;
    // Those who wait stand in the order of their ids, whenever they were written.
    let mut ids: Vec<_> = (0..3).map(|_| RunId(fresh())).collect();
    ids.sort_unstable();
    let mut queued = Vec::new();
    for id in [ids[1], ids[0], ids[2]] {
        queued.push(world.start(&plan, StartOptions { id: Some(id), ..waits_for("T-8") }).await);
    }
    queued.sort_by_key(|run| run.id);
    let line = world.store.subject_line(world.tenant, "T-8", 10).await.unwrap();
    assert_eq!((line.holder, line.queue.iter().map(|queued| queued.run).collect()), (Some(holder.id), ids.clone()));
    assert!(world.store.untended_subjects(10).await.unwrap().is_empty());
    world.finish(&mut holder, SessionId(fresh())).await;
    assert_eq!(world.store.untended_subjects(10).await.unwrap(), [(world.tenant, "T-8".to_owned())]);
    // The subject is free, but others came first.
    let (_, late) = start_set(world.tenant, &plan, wanted());
    assert_eq!(refusal(world.store.submit(late).await), Some(Refusal::SubjectBusy { run: ids[0] }));
    let admit = |run: &Run| command(run, Command::Admit, NOW);
    let overtakes = refusal(world.store.submit(admit(&queued[2])).await);
    assert_eq!(overtakes, Some(Refusal::SubjectBusy { run: ids[0] }));
    // Many try, one gets it.
    let tries = queued.iter().chain(&queued).map(|run| world.store.submit(admit(run)));
    let answers = futures::future::join_all(tries).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    queued[0] = world.load(&queued[0]).await;
    assert_eq!(queued[0].current().state(), StepState::Ready);
    for next in 1..3 {
        let mut first = queued[next - 1].clone();
        assert_eq!(
            refusal(world.store.submit(admit(&queued[next])).await),
            Some(Refusal::SubjectBusy { run: first.id })
        );
        world.finish(&mut first, SessionId(fresh())).await;
        let change = admit(&queued[next]);
        world.apply(&mut queued[next], change).await;
        assert_eq!(world.load(&queued[next]).await, queued[next]);
    }
    assert!(world.findings().await.is_empty());
}

async fn the_queue_of_a_subject_has_a_limit(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    let starts = (0..=limits::SUBJECT_QUEUE_MAX).map(|_| start_set(world.tenant, &plan, waits_for("T-9")).1);
    let answers = futures::future::join_all(starts.map(|change| world.store.submit(change))).await;
    let full: Vec<_> = answers.into_iter().filter_map(refusal).collect();
    assert_eq!(full, [Refusal::SubjectQueueFull]);
    world.start(&plan, waits_for("T-10")).await;
}

pub fn signal(world: &World, key: &str) -> SignalRow {
    SignalRow {
        tenant: world.tenant,
        id: SignalId(fresh()),
        signal_type: "run.requested".into(),
        key: key.into(),
        received_at: NOW,
        expires_at: NOW + Millis::from_hours(1),
        payload: Json::trusted("{}"),
        source_id: None,
        broadcast: false,
        run: None,
    }
}

async fn a_signal_instead_of_a_run_needs_a_holder(database: &TestDatabase) {
    let world = database.world().await;
    let run = RunId(fresh());
    let tell = |run, request: Option<&str>| {
        world.store.write(SignalSubject { signal: signal(&world, "T-11"), run, request: request.map(idempotency) })
    };
    assert_eq!(tell(run, Some("k1")).await.unwrap(), SubjectSignaled::Free);
    let holder = world.start(&tasks(1), StartOptions { subject: Some("T-11".into()), ..StartOptions::default() }).await;
    assert_eq!(tell(holder.id, Some("k1")).await.unwrap(), SubjectSignaled::Signaled);
    assert_eq!(tell(holder.id, Some("k1")).await.unwrap(), SubjectSignaled::Duplicate);
    assert_eq!(tell(holder.id, None).await.unwrap(), SubjectSignaled::Signaled);
    let pending = world.store.pending_signals(world.tenant, "run.requested", "T-11", Timestamp(0), 10).await.unwrap();
    assert_eq!(pending.len(), 2);
    let record = world.store.idempotency(world.tenant, "cli", "k1").await.unwrap().unwrap();
    assert_eq!(record.run, Some(holder.id));
}

async fn a_signal_needs_a_tenant(database: &TestDatabase) {
    let world = database.world().await;
    let row = SignalRow { tenant: tenant_id(404), ..signal(&world, "k") };
    assert_eq!(world.store.write(StoreSignal(row)).await.unwrap(), SignalStored::UnknownTenant);
    assert!(
        world.store.pending_signals(tenant_id(404), "run.requested", "k", Timestamp(0), 10).await.unwrap().is_empty()
    );
}

async fn what_a_step_answered_before_a_restart_is_kept(database: &TestDatabase) {
    let world = database.world().await;
    let mut run = world.start(&tasks(3), StartOptions::default()).await;
    world.claim(&mut run, SessionId(fresh())).await;
    world.complete(&mut run).await;
    world.complete(&mut run).await;
    for step in [
        Command::Release { position: 2, attempt: 1, cost: None },
        Command::Pause { reason: "look".into() },
        Command::RestartFrom { position: 0 },
    ] {
        let change = command(&run, step, NOW);
        world.apply(&mut run, change).await;
    }
    assert_eq!(run.steps[1].output, Some(Json::trusted(r#"{"step":1}"#)));
    assert_eq!(world.load(&run).await, run);
}

/// A harmless change of the run with one more side write.
pub fn with_side(world: &World, side: SideWrite) -> Box<interlock_core::run::change::ChangeSet> {
    let (_, mut change) = start_set(world.tenant, &tasks(1), StartOptions::default());
    change.side.push(side);
    change
}

async fn a_signal_is_consumed_once(database: &TestDatabase) {
    let world = database.world().await;
    let id = SignalId(fresh());
    let row = SignalRow {
        tenant: world.tenant,
        id,
        signal_type: "go".into(),
        key: "k".into(),
        received_at: NOW,
        expires_at: NOW + Millis::from_hours(1),
        payload: Json::trusted("{}"),
        source_id: Some(SignalIdentity {
            source: SourceId::of_tenant("delivery-1"),
            fingerprint: Hash::of(b"delivery-1"),
        }),
        broadcast: false,
        run: None,
    };
    assert_eq!(world.store.write(StoreSignal(row.clone())).await.unwrap(), SignalStored::Stored);
    let twin = SignalRow { id: SignalId(fresh()), ..row.clone() };
    assert_eq!(world.store.write(StoreSignal(twin)).await.unwrap(), SignalStored::Duplicate);
    assert_eq!(world.store.pending_signals(world.tenant, "go", "k", Timestamp(0), 10).await.unwrap().len(), 1);
    let consume = || with_side(&world, SideWrite::ConsumeSignal { signal: id, position: 0, broadcast: false });
    assert_eq!(refusal(world.store.submit(consume()).await), None);
    assert_eq!(refusal(world.store.submit(consume()).await), Some(Refusal::SignalConsumed));
    assert!(world.store.pending_signals(world.tenant, "go", "k", Timestamp(0), 10).await.unwrap().is_empty());
}

async fn a_person_votes_once(database: &TestDatabase) {
    let world = database.world().await;
    let approval = ApprovalId(fresh());
    let vote = |person: &str| SideWrite::Vote {
        approval,
        vote: Vote { person: person.into(), on_behalf_of: None, approve: true, notes: None, at: NOW, groups: vec![] },
    };
    assert_eq!(refusal(world.store.submit(with_side(&world, vote("ada"))).await), None);
    assert_eq!(refusal(world.store.submit(with_side(&world, vote("ada"))).await), Some(Refusal::VoteExists));
    assert_eq!(refusal(world.store.submit(with_side(&world, vote("bob"))).await), None);
    // A vote that counts no more makes room for another of the same person.
    let dropped = SideWrite::DropVote { approval, person: "ada".into() };
    assert_eq!(refusal(world.store.submit(with_side(&world, dropped.clone())).await), None);
    assert_eq!(refusal(world.store.submit(with_side(&world, vote("ada"))).await), None);
    assert_eq!(refusal(world.store.submit(with_side(&world, vote("bob"))).await), Some(Refusal::VoteExists));
    // Also in one commit: the new vote takes the place of the old one.
    let mut anew = with_side(&world, dropped);
    anew.side.push(vote("ada"));
    assert_eq!(refusal(world.store.submit(anew).await), None);
}

async fn a_vote_rests_on_accounts_as_they_were_read(database: &TestDatabase) {
    let world = database.world().await;
    let roles: Roles = [Role::Approver].into_iter().collect();
    let read = UserRow { roles, groups: vec!["sre".into()], ..user(world.tenant, "ada") };
    assert_eq!(world.store.write(AddUser(read.clone())).await.unwrap(), Stored::Stored);
    let approval = ApprovalId(fresh());
    let vote = |person: &str| {
        let (person, at) = (person.to_owned(), NOW);
        let vote = Vote { person, on_behalf_of: None, approve: true, notes: None, at, groups: vec![] };
        with_side(&world, SideWrite::Vote { approval, vote })
    };
    let resting_on = |account: &UserRow| {
        let mut change = vote(&account.name);
        change.side.insert(0, SideWrite::CheckAccount(Box::new(account.rights())));
        change
    };
    for changed in [
        UserRow { roles: Roles::NONE, ..read.clone() },
        UserRow { groups: vec!["sales".into()], ..read.clone() },
        UserRow { disabled_at: Some(NOW), ..read.clone() },
    ] {
        let change = ChangeUser { read: read.clone(), user: changed.clone() };
        assert_eq!(world.store.write(change).await.unwrap(), Changed::Done);
        assert_eq!(refusal(world.store.submit(resting_on(&read)).await), Some(Refusal::AccountChanged), "{changed:?}");
        let back = ChangeUser { read: changed, user: read.clone() };
        assert_eq!(world.store.write(back).await.unwrap(), Changed::Done);
    }
    let unknown = user(world.tenant, "eve");
    assert_eq!(refusal(world.store.submit(resting_on(&unknown)).await), Some(Refusal::AccountChanged));
    let signed_in = NoteSignIn { tenant: world.tenant, user: read.id, at: NOW };
    assert_eq!(world.store.write(signed_in).await.unwrap(), Changed::Done);
    assert_eq!(refusal(world.store.submit(resting_on(&read)).await), None, "nothing was written of the refused ones");
    assert_eq!(refusal(world.store.submit(vote("ada")).await), Some(Refusal::VoteExists));
}

async fn a_refused_guard_writes_nothing(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    world.start(&plan, StartOptions { idempotency: Some(idempotency("used")), ..StartOptions::default() }).await;
    // The subject comes before the key in some sets and after it in others; either way nothing may stay.
    let wanted = StartOptions {
        idempotency: Some(idempotency("used")),
        subject: Some("S".into()),
        labels: vec![("repo".into(), "x".into())],
        ..StartOptions::default()
    };
    let (run, mut change) = start_set(world.tenant, &plan, wanted);
    assert_eq!(refusal(world.store.submit(change.clone()).await), Some(Refusal::IdempotencyExists));
    change.side.reverse();
    assert_eq!(refusal(world.store.submit(change).await), Some(Refusal::IdempotencyExists));
    assert!(world.store.load_runs(&[(world.tenant, run.id)]).await.unwrap().is_empty());
    assert_eq!(world.store.subject_holder(world.tenant, "S").await.unwrap(), None);
    assert_eq!(world.findings().await, []);
}

async fn limited(world: &World, caps: Caps, pending_runs_max: Option<u32>) -> World {
    let tenant = Tenant { caps, pending_runs_max, ..Tenant::new(tenant_id(5), "limited", NOW) };
    world.store.write(PutTenant(tenant)).await.unwrap();
    World { store: world.store.clone(), tenant: tenant_id(5) }
}

async fn concurrency_is_capped(database: &TestDatabase) {
    let world = database.world().await;
    let world = limited(&world, Caps { max_concurrency: Some(3), max_runs_per_min: None }, None).await;
    let plan = tasks(2);
    let mut runs = Vec::new();
    for _ in 0..12 {
        runs.push(world.start(&plan, StartOptions::default()).await);
    }
    let session = SessionId(fresh());
    let claims = runs.iter().map(|run| world.store.submit(command(run, Command::Claim { session }, NOW)));
    let answers = futures::future::join_all(claims).await;
    let mut claimed = Vec::new();
    for (run, answer) in runs.iter_mut().zip(answers) {
        match answer {
            Ok(change) => {
                run.apply(&change);
                claimed.push(run.clone());
            }
            Err(SubmitError::Refused(refusal)) => assert_eq!(refusal, Refusal::Throttled),
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!(claimed.len(), 3);
    assert_eq!(world.store.claims_of(session).await.unwrap().len(), 3);
    // A claim handed on to the next step of the run takes no new place; the end of a run frees one.
    let mut run = claimed.remove(0);
    world.complete(&mut run).await;
    assert_eq!(world.store.claims_of(session).await.unwrap().len(), 3);
    let waiting: Vec<_> = runs.iter().filter(|run| run.current().attempt == 0).cloned().collect();
    let claim = |index: usize| world.store.submit(command(&waiting[index], Command::Claim { session }, NOW));
    assert_eq!(refusal(claim(0).await), Some(Refusal::Throttled));
    world.complete(&mut run).await;
    assert_eq!(refusal(claim(0).await), None);
    assert_eq!(refusal(claim(1).await), Some(Refusal::Throttled));
}

async fn starts_are_rationed_by_the_minute(database: &TestDatabase) {
    let world = database.world().await;
    let world = limited(&world, Caps { max_concurrency: None, max_runs_per_min: Some(6) }, None).await;
    let plan = tasks(1);
    let session = SessionId(fresh());
    let mut claimed = 0;
    for second in 0..30 {
        let now = Timestamp(NOW.0 + second * 1_000);
        for _ in 0..2 {
            let run = world.start(&plan, StartOptions { at: Some(now), ..StartOptions::default() }).await;
            claimed += usize::from(
                refusal(world.store.submit(command(&run, Command::Claim { session }, now)).await).is_none(),
            );
        }
    }
    // Six at once, then one every ten seconds.
    assert_eq!(claimed, 6 + 2);
}

async fn pending_runs_are_bounded(database: &TestDatabase) {
    let world = database.world().await;
    let world = limited(&world, Caps::default(), Some(2)).await;
    let plan = tasks(1);
    let mut first = world.start(&plan, StartOptions::default()).await;
    world.start(&plan, StartOptions::default()).await;
    let (_, third) = start_set(world.tenant, &plan, StartOptions::default());
    assert_eq!(refusal(world.store.submit(third.clone()).await), Some(Refusal::TooManyPending));
    world.claim(&mut first, SessionId(fresh())).await;
    assert_eq!(refusal(world.store.submit(third).await), None);
}

async fn rows_that_the_database_refuses_harm_no_neighbour(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    let mut sets: Vec<_> = (0..10).map(|_| start_set(world.tenant, &plan, StartOptions::default())).collect();
    // A journal row whose seq exists already cannot be written.
    let twice = sets[4].1.journal[0].clone();
    sets[4].1.journal.push(twice);
    let answers = futures::future::join_all(sets.iter().map(|(_, set)| world.store.submit(set.clone()))).await;
    for (index, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(_) => assert_ne!(index, 4),
            Err(SubmitError::Corrupt(_)) => assert_eq!(index, 4),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(world.store.load_runs(&[(world.tenant, sets[4].0.id)]).await.unwrap().is_empty());
    assert_eq!(world.findings().await, []);
}
