//! Open approvals are found by what their runs are, in the order in which they are due.

use interlock_core::ids::ApprovalId;
use interlock_core::plan::{Gate, StepSpec, Work};
use interlock_core::run::approval::{Approval, Others};
use interlock_core::run::change::SideWrite;
use interlock_core::state::ApprovalState;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{ApprovalFilter, ApprovalRow, DuePlace};

use crate::guards::with_side;
use crate::harness::{NOW, StartOptions, TestDatabase, fresh, plan_of};

crate::on_every_store!(approvals_are_filtered_and_come_as_they_are_due, every_list_of_an_approval_stays_with_it);

fn subjects(rows: &[ApprovalRow]) -> Vec<&str> {
    rows.iter().map(|row| row.subject.as_deref().unwrap()).collect()
}

async fn approvals_are_filtered_and_come_as_they_are_due(database: &TestDatabase) {
    let world = database.world().await;
    // Asked in this order, and due in another.
    for (subject, due_mins, quorum, at) in [("late", 30, 1, 0), ("soon", 5, 2, 1_000), ("sooner", 1, 1, 2_000)] {
        let gate = serde_json::json!({ "quorum": quorum, "escalate_after": due_mins * 60_000 });
        let gate: Gate = serde_json::from_value(gate).unwrap();
        let plan = plan_of(vec![StepSpec::new("gate", Work::Approval(gate))]);
        let at = Some(NOW + Millis(at));
        world.start(&plan, StartOptions { subject: Some(subject.into()), at, ..StartOptions::default() }).await;
    }
    let open = ApprovalFilter::in_state(ApprovalState::Requested);
    let listed = async |filter: ApprovalFilter| world.store.approvals(world.tenant, &filter, None, 10).await.unwrap();
    let all = listed(open.clone()).await;
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|row| row.workflow == "demo"), "{all:?}");

    let due = world.store.approvals_due(world.tenant, &open, None, 10).await.unwrap();
    assert_eq!(subjects(&due), ["sooner", "soon", "late"]);
    let after = DuePlace { due_at: due[0].due_at(), approval: due[0].id };
    let rest = world.store.approvals_due(world.tenant, &open, Some(after), 1).await.unwrap();
    assert_eq!(subjects(&rest), ["soon"], "a page goes on behind a place");

    let two = listed(ApprovalFilter { quorum: 2, ..open.clone() }).await;
    assert_eq!(subjects(&two), ["soon"]);
    let of_one = listed(ApprovalFilter { subject: Some("late".into()), ..open.clone() }).await;
    assert_eq!(subjects(&of_one), ["late"]);
    let soon = Some(NOW + Millis::from_mins(3));
    let due_before = world
        .store
        .approvals_due(world.tenant, &ApprovalFilter { due_before: soon, ..open.clone() }, None, 10)
        .await
        .unwrap();
    assert_eq!(subjects(&due_before), ["sooner"]);
    let since = listed(ApprovalFilter { since: Some(NOW + Millis(1_000)), ..open.clone() }).await;
    assert_eq!(since.len(), 2, "{since:?}");
    for none in [
        ApprovalFilter { workflow: Some("other".into()), ..open.clone() },
        ApprovalFilter { workspace: Some("other".into()), ..open.clone() },
        ApprovalFilter { since: Some(Timestamp(i64::MAX)), ..open.clone() },
        ApprovalFilter::in_state(ApprovalState::Approved),
    ] {
        assert!(listed(none.clone()).await.is_empty(), "{none:?}");
    }
    let whole = ApprovalFilter { workflow: Some("demo".into()), workspace: Some("main".into()), ..open };
    assert_eq!(listed(whole).await.len(), 3);
}

async fn every_list_of_an_approval_stays_with_it(database: &TestDatabase) {
    let world = database.world().await;
    for and_from in [vec![Others { quorum: 1, approvers: vec!["dba".into()] }], Vec::new()] {
        let asked: Approval = serde_json::from_value(serde_json::json!({
            "id": ApprovalId(fresh()), "state": "requested", "quorum": 1, "approvers": ["sre"], "on_reject": "fail",
            "on_expiry": "fail", "requested_at": NOW, "expires_at": NOW, "and_from": and_from,
        }))
        .unwrap();
        for state in [ApprovalState::Requested, ApprovalState::Approved] {
            let approval = Box::new(Approval { state, ..asked.clone() });
            world.store.submit(with_side(&world, SideWrite::PutApproval { position: 0, approval })).await.unwrap();
            let row = world.store.approval(world.tenant, asked.id).await.unwrap().unwrap();
            assert_eq!((row.state, &row.and_from), (state, &and_from));
        }
    }
}
