//! Runs go in, come back equal, and are refused when they have moved on.

use interlock_core::decide::Command;
use interlock_core::ids::SessionId;
use interlock_core::state::{RunState, StepState};
use interlock_store::{Refusal, SubmitError};

use crate::harness::{NOW, StartOptions, TestDatabase, command, completion, fresh, start_set, tasks, tenant_id};

crate::on_every_store!(
    a_run_comes_back_as_it_was_at_every_step,
    a_stale_version_is_refused_and_harms_nobody,
    a_run_is_made_once,
    a_start_for_an_unknown_tenant_is_refused,
    ready_runs_are_found_in_order_and_by_time,
);

async fn a_run_comes_back_as_it_was_at_every_step(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(3);
    let labels = vec![("repo".to_owned(), "interlock".to_owned())];
    let mut run =
        world.start(&plan, StartOptions { subject: Some("T-1".into()), labels, ..StartOptions::default() }).await;
    assert_eq!(world.load(&run).await, run);
    let session = SessionId(fresh());
    world.claim(&mut run, session).await;
    assert_eq!(world.load(&run).await, run);
    while !run.state.is_terminal() {
        let change = completion(&run, NOW);
        world.apply(&mut run, change).await;
        assert_eq!(world.load(&run).await, run);
    }
    assert_eq!(run.state, RunState::Succeeded);
    let steps = world.store.steps(run.tenant, run.id).await.unwrap();
    assert!(steps.iter().all(|step| step.state == StepState::Succeeded), "{steps:?}");
    assert_eq!(steps[1].output.as_ref().unwrap().as_str(), r#"{"step":1}"#);
    assert_eq!(world.findings().await, []);
    assert!(world.store.load_runs(&[(tenant_id(2), run.id)]).await.unwrap().is_empty());
}

async fn a_stale_version_is_refused_and_harms_nobody(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(2);
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(world.start(&plan, StartOptions::default()).await);
    }
    let session = SessionId(fresh());
    // Every third set is out of date.
    let mut stale = runs.clone();
    for run in stale.iter_mut().step_by(3) {
        world.claim(run, session).await;
    }
    let submissions = runs.iter().map(|run| world.store.submit(command(run, Command::Claim { session }, NOW)));
    let answers = futures::future::join_all(submissions).await;
    for (index, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(_) => assert_ne!(index % 3, 0),
            Err(SubmitError::Refused(Refusal::Version)) => assert_eq!(index % 3, 0),
            Err(other) => panic!("{other}"),
        }
    }
    for run in &runs {
        let loaded = world.load(run).await;
        assert_eq!(loaded.current().attempt, 1);
    }
    assert_eq!(world.findings().await, []);
}

async fn a_run_is_made_once(database: &TestDatabase) {
    let world = database.world().await;
    let (run, change) = start_set(world.tenant, &tasks(1), StartOptions::default());
    world.store.submit(change.clone()).await.unwrap();
    let again = world.store.submit(change).await.unwrap_err();
    assert!(matches!(again, SubmitError::Refused(Refusal::RunExists)), "{again}");
    assert_eq!(world.store.events(run.tenant, run.id, 0, 100).await.unwrap().len(), 1);
}

async fn a_start_for_an_unknown_tenant_is_refused(database: &TestDatabase) {
    let world = database.world().await;
    let (_, change) = start_set(tenant_id(99), &tasks(1), StartOptions::default());
    let answer = world.store.submit(change).await.unwrap_err();
    assert!(matches!(answer, SubmitError::Refused(Refusal::UnknownTenant)), "{answer}");
}

async fn ready_runs_are_found_in_order_and_by_time(database: &TestDatabase) {
    use interlock_core::time::{Millis, Timestamp};
    let world = database.world().await;
    let plan = tasks(1);
    let mut expected = Vec::new();
    for (priority, later) in [(0, 5), (0, 1), (7, 3), (7, 50), (3, 2)] {
        let at = Timestamp(NOW.0 + later);
        let run = world.start(&plan, StartOptions { priority, at: Some(at), ..StartOptions::default() }).await;
        expected.push((priority, at, run.id));
    }
    let now = NOW + Millis(10);
    let groups = world.store.ready_groups(&["default".into()], now).await.unwrap();
    assert_eq!(groups.len(), 1);
    assert_eq!(groups[0].workspace, "main");
    assert!(world.store.ready_groups(&["other".into()], now).await.unwrap().is_empty());
    assert!(world.store.ready_groups(&[], NOW).await.unwrap().is_empty());
    let runs = world.store.ready_runs(&groups[0], &[], now, 10).await.unwrap();
    let found: Vec<_> = runs.iter().map(|run| (run.priority, run.eligible_at.0 - NOW.0)).collect();
    assert_eq!(found, [(7, 3), (3, 2), (0, 1), (0, 5)]);
    assert_eq!(world.store.next_eligible(now).await.unwrap(), Some(Timestamp(NOW.0 + 50)));
    assert_eq!(world.store.next_eligible(Timestamp(NOW.0 + 50)).await.unwrap(), None);
}
