//! Delegations between people, and how often a login with their names has failed.

use interlock_core::ids::{DelegationId, TenantId, UserId};
use interlock_core::json::{Hash, Json};
use interlock_core::state::IdempotencyState;
use interlock_core::tenant::identity::Roles;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::{
    AcceptInvite, AddDelegation, AddInvite, AddUser, AttachedWrites, BeginIdempotency, ChangeTenant, ChangeUser,
    Changed, CountLogin, DelegationPage, DelegationRow, FinishIdempotency, ForgetLoginFailures, InviteOutcome,
    InviteRow, InvitedAccount, LoginFailures, NoteLoginFailure, NoteSignIn, OpenUserSession, RevokeDelegation, Store,
    Stored, UseInvite, UserRow, UserSessionRow, Write,
};

use crate::harness::{NOW, TestDatabase, World, fresh, tenant_id};

crate::on_every_store!(
    what_was_lent_is_not_passed_on,
    an_older_reading_of_an_account_undoes_nothing,
    an_invite_is_used_up_only_with_its_account,
    an_older_reading_of_a_tenant_undoes_nothing,
    guesses_are_counted_and_forgotten,
    an_answer_is_kept_with_what_it_answers
);

async fn ask<W: Write>(store: &Store, write: W) -> W::Answer {
    store.write(write).await.unwrap()
}

pub fn user(tenant: TenantId, name: &str) -> UserRow {
    UserRow {
        tenant,
        id: UserId(fresh()),
        name: name.into(),
        display_name: None,
        email: None,
        roles: Roles::default(),
        groups: Vec::new(),
        installation: false,
        password: None,
        issuer: None,
        subject: None,
        created_at: NOW,
        created_by: None,
        disabled_at: None,
        last_login_at: None,
        access_changed_at: None,
        access_changed_by: None,
    }
}

fn hour(number: u64) -> Timestamp {
    NOW + Millis::from_hours(number)
}

fn lent(world: &World, delegator: &str, delegate: &str, hours: (u64, u64)) -> DelegationRow {
    DelegationRow {
        tenant: world.tenant,
        id: DelegationId(fresh()),
        delegator: delegator.into(),
        delegate: delegate.into(),
        from_at: hour(hours.0),
        until_at: hour(hours.1),
        reason: "on leave".into(),
        created_at: NOW,
        created_by: "ada".into(),
        revoked_at: None,
        revoked_by: None,
    }
}

async fn what_was_lent_is_not_passed_on(database: &TestDatabase) {
    let world = database.world().await;
    let (store, tenant) = (&world.store, world.tenant);
    let add = async |row: &DelegationRow| ask(store, AddDelegation { row: row.clone(), open_max: 2 }).await;
    let first = lent(&world, "ada", "bob", (2, 4));
    assert_eq!(add(&first).await, Stored::Stored);
    assert_eq!(store.delegation(tenant, first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.delegation(tenant_id(9), first.id).await.unwrap(), None, "another tenant has none");
    for (delegator, delegate, hours) in [("bob", "eve", (1, 3)), ("eve", "ada", (3, 9)), ("bob", "ada", (2, 4))] {
        assert_eq!(add(&lent(&world, delegator, delegate, hours)).await, Stored::Duplicate, "{delegator}");
    }
    let later = lent(&world, "bob", "eve", (4, 5));
    assert_eq!(add(&later).await, Stored::Stored, "afterwards it is his own again");
    assert_eq!(add(&lent(&world, "ada", "bob", (2, 3))).await, Stored::Stored);
    assert_eq!(add(&lent(&world, "ada", "flo", (2, 3))).await, Stored::Duplicate, "she has two already");
    assert_eq!(add(&lent(&world, "gus", "bob", (9, 10))).await, Stored::Duplicate, "he has two already");

    let now = async |person: &str, number: u64| {
        let (given, taken) = store.delegations_of(tenant, person, hour(number)).await.unwrap();
        (given.len(), taken.len())
    };
    assert_eq!(now("ada", 1).await, (0, 0), "not yet");
    assert_eq!((now("ada", 2).await, now("bob", 2).await), ((2, 0), (0, 2)));
    assert_eq!((now("ada", 4).await, now("bob", 4).await), ((0, 0), (1, 0)), "over, and the next one has begun");

    let revoke = RevokeDelegation { tenant, delegation: first.id, at: hour(2), by: "ada".into() };
    assert_eq!(ask(store, revoke.clone()).await, Changed::Done);
    assert_eq!(ask(store, revoke).await, Changed::Gone);
    assert_eq!(now("bob", 3).await, (0, 0));
    let page = |over_by: Timestamp, after| DelegationPage { over_by, after, limit: 10 };
    let open = store.delegations(tenant, page(hour(3), None)).await.unwrap();
    assert_eq!(open, [later]);
    assert_eq!(store.delegations(tenant, page(Timestamp(0), None)).await.unwrap().len(), 3);
    let kept = store.delegations(tenant, page(Timestamp(0), Some(open[0].id))).await.unwrap();
    assert_eq!((kept.len(), kept[0].revoked_by.as_deref()), (1, Some("ada")));
    world.store.close().await;
}

async fn an_older_reading_of_an_account_undoes_nothing(database: &TestDatabase) {
    let world = database.world().await;
    let (store, read) = (&world.store, user(world.tenant, "ada"));
    assert_eq!(ask(store, AddUser(read.clone())).await, Stored::Stored);
    let disabled = UserRow { disabled_at: Some(hour(1)), ..read.clone() };
    let change = |read: &UserRow, user: UserRow| ChangeUser { read: read.clone(), user };
    assert_eq!(ask(store, change(&read, disabled.clone())).await, Changed::Done);
    let renamed = UserRow { display_name: Some("Ada".into()), ..read.clone() };
    assert_eq!(ask(store, change(&read, renamed)).await, Changed::Gone, "it would be enabled again");
    assert_eq!(store.user(world.tenant, read.id).await.unwrap(), Some(disabled.clone()));
    let unknown = user(world.tenant, "eve");
    assert_eq!(ask(store, change(&unknown, unknown.clone())).await, Changed::Gone);

    // To sign in is no change of the account.
    ask(store, NoteSignIn { tenant: world.tenant, user: read.id, at: hour(2) }).await;
    let changes = (0..8).map(|number| {
        let user = UserRow { email: Some(format!("ada-{number}@example.org")), ..disabled.clone() };
        ask(store, change(&disabled, user))
    });
    let answers = futures::future::join_all(changes).await;
    assert_eq!(answers.iter().filter(|answer| **answer == Changed::Done).count(), 1, "{answers:?}");
    world.store.close().await;
}

async fn an_invite_is_used_up_only_with_its_account(database: &TestDatabase) {
    let world = database.world().await;
    let (store, tenant, read) = (&world.store, world.tenant, user(world.tenant, "ada"));
    assert_eq!(ask(store, AddUser(read.clone())).await, Stored::Stored);
    let visit = UserSessionRow {
        tenant,
        token_hash: Hash::of(b"visit"),
        user: read.id,
        created_at: NOW,
        expires_at: hour(9),
        last_used_at: NOW,
    };
    assert_eq!(ask(store, OpenUserSession(visit)).await, Stored::Stored);
    for (link, user) in [("hers", Some(read.id)), ("first", None)] {
        let token_hash = Hash::of(link.as_bytes());
        let invite = InviteRow { tenant, token_hash, user, created_at: NOW, expires_at: hour(2), used_at: None };
        assert_eq!(ask(store, AddInvite(invite)).await, Stored::Stored);
    }
    let accept = async |link: &str, account: InvitedAccount, at: Timestamp| {
        let used = UseInvite { tenant, token_hash: Hash::of(link.as_bytes()), at };
        ask(store, AcceptInvite { used, account, ended: None }).await
    };
    let known = |read: &UserRow, password: &str| {
        let user = UserRow { password: Some(password.into()), ..read.clone() };
        InvitedAccount::Known(Box::new(ChangeUser { read: read.clone(), user }))
    };
    let added = |name: &str| InvitedAccount::New(Box::new(AddUser(user(tenant, name))));
    let password = async || store.user(tenant, read.id).await.unwrap().unwrap().password;

    let older = UserRow { email: Some("ada@example.org".into()), ..read.clone() };
    assert_eq!(accept("hers", known(&older, "one"), NOW).await, InviteOutcome::AccountChanged);
    assert_eq!(accept("hers", known(&read, "one"), hour(2)).await, InviteOutcome::Over, "it is too old then");
    assert_eq!(accept("nobody's", known(&read, "one"), NOW).await, InviteOutcome::Over);
    assert_eq!(password().await, None);
    assert!(store.user_session(visit.token_hash).await.unwrap().is_some());
    assert_eq!(accept("hers", known(&read, "one"), NOW).await, InviteOutcome::Accepted, "it was put back");
    assert_eq!(password().await.as_deref(), Some("one"));
    assert_eq!(store.user_session(visit.token_hash).await.unwrap(), None, "visits end with the old password");
    let now = store.user(tenant, read.id).await.unwrap().unwrap();
    assert_eq!(accept("hers", known(&now, "two"), NOW).await, InviteOutcome::Over, "once");
    assert_eq!(password().await.as_deref(), Some("one"));

    assert_eq!(accept("first", added("ada"), NOW).await, InviteOutcome::AccountChanged, "the name is taken");
    assert_eq!(accept("first", added("bob"), NOW).await, InviteOutcome::Accepted);
    assert_eq!(accept("first", added("eve"), NOW).await, InviteOutcome::Over);
    assert!(store.user_named(tenant, "bob").await.unwrap().is_some());
    assert_eq!(store.user_named(tenant, "eve").await.unwrap(), None);
    world.store.close().await;
}

async fn an_older_reading_of_a_tenant_undoes_nothing(database: &TestDatabase) {
    let world = database.world().await;
    let store = &world.store;
    let read = store.tenant(world.tenant).await.unwrap().unwrap();
    let mut guarded = read.clone();
    guarded.settings.two_keys_for_access = true;
    assert_eq!(ask(store, ChangeTenant { read: read.clone(), tenant: guarded.clone() }).await, Changed::Done);
    let mut lax = read.clone();
    lax.settings.self_approval = true;
    assert_eq!(ask(store, ChangeTenant { read, tenant: lax }).await, Changed::Gone, "two keys would be off again");
    assert_eq!(store.tenant(world.tenant).await.unwrap(), Some(guarded.clone()));
    let changes = (2..10).map(|weight| {
        let mut tenant = guarded.clone();
        tenant.weight = weight;
        ask(store, ChangeTenant { read: guarded.clone(), tenant })
    });
    let answers = futures::future::join_all(changes).await;
    assert_eq!(answers.iter().filter(|answer| **answer == Changed::Done).count(), 1, "{answers:?}");
    world.store.close().await;
}

async fn guesses_are_counted_and_forgotten(database: &TestDatabase) {
    let world = database.world().await;
    let (store, tenant) = (&world.store, world.tenant);
    let count = async |at: Timestamp| {
        let (name, afresh_before) = ("ada".to_owned(), at - Millis::from_mins(15));
        ask(store, CountLogin { tenant, name, at, afresh_before }).await
    };
    assert_eq!(store.login_failures(tenant, "ada").await.unwrap(), None);
    assert_eq!(count(NOW).await, 1);
    assert_eq!(count(hour(0) + Millis(5)).await, 2);
    let found = LoginFailures { count: 2, last_at: NOW + Millis(5) };
    assert_eq!(store.login_failures(tenant, "ada").await.unwrap(), Some(found));
    ask(store, NoteLoginFailure { tenant, name: "ada".into(), at: NOW + Millis(9) }).await;
    ask(store, NoteLoginFailure { tenant, name: "ada".into(), at: NOW }).await;
    let found = LoginFailures { last_at: NOW + Millis(9), ..found };
    assert_eq!(store.login_failures(tenant, "ada").await.unwrap(), Some(found), "never earlier than it was");
    assert_eq!(store.login_failures(tenant, "bob").await.unwrap(), None);
    assert_eq!(count(hour(1)).await, 1, "after a long while it starts afresh");
    ask(store, ForgetLoginFailures { tenant, name: "ada".into() }).await;
    assert_eq!(store.login_failures(tenant, "ada").await.unwrap(), None);
    world.store.close().await;
}

/// In one commit: a server that dies has either made the account and kept the answer, or neither.
async fn an_answer_is_kept_with_what_it_answers(database: &TestDatabase) {
    let world = database.world().await;
    let (store, tenant) = (&world.store, world.tenant);
    let begin = async |key: &str| {
        let begin = BeginIdempotency {
            tenant,
            client: "ci".into(),
            key: key.into(),
            source: "users".into(),
            request_hash: Hash::of(b"asked"),
            now: NOW,
            lock_until: hour(1),
            expires_at: hour(24),
            attempts_max: 3,
        };
        assert_eq!(ask(store, begin).await, Stored::Stored);
    };
    let add = async |key: &str, name: &str| {
        let answer = FinishIdempotency {
            tenant,
            client: "ci".into(),
            key: key.into(),
            state: IdempotencyState::Completed,
            response: Some(Json::trusted("1")),
            error: None,
            at: NOW,
            expires_at: hour(24),
        };
        store
            .write_with(AddUser(user(tenant, name)), AttachedWrites { answer: Some(answer), notes: Vec::new() })
            .await
            .unwrap()
    };
    begin("first").await;
    assert_eq!(add("first", "ada").await, Stored::Stored);
    let kept = store.idempotency(tenant, "ci", "first").await.unwrap().unwrap();
    assert_eq!((kept.state, kept.response), (IdempotencyState::Completed, Some(Json::trusted("1"))));
    // What was not done has no answer.
    begin("second").await;
    assert_eq!(add("second", "ada").await, Stored::Duplicate);
    let kept = store.idempotency(tenant, "ci", "second").await.unwrap().unwrap();
    assert_eq!((kept.state, kept.response), (IdempotencyState::Processing, None));
}
