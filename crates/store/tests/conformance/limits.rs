//! The limits of a workflow hold over all its runs, and over no others.

use std::sync::Arc;

use interlock_core::decide::Command;
use interlock_core::ids::SessionId;
use interlock_core::plan::Plan;
use interlock_core::run::Run;
use interlock_core::tenant::caps::{Caps, ReachedCap};
use interlock_core::time::Timestamp;
use interlock_store::{PutTenant, Refusal, SubmitError, Tenant};

use crate::harness::{NOW, StartOptions, TestDatabase, World, command, fresh, start_set, tasks, tenant_id};

crate::on_every_store!(
    a_workflow_has_no_more_claims_than_it_may,
    every_version_counts_and_each_keeps_to_its_own_limit,
    runs_of_a_workflow_are_rationed_by_the_minute,
    what_one_limit_refuses_takes_no_place_of_the_other,
    ready_runs_of_some_workflows_can_be_left_out,
);

/// Plans of one workflow, with its limits.
pub fn limited(workflow: &str, version: u32, caps: Caps) -> Arc<Plan> {
    let mut plan = Plan::clone(&tasks(2));
    plan.workflow = workflow.into();
    plan.version = version;
    plan.rules.concurrency_max = caps.max_concurrency;
    plan.rules.runs_per_min_max = caps.max_runs_per_min;
    Arc::new(plan)
}

fn at_once(max: u32) -> Caps {
    Caps { max_concurrency: Some(max), max_runs_per_min: None }
}

fn full(max: u32) -> Refusal {
    Refusal::WorkflowThrottled { held: ReachedCap::Concurrency { max } }
}

/// Tries to claim the run's current step; answers what refuses it.
async fn claim(world: &World, run: &mut Run, session: SessionId) -> Option<Refusal> {
    match world.store.submit(command(run, Command::Claim { session }, NOW)).await {
        Ok(change) => {
            run.apply(&change);
            None
        }
        Err(SubmitError::Refused(refusal)) => Some(refusal),
        Err(other) => panic!("{other}"),
    }
}

async fn a_workflow_has_no_more_claims_than_it_may(database: &TestDatabase) {
    let world = database.world().await;
    let plan = limited("narrow", 1, at_once(3));
    let session = SessionId(fresh());
    let mut runs = Vec::new();
    for _ in 0..12 {
        runs.push(world.start(&plan, StartOptions::default()).await);
    }
    let claims = runs.iter().map(|run| world.store.submit(command(run, Command::Claim { session }, NOW)));
    let answers = futures::future::join_all(claims).await;
    for (run, answer) in runs.iter_mut().zip(answers) {
        match answer {
            Ok(change) => run.apply(&change),
            Err(SubmitError::Refused(refusal)) => assert_eq!(refusal, full(3)),
            Err(other) => panic!("{other}"),
        }
    }
    let (mut claimed, mut waiting): (Vec<Run>, Vec<Run>) =
        runs.into_iter().partition(|run| run.current().session().is_some());
    assert_eq!((claimed.len(), world.store.claims_of(session).await.unwrap().len()), (3, 3));
    assert_eq!(world.store.workflow_usage(world.tenant, "narrow").await.unwrap().live_claims, 3);
    // A start that would take its first step obeys too, and can be made without.
    let start = |claim| start_set(world.tenant, &plan, StartOptions { claim, ..StartOptions::default() }).1;
    match world.store.submit(start(Some(session))).await {
        Err(SubmitError::Refused(refusal)) => assert_eq!(refusal, full(3)),
        other => panic!("{other:?}"),
    }
    world.store.submit(start(None)).await.unwrap();
    // No others are held up: not another workflow, not another tenant's of the same name.
    let mut other = world.start(&limited("other", 1, at_once(1)), StartOptions::default()).await;
    assert_eq!(claim(&world, &mut other, session).await, None);
    world.store.write(PutTenant(Tenant::new(tenant_id(9), "nine", NOW))).await.unwrap();
    let nine = World { store: world.store.clone(), tenant: tenant_id(9) };
    let mut theirs = nine.start(&plan, StartOptions::default()).await;
    assert_eq!(claim(&nine, &mut theirs, session).await, None);
    // A claim handed on to the next step takes no new place; the end of a run frees one.
    world.complete(&mut claimed[0]).await;
    assert_eq!(claim(&world, &mut waiting[0], session).await, Some(full(3)));
    world.complete(&mut claimed[0]).await;
    assert_eq!(claim(&world, &mut waiting[0], session).await, None);
    assert_eq!(claim(&world, &mut waiting[1], session).await, Some(full(3)));
}

async fn every_version_counts_and_each_keeps_to_its_own_limit(database: &TestDatabase) {
    let world = database.world().await;
    let session = SessionId(fresh());
    let versions = [Caps::default(), at_once(2), at_once(3)];
    let mut runs = Vec::new();
    for (version, caps) in (1..).zip(versions) {
        let plan = limited("grown", version, caps);
        runs.push(world.start(&plan, StartOptions::default()).await);
        runs.push(world.start(&plan, StartOptions::default()).await);
    }
    let [free, freer, two, second, three, third] = &mut runs[..] else { unreachable!() };
    assert_eq!(claim(&world, free, session).await, None);
    assert_eq!(claim(&world, freer, session).await, None);
    assert_eq!(claim(&world, two, session).await, Some(full(2)), "runs without a limit count");
    assert_eq!(claim(&world, three, session).await, None);
    assert_eq!(claim(&world, third, session).await, Some(full(3)));
    world.finish(free, session).await;
    assert_eq!(claim(&world, second, session).await, Some(full(2)), "two are left");
    world.finish(freer, session).await;
    assert_eq!(claim(&world, second, session).await, None);
}

async fn runs_of_a_workflow_are_rationed_by_the_minute(database: &TestDatabase) {
    let world = database.world().await;
    let plan = limited("slow", 1, Caps { max_concurrency: None, max_runs_per_min: Some(6) });
    let unlimited = limited("fast", 1, Caps::default());
    let session = SessionId(fresh());
    let mut claimed = 0;
    for second in 0..30 {
        let now = Timestamp(NOW.0 + second * 1_000);
        for _ in 0..2 {
            let run = world.start(&plan, StartOptions { at: Some(now), ..StartOptions::default() }).await;
            match world.store.submit(command(&run, Command::Claim { session }, now)).await {
                Ok(_) => claimed += 1,
                Err(SubmitError::Refused(Refusal::WorkflowThrottled { held: ReachedCap::Rate { max: 6, until } })) => {
                    let wait = until.since(now).0;
                    assert!((1..=10_000).contains(&wait), "it waits {wait} ms");
                }
                Err(other) => panic!("{other}"),
            }
        }
        let other = world.start(&unlimited, StartOptions { at: Some(now), ..StartOptions::default() }).await;
        world.store.submit(command(&other, Command::Claim { session }, now)).await.unwrap();
    }
    // Six at once, then one every ten seconds.
    assert_eq!(claimed, 6 + 2);
    // Only the first claim of a run counts.
    let usage = world.store.workflow_usage(world.tenant, "slow").await.unwrap();
    assert_eq!((usage.live_claims, usage.rate_next_at), (8, NOW + interlock_core::time::Millis(80_000)));
}

async fn what_one_limit_refuses_takes_no_place_of_the_other(database: &TestDatabase) {
    let world = database.world().await;
    let caps = Caps { max_concurrency: Some(2), max_runs_per_min: Some(60) };
    world.store.write(PutTenant(Tenant { caps, ..Tenant::new(tenant_id(5), "five", NOW) })).await.unwrap();
    let world = World { store: world.store.clone(), tenant: tenant_id(5) };
    let session = SessionId(fresh());
    let plan = limited("narrow", 1, at_once(1));
    let mut runs = Vec::new();
    for _ in 0..6 {
        runs.push(world.start(&plan, StartOptions::default()).await);
    }
    runs.push(world.start(&tasks(1), StartOptions::default()).await);
    // In one group, as far as the lane is free to make one.
    let claims = runs.iter().map(|run| world.store.submit(command(run, Command::Claim { session }, NOW)));
    let answers = futures::future::join_all(claims).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 2);
    assert!(answers[6].is_ok(), "the tenant has room for another workflow's");
    let usage = world.store.tenant_usage(world.tenant).await.unwrap();
    assert_eq!((usage.live_claims, usage.rate_next_at), (2, NOW + interlock_core::time::Millis(2_000)));
}

async fn ready_runs_of_some_workflows_can_be_left_out(database: &TestDatabase) {
    let world = database.world().await;
    let (narrow, other) = (limited("narrow", 1, at_once(1)), limited("other", 1, Caps::default()));
    for _ in 0..3 {
        world.start(&narrow, StartOptions { priority: 9, ..StartOptions::default() }).await;
    }
    let run = world.start(&other, StartOptions::default()).await;
    let groups = world.store.ready_groups(&[], NOW).await.unwrap();
    let found = |without: &[&str]| {
        let names: Vec<String> = without.iter().map(|name| (*name).to_owned()).collect();
        let (store, group) = (world.store.clone(), groups[0].clone());
        async move { store.ready_runs(&group, &names, NOW, 3).await.unwrap() }
    };
    assert!(found(&[]).await.iter().all(|ready| ready.priority == 9));
    let others = found(&["narrow", "no \"such\" one"]).await;
    assert_eq!(others.iter().map(|ready| ready.run).collect::<Vec<_>>(), [run.id]);
    assert!(found(&["narrow", "other"]).await.is_empty());
}
