//! The rights that votes rest on hold when a vote is committed, not only when it was weighed.

use interlock_core::ids::{TenantId, UserId};
use interlock_core::plan::{StepSpec, Work};
use interlock_core::run::Phase;
use interlock_core::run::approval::Voter;
use interlock_core::state::RunState;
use interlock_core::tenant::identity::{Role, Roles};
use interlock_engine::commands::vote::{VoteRequest, WeighedVotes};
use interlock_engine::{Engine, EngineError};
use interlock_store::{AddUser, ChangeUser, Changed, Stored, UserRow};

use crate::harness::{Database, engine, plan, reaches, start, stop, tenant};
use crate::on_both;

async fn approver(engine: &Engine, tenant: TenantId, name: &str) -> UserRow {
    let account = UserRow {
        tenant,
        id: UserId(engine.fresh_id()),
        name: name.into(),
        display_name: None,
        email: None,
        roles: [Role::Approver].into_iter().collect(),
        groups: vec!["sre".into()],
        installation: false,
        password: None,
        issuer: None,
        subject: None,
        created_at: engine.now(),
        created_by: None,
        disabled_at: None,
        last_login_at: None,
        access_changed_at: None,
        access_changed_by: None,
    };
    assert_eq!(engine.store().write(AddUser(account.clone())).await.unwrap(), Stored::Stored);
    account
}

on_both! {
    async fn a_right_that_is_taken_away_before_the_commit_does_not_count(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let (ann, bob) = (approver(&engine, tenant, "ann").await, approver(&engine, tenant, "bob").await);
        let gate = serde_json::from_str(r#"{"approvers":["sre"],"quorum":2}"#).unwrap();
        let steps = vec![StepSpec::new("gate", Work::Approval(gate))];
        let run = engine.runs().start(start(tenant, &plan(steps), "null")).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::WaitingApproval).await;
        let open = async || {
            let loaded = engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().unwrap();
            match loaded.current().phase.clone() {
                Phase::WaitingApproval(open) => open,
                other => panic!("{other:?}"),
            }
        };
        // As the server weighs a vote, some milliseconds before it is committed.
        let weighed = async |account: &UserRow| {
            let open = open().await;
            let WeighedVotes { fallen, mut accounts } = engine.runs().weigh_votes(tenant, &open).await.unwrap();
            accounts.push(account.rights());
            let voter = Voter { fallen, accounts, ..Voter::new(&account.name, account.groups.clone()) };
            VoteRequest { approval: open.id, voter, approve: true, notes: None }
        };
        let change = async |read: &UserRow, user: &UserRow| {
            let change = ChangeUser { read: read.clone(), user: user.clone() };
            assert_eq!(engine.store().write(change).await.unwrap(), Changed::Done);
        };

        // The voter's own right.
        let vote = weighed(&ann).await;
        let without_role = UserRow { roles: Roles::NONE, ..ann.clone() };
        change(&ann, &without_role).await;
        let refused = engine.runs().vote(tenant, run, vote).await;
        assert!(matches!(refused, Err(EngineError::Contended { .. })), "{refused:?}");
        assert!(open().await.votes.is_empty());
        change(&without_role, &ann).await;
        engine.runs().vote(tenant, run, weighed(&ann).await).await.unwrap();

        // That of the earlier voter, with whose vote this one would decide.
        let vote = weighed(&bob).await;
        let disabled = UserRow { disabled_at: Some(engine.now()), ..ann.clone() };
        change(&ann, &disabled).await;
        let refused = engine.runs().vote(tenant, run, vote).await;
        assert!(matches!(refused, Err(EngineError::Contended { .. })), "{refused:?}");
        assert_eq!(open().await.approved_by(), ["ann"], "nothing was written");
        let standing = engine.runs().vote(tenant, run, weighed(&bob).await).await.unwrap();
        assert_eq!(standing.state, RunState::WaitingApproval);
        assert_eq!(open().await.approved_by(), ["bob"], "the right of the earlier voter is gone");
        stop(engine).await;
    }

    async fn a_vote_counts_with_no_yes_that_was_not_weighed_with_it(database: &Database) {
        let engine = engine(database).await;
        let tenant = tenant(&engine, |_| {}).await;
        let (ann, bob) = (approver(&engine, tenant, "ann").await, approver(&engine, tenant, "bob").await);
        let gate = serde_json::from_str(r#"{"approvers":["sre"],"quorum":2}"#).unwrap();
        let steps = vec![StepSpec::new("gate", Work::Approval(gate))];
        let run = engine.runs().start(start(tenant, &plan(steps), "null")).await.unwrap().run;
        reaches(&engine, tenant, run, RunState::WaitingApproval).await;
        let loaded = engine.store().load_runs(&[(tenant, run)]).await.unwrap().pop().unwrap();
        let Phase::WaitingApproval(open) = loaded.current().phase.clone() else { panic!("{loaded:?}") };
        // Both are weighed before either has voted: of the other one nothing is known.
        let [first, second] = [&ann, &bob].map(|account| {
            let voter = Voter { accounts: vec![account.rights()], ..Voter::new(&account.name, account.groups.clone()) };
            VoteRequest { approval: open.id, voter, approve: true, notes: None }
        });
        engine.runs().vote(tenant, run, first).await.unwrap();
        let refused = engine.runs().vote(tenant, run, second).await;
        assert!(matches!(refused, Err(EngineError::Contended { .. })), "{refused:?}");
        stop(engine).await;
    }
}
