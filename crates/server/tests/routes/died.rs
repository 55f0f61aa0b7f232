//! Servers that die on the way through a request: a client that sends it again to another server gets what was asked
//! for once, after whichever commit the first one died.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use interlock_engine::clock::Clock;
use interlock_engine::ids::IdSource;
use interlock_store::{AddInvite, CommitFault, FaultFrom};
use serde_json::Value;

use crate::harness::{Api, engine_of};
use crate::repeats::{Case, cases};

/// No request of these takes more commits.
const COMMITS_MAX: u32 = 3;

/// Where what a route makes is listed. Invites and signals are in no list.
fn listed(route: &str) -> Option<(&'static str, &'static str)> {
    Some(match route {
        "/policy/versions" => ("/policy/versions?limit=100", "versions"),
        "/keys" | "/keys/{key}/rotate" => ("/keys?limit=500", "keys"),
        "/users" => ("/users?limit=500", "users"),
        "/tenants" => ("/tenants", "tenants"),
        "/schedules" => ("/schedules", "schedules"),
        "/webhooks" => ("/webhooks", "endpoints"),
        "/webhook-endpoints" => ("/webhook-endpoints", "endpoints"),
        "/delegations" => ("/delegations?limit=500", "delegations"),
        "/workflows" => ("/workflows?limit=500", "workflows"),
        "/bulk" => ("/bulk?limit=500", "jobs"),
        "/worker-identities" => ("/worker-identities?limit=100", "identities"),
        "/users/{user}/invite" | "/signals" | "/runs/{run}/signals" => return None,
        _ => ("/runs?limit=500", "runs"),
    })
}

async fn count(api: &Api, route: &str) -> Option<usize> {
    let (path, field) = listed(route)?;
    let list: Value = api.get(path).await.ok();
    Some(list[field].as_array().unwrap_or_else(|| panic!("{path} has no `{field}`: {list}")).len())
}

/// A server beside `home` that dies after so many commits.
async fn dying(home: &Api, commits: u32) -> Api {
    // Two of them at one instant give out different ids.
    static SEEDS: AtomicU64 = AtomicU64::new(1);
    let seed = SEEDS.fetch_add(1, Ordering::Relaxed);
    let faults = Arc::new(FaultFrom::new(CommitFault::Died));
    let now = home.engine.now();
    let engine = engine_of(&home.database, Arc::<FaultFrom>::clone(&faults), |options| {
        options.clock = Clock::starting_at(now);
        options.ids = IdSource::seeded(options.clock.clone(), seed);
        // Only the request commits.
        options.loops = false;
    })
    .await;
    faults.after(commits);
    home.on(engine)
}

/// The request on a server that dies after so many commits. Answers whether it came to an end before.
async fn cut_short(home: &Api, case: &Case, key: &str, commits: u32) -> bool {
    let dying = dying(home, commits).await;
    let (path, body) = case.first.clone();
    let headers = [("idempotency-key", key)];
    tokio::time::timeout(Duration::from_secs(1), dying.post_with(&path, body, &headers)).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_server_dies_is_done_once_by_whoever_repeats_it() {
    let home = Api::new().await.in_charge().await;
    let mut replayed = BTreeSet::new();
    for commits in 0..=COMMITS_MAX {
        for case in cases(&home, &format!("after-{commits}-")).await {
            let (route, key) = (case.route, format!("{} after {commits}", case.route));
            let before = count(&home, route).await;
            let ended = cut_short(&home, &case, &key, commits).await;
            assert!(ended || commits < COMMITS_MAX, "{route} takes more commits than are tried");
            // The dead server's lock is waited for.
            let headers = [("idempotency-key", key.as_str()), ("prefer", "wait=60")];
            let (path, body) = case.first;
            let again = home.post_with(&path, body.clone(), &headers).await;
            assert!(again.status.is_success(), "{route}, dead after {commits}: {} {}", again.status, again.body);
            assert_eq!(count(&home, route).await, before.map(|before| before + 1), "{route}, dead after {commits}");
            let third = home.post_with(&path, body, &headers).await;
            assert_eq!(third.headers["idempotency-replayed"], "true", "{route}, dead after {commits}");
            if !ended && again.headers.contains_key("idempotency-replayed") {
                assert_eq!(again.status, 201, "{route}, dead after {commits}");
                replayed.insert(route);
            }
        }
    }
    // Between the work and the note that the request is done there is a commit in which a server can die.
    for route in cases(&home, "last-").await.into_iter().map(|case| case.route) {
        assert!(STARTS.contains(&route) || replayed.contains(route), "{route} does not keep its answer with its work");
    }
    home.end().await;
}

/// Where the server dies that a person chooses a password on, either it is set, or the link works again.
#[tokio::test(start_paused = true)]
async fn a_link_is_used_up_only_with_its_password() {
    for (commits, is_first_admin) in (0..=COMMITS_MAX).flat_map(|commits| [(commits, true), (commits, false)]) {
        let home = Api::new().await;
        let identity = home.identity();
        let mut user = None;
        if !is_first_admin {
            user = Some(identity.add_user(identity.new_user(home.tenant, "ada".into())).await.unwrap().id);
        }
        let (link, row) = identity.draft_invite(home.tenant, user);
        home.engine.store().write(AddInvite(row)).await.unwrap();
        let accept = async |api: &Api| {
            api.identity().accept_invite(&link.token, Some("ada".into()), "correct horse battery".into()).await
        };
        let server = dying(&home, commits).await;
        let _ = tokio::time::timeout(Duration::from_secs(1), accept(&server)).await;
        let ada = home.engine.store().user_named(home.tenant, "ada").await.unwrap();
        let has_password = ada.is_some_and(|ada| ada.password.is_some());
        let again = accept(&home).await.map(|user| user.name);
        assert_eq!(again.is_err(), has_password, "dead after {commits} commits: {again:?}");
        home.end().await;
    }
}

/// A start is one commit, with its key in it.
const STARTS: [&str; 6] = [
    "/runs",
    "/runs/{run}/retry",
    "/runs/{run}/restart",
    "/runs/{run}/rollback",
    "/schedules/{schedule}/trigger",
    "/executions",
];
