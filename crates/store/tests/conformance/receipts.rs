//! The receipt of an effect moves along its machine, also where another server moves it at the same time.

use interlock_core::decide::Command;
use interlock_core::ids::ReceiptId;
use interlock_core::json::{Hash, HashHex, Json};
use interlock_core::machine::receipt::{ReceiptEvent, next};
use interlock_core::run::Run;
use interlock_core::run::change::SideWrite;
use interlock_core::run::receipt::Receipt;
use interlock_core::state::{Control, EffectClass, ReceiptState};
use interlock_store::{Refusal, Store};

use crate::guards::{refusal, with_side};
use crate::harness::{NOW, StartOptions, TestDatabase, World, command, fresh, tasks};

crate::on_every_store!(
    a_receipt_moves_along_its_machine,
    only_the_run_that_has_the_intent_tells_the_outcome,
    a_reopened_effect_key_is_won_by_one,
);

fn intent(key: &str, effect: EffectClass) -> Receipt {
    Receipt {
        id: ReceiptId(fresh()),
        position: 0,
        iteration: 0,
        attempt: 1,
        key: key.into(),
        effect,
        state: ReceiptState::Intent,
        request: Json::trusted("{}"),
        response: None,
        intent_at: NOW,
        outcome_at: None,
        late: false,
        unsettled: false,
        bundle: Some(HashHex(Hash([9; 32]))),
    }
}

/// Puts the receipt with a change of the run that means nothing else.
async fn put(store: &Store, run: &mut Run, receipt: &Receipt) -> Option<Refusal> {
    let turn = match run.control {
        Control::Paused => Command::Resume,
        _ => Command::Pause { reason: "look".into() },
    };
    let mut change = command(run, turn, NOW);
    change.side.push(SideWrite::PutReceipt(Box::new(receipt.clone())));
    let answer = store.submit(change).await;
    if let Ok(change) = &answer {
        run.apply(change);
    }
    refusal(answer)
}

async fn stored(world: &World, key: &str) -> Receipt {
    world.store.receipt_by_key(world.tenant, key).await.unwrap().unwrap().receipt
}

fn moved(receipt: &Receipt, state: ReceiptState) -> Receipt {
    Receipt { state, response: Some(Json::trusted("[1]")), outcome_at: Some(NOW), ..receipt.clone() }
}

/// The receipt of a new run, brought into a state.
async fn receipt_in(world: &World, key: &str, effect: EffectClass, state: ReceiptState) -> (Run, Receipt) {
    let mut run = world.start(&tasks(1), StartOptions::default()).await;
    let receipt = intent(key, effect);
    assert_eq!(put(&world.store, &mut run, &receipt).await, None);
    let receipt = if state == ReceiptState::Intent { receipt } else { moved(&receipt, state) };
    if state != ReceiptState::Intent {
        assert_eq!(put(&world.store, &mut run, &receipt).await, None);
    }
    (run, receipt)
}

async fn a_receipt_moves_along_its_machine(database: &TestDatabase) {
    let world = database.world().await;
    for (number, from) in ReceiptState::ALL.iter().enumerate() {
        for to in ReceiptState::ALL {
            let key = format!("mail:{number}:{to}");
            let (mut run, receipt) = receipt_in(&world, &key, EffectClass::Unsafe, *from).await;
            let arrow = ReceiptEvent::ALL.iter().any(|event| next(*from, *event) == Some(*to));
            // A definite "did not happen" reopens the key.
            let reopens = (*from, *to) == (ReceiptState::Failed, ReceiptState::Intent);
            let expected = (!arrow && !reopens).then_some(Refusal::ReceiptExists);
            let wanted = moved(&receipt, *to);
            assert_eq!(put(&world.store, &mut run, &wanted).await, expected, "{from} to {to}");
            let left = if expected.is_none() { wanted } else { receipt };
            assert_eq!(stored(&world, &key).await, left, "{from} to {to}");
        }
    }
    let (_, receipt) = receipt_in(&world, "new", EffectClass::Unsafe, ReceiptState::Failed).await;
    let other = Receipt { id: ReceiptId(fresh()), state: ReceiptState::Intent, ..receipt };
    let set = with_side(&world, SideWrite::PutReceipt(Box::new(other)));
    assert_eq!(refusal(world.store.submit(set).await), Some(Refusal::ReceiptExists), "the key has another receipt");
}

async fn only_the_run_that_has_the_intent_tells_the_outcome(database: &TestDatabase) {
    let world = database.world().await;
    for effect in [EffectClass::Unsafe, EffectClass::Keyed] {
        let key = format!("mail:{effect}");
        let (mut first, receipt) = receipt_in(&world, &key, effect, ReceiptState::Intent).await;
        let mut second = world.start(&tasks(1), StartOptions::default()).await;
        for state in [ReceiptState::Succeeded, ReceiptState::Failed, ReceiptState::InDoubt] {
            let told = put(&world.store, &mut second, &moved(&receipt, state)).await;
            assert_eq!(told, Some(Refusal::ReceiptExists), "{state} of {effect}");
        }
        // Only what may be repeated goes over to another run while it is not known what became of it.
        let taken = put(&world.store, &mut second, &receipt).await;
        assert_eq!(taken.is_none(), effect == EffectClass::Keyed);
        let late = put(&world.store, &mut first, &moved(&receipt, ReceiptState::Succeeded)).await;
        assert_eq!(late.is_none(), effect == EffectClass::Unsafe);
    }
}

pub async fn a_reopened_effect_key_is_won_by_one(database: &TestDatabase) {
    let world = database.world().await;
    let stores = [world.store.clone(), database.second(&world.store).await];
    for round in 0..crate::races::rounds() {
        let key = format!("mail:{round}");
        let (_, receipt) = receipt_in(&world, &key, EffectClass::Unsafe, ReceiptState::Failed).await;
        let again = Receipt { state: ReceiptState::Intent, outcome_at: None, ..receipt };
        let mut runs = [
            world.start(&tasks(1), StartOptions::default()).await,
            world.start(&tasks(1), StartOptions::default()).await,
        ];
        let [first, second] = &mut runs;
        let answers = futures::join!(put(&stores[0], first, &again), put(&stores[1], second, &again));
        let refused = [answers.0, answers.1].into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(refused, [Refusal::ReceiptExists], "round {round}: one has leave, the other is told");
    }
}
