//! The tests of PostgreSQL's paths on trial: each of these mistakes is put into the real code, and a test must notice. A
//! test that has never failed proves nothing.
//!
//! A bug is planted on a thread, so these run on one.

use std::future::Future;

use interlock_core::decide::Command;
use interlock_core::ids::SessionId;
use interlock_core::planted::{Bug, plant};
use interlock_core::tenant::caps::Caps;
use interlock_store::{PutTenant, Refusal, SubmitError, Tenant};

use crate::harness::{NOW, StartOptions, TestDatabase, World, command, completion, fresh, tasks, tenant_id};
use crate::{feed, locks, lost_answers, receipts, servers};

/// The promise holds, and is broken by the bug.
async fn is_caught<F: Future<Output = ()> + Send + 'static>(bug: Bug, promise: impl Fn() -> F) {
    tokio::spawn(promise()).await.expect("it fails without a bug");
    plant(Some(bug));
    let noticed = tokio::spawn(promise()).await.is_err();
    plant(None);
    assert!(noticed, "{bug:?} went unnoticed");
}

/// Two servers decide from the same version; the second one comes a moment later.
async fn a_stale_decision_is_refused() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let other = database.open().await;
    let run = world.start(&tasks(3), StartOptions { claim: Some(SessionId(fresh())), ..StartOptions::default() }).await;
    let pause = command(&run, Command::Pause { reason: "look".into() }, NOW);
    world.store.submit(completion(&run, NOW)).await.unwrap();
    let stale = other.submit(pause).await;
    assert!(matches!(stale, Err(SubmitError::Refused(Refusal::Version))), "{stale:?}");
    assert_eq!(world.findings().await, []);
}

/// Two servers claim at the same moment, and one place is free.
async fn a_limit_holds_over_servers() {
    let database = TestDatabase::postgres().await;
    let world = database.world().await;
    let tenant = tenant_id(6);
    let caps = Caps { max_concurrency: Some(1), max_runs_per_min: None };
    world.store.write(PutTenant(Tenant { caps, ..Tenant::new(tenant, "capped", NOW) })).await.unwrap();
    let stores = [world.store.clone(), database.open().await];
    let world = World { tenant, ..world };
    for _ in 0..40 {
        let session = SessionId(fresh());
        let runs = [
            world.start(&tasks(1), StartOptions::default()).await,
            world.start(&tasks(1), StartOptions::default()).await,
        ];
        let [one, other] =
            [0, 1].map(|place| stores[place].submit(command(&runs[place], Command::Claim { session }, NOW)));
        let answers: [_; 2] = futures::join!(one, other).into();
        let claimed = world.store.claims_of(session).await.unwrap().len();
        assert!(claimed <= 1, "{claimed} claims at once");
        for (mut run, answer) in runs.into_iter().zip(answers) {
            if let Ok(change) = answer {
                run.apply(&change);
                world.finish(&mut run, session).await;
            }
        }
    }
}

async fn sealing_keeps_the_order() {
    feed::the_feed_is_sealed_in_bounded_rounds(&TestDatabase::postgres().await).await;
}

async fn a_reopened_effect_key_is_won_by_one() {
    receipts::a_reopened_effect_key_is_won_by_one(&TestDatabase::postgres().await).await;
}

#[tokio::test]
async fn receipt_not_guarded() {
    is_caught(Bug::ReceiptNotGuarded, a_reopened_effect_key_is_won_by_one).await;
}

#[tokio::test]
async fn version_not_guarded() {
    is_caught(Bug::VersionNotGuarded, a_stale_decision_is_refused).await;
}

#[tokio::test]
async fn limits_not_locked() {
    is_caught(Bug::LimitsNotLocked, a_limit_holds_over_servers).await;
}

#[tokio::test]
async fn group_written_again() {
    is_caught(Bug::GroupWrittenAgain, lost_answers::commits_whose_answers_are_lost).await;
}

#[tokio::test]
async fn sealed_by_instant() {
    is_caught(Bug::SealedByInstant, sealing_keeps_the_order).await;
}

#[tokio::test]
async fn blocked_is_answered() {
    is_caught(Bug::BlockedIsAnswered, locks::other_tenants_go_on_while_one_tenants_limits_are_locked).await;
}

#[tokio::test]
async fn blocked_is_overtaken() {
    is_caught(Bug::BlockedIsOvertaken, locks::a_locked_run_waits_alone_and_keeps_its_order).await;
}

#[tokio::test]
async fn timeline_not_noticed() {
    is_caught(
        Bug::TimelineNotNoticed,
        servers::another_timeline_is_treated_as_restored_unless_commits_wait_for_a_standby,
    )
    .await;
}
