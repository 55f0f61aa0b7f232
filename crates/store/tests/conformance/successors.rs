//! A run that has ended is continued by one other.

use interlock_core::ids::{RunId, SessionId};
use interlock_core::run::Lineage;
use interlock_store::Refusal;

use crate::guards::{idempotency, refusal};
use crate::harness::{StartOptions, TestDatabase, fresh, start_set, tasks};

crate::on_every_store!(one_of_two_successors_is_made, the_key_of_a_repeat_comes_before_its_successor);

fn continuing(run: RunId) -> StartOptions {
    let lineage = Lineage { root_run_id: run, resumed_from: run, resume_count: 1 };
    StartOptions { lineage: Some(lineage), ..StartOptions::default() }
}

async fn one_of_two_successors_is_made(database: &TestDatabase) {
    let world = database.world().await;
    let stores = [world.store.clone(), database.second(&world.store).await];
    let plan = tasks(1);
    for round in 0..crate::races::rounds() {
        let mut run = world.start(&plan, StartOptions::default()).await;
        world.finish(&mut run, SessionId(fresh())).await;
        let (first, one) = start_set(world.tenant, &plan, continuing(run.id));
        let (second, other) = start_set(world.tenant, &plan, continuing(run.id));
        let (one, other) = futures::join!(stores[0].submit(one), stores[1].submit(other));
        let answers = [(first.id, refusal(one)), (second.id, refusal(other))];
        let made: Vec<_> = answers.iter().filter(|(_, refusal)| refusal.is_none()).map(|(run, _)| *run).collect();
        let [by] = made[..] else { panic!("round {round}: {answers:?}") };
        let refused: Vec<_> = answers.into_iter().filter_map(|(_, refusal)| refusal).collect();
        assert_eq!(refused, [Refusal::Continued { by }], "round {round}");
        assert_eq!(world.store.successor(world.tenant, run.id).await.unwrap(), Some(by));
        let overview = world.store.run_overview(world.tenant, run.id).await.unwrap().unwrap();
        assert_eq!(overview.continued_by, Some(by));
    }
    assert_eq!(world.findings().await, []);
}

async fn the_key_of_a_repeat_comes_before_its_successor(database: &TestDatabase) {
    let world = database.world().await;
    let plan = tasks(1);
    let mut run = world.start(&plan, StartOptions::default()).await;
    world.finish(&mut run, SessionId(fresh())).await;
    let keyed = || StartOptions { idempotency: Some(idempotency("again")), ..continuing(run.id) };
    world.start(&plan, keyed()).await;
    let (_, repeat) = start_set(world.tenant, &plan, keyed());
    assert_eq!(refusal(world.store.submit(repeat).await), Some(Refusal::IdempotencyExists));
}
