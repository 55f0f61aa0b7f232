//! A run in numbers, kept with it when it ends; on both databases.

use std::time::Duration;

use interlock_core::plan::retry::{ErrorClass, StepError};
use interlock_core::plan::{StepSpec, Work};
use interlock_core::run::approval::Voter;
use interlock_core::run::change::Context;
use interlock_core::run::metrics::RunMetrics;
use interlock_core::state::RunState;
use interlock_core::time::Millis;
use interlock_core::work::ReportedOutcome;
use interlock_core::work::fault::{SANDBOX_NOT_ATTESTED, SANDBOX_NOT_SET_UP, SANDBOX_REFUSED};
use interlock_core::work::output::{OutputBatch, OutputChunk, OutputStream};
use interlock_engine::commands::vote::VoteRequest;

use crate::assignments::{claimed, lone_command, patient, register, shared};
use crate::harness::{Database, done, ends, engine, engine_with, plan, reaches, report, start, stop, tenant, work};
use crate::on_both;

on_both! {
    async fn what_commands_print_is_counted(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let session = register(&engine, "box", Some(tenant)).await;
        let steps = shared(vec![lone_command("c")]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        let step = claimed(&engine, session).await;
        let chunk = |seq, stream, text: &str| OutputChunk { seq, stream, text: text.into() };
        let chunks = vec![
            chunk(1, OutputStream::Stdout, "12345"),
            chunk(2, OutputStream::Stderr, "678"),
            chunk(3, OutputStream::Status, "exit code 0"),
        ];
        engine.workers().output(session, OutputBatch { at: step.at, epoch: step.epoch, chunks }).await.unwrap();
        report(&engine, session, &step, done("1")).await;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        let metrics = *engine.store().run_notes(tenant, run).await.unwrap().unwrap().metrics.unwrap();
        assert_eq!((metrics.output_bytes, metrics.printed_bytes), (1, 8), "what the worker says of the end is not printed");
        stop(engine).await;
    }

    async fn what_refuses_a_command_is_counted_by_its_code(database: &Database) {
        let engine = engine_with(database, patient()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let steps = shared(vec![lone_command("c")]);
        let counted = || engine.health().counters().violations().iter().map(|(_, count)| count).sum::<u64>();
        for (code, counts) in [
            ("COMMAND_NOT_PERMITTED", 1),
            (SANDBOX_REFUSED, 1),
            (SANDBOX_NOT_ATTESTED, 1),
            (SANDBOX_NOT_SET_UP, 0),
            ("COMMAND_FAILED", 0),
        ] {
            let before = counted();
            // A command that could not be confined makes its worker errored.
            let session = register(&engine, code, Some(tenant)).await;
            engine.runs().start(start(tenant, &steps, "null")).await.unwrap();
            let step = claimed(&engine, session).await;
            let error = StepError::new(ErrorClass::Unavailable, code, "no");
            report(&engine, session, &step, ReportedOutcome::Retry { error, backoff: Some(Millis::from_hours(1)) }).await;
            assert_eq!(counted() - before, counts, "{code}");
        }
        stop(engine).await;
    }

    async fn an_ended_run_keeps_its_numbers(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        work(&engine, 1, |assignment| async move {
            if assignment.at.attempt == 1 && assignment.step == "a" {
                let error = StepError::new(ErrorClass::Unavailable, "BUSY", "busy");
                return ReportedOutcome::Retry { error, backoff: Some(Millis(1)) };
            }
            done("{\"n\":1}")
        });
        let gate = StepSpec::new("gate", Work::Approval(serde_json::from_str(r#"{"approvers":["sre"]}"#).unwrap()));
        let steps = plan(vec![StepSpec::task("a", "t"), gate, StepSpec::task("b", "t")]);
        let run = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::WaitingApproval).await;
        let notes = engine.store().run_notes(tenant, run).await.unwrap().unwrap();
        assert_eq!((notes.metrics, notes.approvals.count), (None, 1), "only its end makes them");
        tokio::time::sleep(Duration::from_millis(30)).await;
        let approval = engine.store().approvals_of(tenant, run).await.unwrap().remove(0);
        let voter = Voter::new("ann", vec!["sre".into()]);
        let vote = VoteRequest { approval: approval.id, voter, approve: true, notes: None };
        engine.runs().vote(tenant, run, vote).await.unwrap();
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);

        let notes = engine.store().run_notes(tenant, run).await.unwrap().unwrap();
        let metrics = *notes.metrics.unwrap();
        let RunMetrics { approval_wait_ms, duration_ms, output_bytes, .. } = metrics;
        let counted = RunMetrics {
            steps: 3, succeeded: 3, skipped: 0, failed: 0, attempts: 3, retries: 1, approvals: 1, approval_wait_ms, duration_ms, output_bytes,
            printed_bytes: 0,
        };
        assert_eq!(metrics, counted);
        assert!((30..=duration_ms).contains(&approval_wait_ms), "{metrics:?}");
        assert!(output_bytes >= 14, "{metrics:?}");
        let ended = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
        assert_eq!(ended.duration_ms, Some(duration_ms));

        let canceled = engine.runs().start(start(tenant, &steps, "null")).await.unwrap().run;
        reaches(&engine, tenant, canceled, RunState::WaitingApproval).await;
        engine.runs().cancel(tenant, canceled, "no".into(), false, Context::operator("ann")).await.unwrap();
        let notes = engine.store().run_notes(tenant, canceled).await.unwrap().unwrap();
        let metrics = notes.metrics.unwrap();
        assert_eq!((metrics.steps, metrics.succeeded, metrics.approvals), (3, 1, 1), "however it ends");
        stop(engine).await;
    }
}
