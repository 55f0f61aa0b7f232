//! Effects: the intent first, at most once, and never blindly again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::fake::{Fake, LEASE, start};
use interlock_core::json::Json;
use interlock_core::limits::EFFECTS_PER_STEP_MAX;
use interlock_core::state::EffectClass;
use interlock_protocol::agent::ReportedOutcome;
use interlock_worker::{EffectFailure, TaskError, Tasks};
use serde_json::{Value, json};

/// What a task that charges a card does, with a card that answers as its input says.
fn charging(performed: &Arc<AtomicU32>) -> Tasks {
    let performed = Arc::clone(performed);
    Tasks::new().task("charge", move |ctx, card: String| {
        let performed = Arc::clone(&performed);
        async move {
            let class = ctx.effect_class();
            let charge = |key: String| async move {
                performed.fetch_add(1, Ordering::Relaxed);
                match card.as_str() {
                    "good" => Ok(json!({ "charged": key })),
                    "declined" => Err(EffectFailure::certainly_not(TaskError::http(402, "declined"))),
                    "silent" => Err(std::io::Error::other("connection reset").into()),
                    other => panic!("no card answers {other}"),
                }
            };
            let receipt: Value = ctx.effect("card:charge:42", class, &json!({"cents": 100}), charge).await?;
            Ok(receipt)
        }
    })
}

fn code(outcome: &ReportedOutcome) -> &str {
    match outcome {
        ReportedOutcome::Retry { error, .. } | ReportedOutcome::Dead { error } => &error.code,
        other => panic!("not a failure: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_intent_comes_before_the_effect_and_a_repeat_performs_nothing() {
    let fake = Fake::new();
    let performed = Arc::default();
    let running = start(&fake, charging(&performed));
    let first = fake.step("charge", r#""good""#);
    let mut again = first.clone();
    again.at.attempt += 1;
    let key = format!("card:charge:42#{}/0", first.at.run);
    let output = Json::of(&json!({ "charged": key })).unwrap();

    assert_eq!(fake.run_one(first).await, ReportedOutcome::Completed { output: output.clone() });
    assert_eq!(fake.run_one(again).await, ReportedOutcome::Completed { output: output.clone() });
    assert_eq!(performed.load(Ordering::Relaxed), 1);
    running.stop().await;
    let state = fake.state();
    assert_eq!(state.intents[0].request, Json::trusted(r#"{"cents":100}"#));
    assert_eq!((state.outcomes[0].happened, &state.outcomes[0].response), (true, &Some(output)));
}

#[tokio::test(start_paused = true)]
async fn an_outcome_whose_answer_was_lost_is_recorded_again_not_performed_again() {
    let fake = Fake::new();
    let performed = Arc::default();
    let running = start(&fake, charging(&performed));
    fake.set(|state| state.lose_outcomes = 2);
    let outcome = fake.run_one(fake.step("charge", r#""good""#)).await;
    assert!(matches!(outcome, ReportedOutcome::Completed { .. }));
    assert_eq!(performed.load(Ordering::Relaxed), 1);
    assert_eq!(fake.state().calls.iter().filter(|call| **call == "outcome").count(), 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_certainly_did_not_happen_is_recorded_so() {
    let fake = Fake::new();
    let performed = Arc::default();
    let running = start(&fake, charging(&performed));
    let outcome = fake.run_one(fake.step("charge", r#""declined""#)).await;
    assert_eq!(code(&outcome), "HTTP_402");
    assert!(!fake.state().outcomes[0].happened);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_may_have_happened_has_no_outcome() {
    let fake = Fake::new();
    let performed = Arc::default();
    let running = start(&fake, charging(&performed));
    for class in [EffectClass::Keyed, EffectClass::Unsafe] {
        let mut step = fake.step("charge", r#""silent""#);
        step.effect = class;
        assert_eq!(code(&fake.run_one(step).await), "TASK_FAILED");
    }
    assert!(fake.state().outcomes.is_empty());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_task_cannot_talk_a_doubt_away() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("careless", |ctx, class: EffectClass| async move {
        let silent = |_| async { Err::<Value, _>(std::io::Error::other("reset").into()) };
        let _ = ctx.effect("x", class, &(), silent).await;
        let fine = |_| async { Ok(json!("fine")) };
        match ctx.effect("y", class, &(), fine).await {
            Ok(answer) => Ok(answer),
            Err(error) => Ok(json!(error.code())),
        }
    });
    let running = start(&fake, tasks);
    let outcome = fake.run_one(fake.step("careless", r#""unsafe""#)).await;
    assert_eq!(code(&outcome), "EFFECT_IN_DOUBT");
    assert!(matches!(outcome, ReportedOutcome::Retry { .. }));
    assert_eq!(fake.state().intents.len(), 1, "nothing follows a doubt");

    // A repeat of a keyed effect is harmless, so the task may decide.
    let outcome = fake.run_one(fake.step("careless", r#""keyed""#)).await;
    assert_eq!(outcome, ReportedOutcome::Completed { output: Json::trusted(r#""fine""#) });
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_on_a_lease_that_is_about_to_end() {
    let fake = Fake::new();
    let performed = Arc::new(AtomicU32::new(0));
    let (counter, server) = (Arc::clone(&performed), fake.clone());
    let tasks = Tasks::new().task("late", move |ctx, (): ()| {
        let (counter, server) = (Arc::clone(&counter), server.clone());
        async move {
            // The server is away long enough for the lease to come near its end, and is back for the intent.
            server.set(|state| state.down = true);
            tokio::time::sleep(LEASE * 9 / 10).await;
            server.set(|state| state.down = false);
            let count = |_| async move { Ok(counter.fetch_add(1, Ordering::Relaxed)) };
            ctx.effect("x", EffectClass::Unsafe, &(), count).await
        }
    });
    let running = start(&fake, tasks);
    let outcome = fake.run_one(fake.step("late", "null")).await;
    assert_eq!(code(&outcome), "LEASE_TOO_SHORT");
    assert_eq!(performed.load(Ordering::Relaxed), 0);
    assert!(!fake.state().outcomes[0].happened, "the intent is closed: nothing was sent");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_became_of_an_effect_is_told_though_the_session_is_over_and_the_server_away() {
    let fake = Fake::new();
    let server = fake.clone();
    let tasks = Tasks::new().task("pay", move |ctx, (): ()| {
        let server = server.clone();
        async move {
            let paying = |_| async move {
                // While the money is on its way, the server forgets the session, and goes away once it has said so.
                server.forget_sessions();
                server.until("a heartbeat", |state| state.calls.contains(&"heartbeat")).await;
                server.set(|state| state.down = true);
                Ok("paid".to_owned())
            };
            ctx.effect("bank", EffectClass::Unsafe, &(), paying).await
        }
    });
    let running = start(&fake, tasks);
    let mut step = fake.step("pay", "null");
    step.effect = EffectClass::Unsafe;
    fake.enqueue(vec![step]);
    fake.until("it tries to tell", |state| state.down && state.calls.contains(&"outcome")).await;
    tokio::time::sleep(LEASE * 2).await;
    assert!(fake.state().outcomes.is_empty());
    fake.set(|state| state.down = false);
    fake.until("both", |state| !state.outcomes.is_empty() && !state.reports.is_empty()).await;
    assert!(fake.state().outcomes[0].happened);
    assert_eq!(fake.outcomes_reported(), [ReportedOutcome::Released], "the task itself was stopped");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn effects_do_not_overlap() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("both", |ctx, (): ()| async move {
        let slow = |_| async {
            tokio::task::yield_now().await;
            Ok(1)
        };
        let (one, two) =
            tokio::join!(ctx.effect("a", EffectClass::Read, &(), slow), ctx.effect("b", EffectClass::Read, &(), slow));
        Ok((one.map_err(|error| error.code().to_owned()), two.map_err(|error| error.code().to_owned())))
    });
    let running = start(&fake, tasks);
    let outcome = fake.run_one(fake.step("both", "null")).await;
    let output = Json::trusted(r#"[{"Ok":1},{"Err":"EFFECT_OVERLAP"}]"#);
    assert_eq!(outcome, ReportedOutcome::Completed { output });
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_over_performs_nothing() {
    let fake = Fake::new();
    let performed = Arc::default();
    let running = start(&fake, charging(&performed));
    let step = fake.step("charge", r#""good""#);
    fake.set(|state| {
        state.stale.insert(step.at);
    });
    fake.enqueue(vec![step]);
    fake.until("it has been refused", |state| state.calls.contains(&"complete")).await;
    assert_eq!(performed.load(Ordering::Relaxed), 0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_step_performs_only_so_many_effects() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("endless", |ctx, (): ()| async move {
        loop {
            ctx.effect("x", EffectClass::Read, &(), |_| async { Ok(()) }).await?;
        }
        #[expect(unreachable_code, reason = "it tells the compiler what the task would answer")]
        Ok(())
    });
    let running = start(&fake, tasks);
    let outcome = fake.run_one(fake.step("endless", "null")).await;
    assert_eq!(code(&outcome), "EFFECTS_EXHAUSTED");
    assert!(matches!(outcome, ReportedOutcome::Dead { .. }));
    assert_eq!(fake.state().intents.len(), EFFECTS_PER_STEP_MAX as usize);
    running.stop().await;
}

/// Between the two attempts the task was changed, and no longer understands what it has recorded.
#[tokio::test(start_paused = true)]
async fn a_recorded_response_of_another_shape_is_not_guessed_at() {
    let fake = Fake::new();
    let tasks = Tasks::new().task("renamed", |ctx, (): ()| async move {
        if ctx.attempt() == 1 {
            return ctx.effect("x", EffectClass::Keyed, &(), |_| async { Ok("seven".to_owned()) }).await;
        }
        let seven: u32 = ctx.effect("x", EffectClass::Keyed, &(), |_| async { Ok(7) }).await?;
        Ok(seven.to_string())
    });
    let running = start(&fake, tasks);
    let first = fake.step("renamed", "null");
    let mut again = first.clone();
    again.at.attempt += 1;
    assert!(matches!(fake.run_one(first).await, ReportedOutcome::Completed { .. }));
    let outcome = fake.run_one(again).await;
    assert_eq!(code(&outcome), "EFFECT_RESPONSE_INVALID");
    assert!(matches!(outcome, ReportedOutcome::Dead { .. }));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_server_nothing_is_performed() {
    let fake = Fake::new();
    let (performed, heard) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(None)));
    let (counter, note, server) = (Arc::clone(&performed), Arc::clone(&heard), fake.clone());
    let tasks = Tasks::new().task("cut-off", move |ctx, (): ()| {
        let (counter, note, server) = (Arc::clone(&counter), Arc::clone(&note), server.clone());
        async move {
            server.set(|state| state.down = true);
            let count = |_| async move { Ok(counter.fetch_add(1, Ordering::Relaxed)) };
            let answer = ctx.effect("x", EffectClass::Unsafe, &(), count).await;
            *note.lock().unwrap() = answer.as_ref().err().map(|error| error.code().to_owned());
            server.set(|state| state.down = false);
            answer
        }
    });
    let running = start(&fake, tasks);
    fake.enqueue_one("cut-off", "null");
    fake.until("it is back", |state| !state.down && heard.lock().unwrap().is_some()).await;
    assert_eq!(heard.lock().unwrap().as_deref(), Some("SERVER_UNAVAILABLE"));
    assert_eq!(performed.load(Ordering::Relaxed), 0);
    running.stop().await;
}
