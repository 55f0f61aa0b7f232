//! The database: reachable, of this binary's version, set to keep what it was told, and with rows that agree.

use std::path::Path;

use interlock_core::ids::{RunId, TenantId};
use interlock_store::{CorruptRow, OpenError, ReadError, StoreUrl};

use super::Finding;
use crate::output::causes::causes;
use crate::output::span;
use crate::server::open;

/// Live runs that are loaded: enough for most stores, and soon done.
const RUNS_LOOKED_AT_MAX: usize = 20_000;
/// Runs that are named which a restore has not parked.
const UNPARKED_TOLD_MAX: usize = 5;

pub async fn look(store: Option<&str>, data: &Path) -> Vec<Finding> {
    let url = store.map_or_else(|| format!("sqlite:{}", data.join("interlock.db").display()), str::to_owned);
    let parsed = match StoreUrl::parse(&url) {
        Ok(parsed) => parsed,
        Err(error) => return vec![Finding::problem("store", error.to_string(), "sqlite:PATH or postgres://…")],
    };
    if let StoreUrl::Sqlite(path) = &parsed
        && !path.exists()
    {
        if open::lost_database(&url, data).is_some() {
            let found = format!("{} is not there, although a server has run with this data folder", path.display());
            let fix = "mount its disk, put it back, or restore a backup (`interlock db restore`); where the server's store is \
                       another one, name it with --store";
            return vec![Finding::warning("store", found, fix)];
        }
        let found = format!("{} does not exist yet; `interlock up` makes it", path.display());
        return vec![Finding::skipped("store", found)];
    }
    let opened = match open::store_to_read(&url).await {
        Ok(opened) => opened,
        Err(error) => return vec![refused(&error)],
    };
    let mut findings = vec![Finding::ok("store", format!("{parsed} opens, and its schema is this binary's"))];
    if let Ok(Some(epoch)) = opened.restoring().await {
        let found = format!("its restore (epoch {epoch}) was interrupted before all runs were parked");
        findings.push(Finding::problem(
            "restore",
            found,
            "run `interlock db restore` again; it goes on where it stopped",
        ));
    }
    findings.extend(unparked(opened.unparked(UNPARKED_TOLD_MAX).await));
    findings.extend(clock(&opened).await);
    findings.extend(durable(&opened).await);
    findings.extend(encrypted(&parsed, &opened).await);
    match opened.stats().await {
        Ok(stats) => {
            let runs = span::counted(stats.live_runs, "live run", "live runs");
            let found = format!("{runs}, {} under way", span::counted(stats.live_claims, "step", "steps"));
            findings.push(Finding::ok("store contents", found));
        }
        Err(error) => {
            findings.push(Finding::problem("store contents", error.to_string(), "interlock db check --store …"));
        }
    }
    findings.push(unreadable(&opened).await);
    opened.close().await;
    findings
}

/// Runs that the last restore could not read, and so has not parked.
fn unparked(found: Result<Vec<(TenantId, RunId)>, ReadError>) -> Option<Finding> {
    let fix = "mend their rows, or start the release that has written them: each is paused as soon as it can be read; \
               `interlock db check --store …` names the rows";
    match found {
        Ok(runs) if runs.is_empty() => None,
        Ok(runs) => {
            let named: Vec<String> = runs.iter().map(|(_, run)| run.to_string()).collect();
            let more = if runs.len() == UNPARKED_TOLD_MAX { ", and perhaps more" } else { "" };
            let found = format!("not paused after the restore, which could not read them: {}{more}", named.join(", "));
            Some(Finding::problem("restore", found, fix))
        }
        Err(error) => Some(Finding::problem("restore", error.to_string(), fix)),
    }
}

/// Live runs that cannot be read; loops leave them alone.
async fn unreadable(store: &interlock_store::Store) -> Finding {
    live_runs(store.unreadable_runs(RUNS_LOOKED_AT_MAX).await)
}

/// How many runs were looked at, and those that cannot be read.
type LiveRuns = (usize, Vec<(TenantId, RunId, CorruptRow)>);

fn live_runs(found: Result<LiveRuns, ReadError>) -> Finding {
    const NAMED_MAX: usize = 5;
    let fix = "interlock db check --store … lists all rows that are wrong; restore a backup, or mend the row";
    match found {
        Ok((looked_at, runs)) if runs.is_empty() => {
            Finding::ok("live runs", format!("all {looked_at} that were looked at can be read"))
        }
        Ok((_, runs)) => {
            let named: Vec<String> =
                runs.iter().take(NAMED_MAX).map(|(_, run, why)| format!("{run} ({why})")).collect();
            let more =
                if runs.len() > NAMED_MAX { format!(", and {} more", runs.len() - NAMED_MAX) } else { String::new() };
            Finding::problem("live runs", format!("cannot be read: {}{more}", named.join(", ")), fix)
        }
        Err(error) => Finding::problem("live runs", error.to_string(), fix),
    }
}

fn refused(error: &anyhow::Error) -> Finding {
    let what = causes(error);
    match error.downcast_ref::<OpenError>() {
        Some(OpenError::NeedsMigration { .. }) => {
            Finding::warning("store", what, "interlock db migrate, or just start the server: it migrates by itself")
        }
        Some(OpenError::NewerSchema { .. } | OpenError::ChecksumChanged { .. }) => {
            Finding::problem("store", what, "use the release that wrote it, or a newer one")
        }
        Some(OpenError::NotAStore { .. }) => {
            Finding::problem("store", what, "name Interlock's own file or folder with --store or --data")
        }
        Some(OpenError::Tls { .. }) => Finding::problem(
            "store",
            what,
            "mend the `ssl…` parameters of --store; docs/reference/postgres.md lists them",
        ),
        Some(OpenError::Connect { .. }) => {
            Finding::problem("store", what, "start the database, and check the address, user and password in --store")
        }
        _ => Finding::problem("store", what, "check the address in --store and the permissions of the file"),
    }
}

/// How far the database's clock is from this machine's, where it has its own.
async fn clock(store: &interlock_store::Store) -> Option<Finding> {
    let theirs = store.server_time().await.ok().flatten()?;
    let off = span::now().0.abs_diff(theirs.0);
    Some(if off < 5_000 {
        Finding::ok("store clock", "agrees with this machine's")
    } else {
        let found = format!("{} away from this machine's", span::span(interlock_core::time::Millis(off)));
        Finding::problem("store clock", found, "set both machines' clocks by the network (NTP)")
    })
}

/// Whether others on the way to the database can read along.
async fn encrypted(url: &StoreUrl, store: &interlock_store::Store) -> Option<Finding> {
    let encrypted = store.encrypted().await.ok().flatten()?;
    Some(if encrypted {
        Finding::ok("store connection", "encrypted")
    } else if url.is_local() {
        Finding::ok("store connection", "not encrypted, and does not leave this machine")
    } else {
        let fix = "turn on `ssl` in the database and add `sslmode=verify-full` to --store";
        Finding::warning("store connection", "not encrypted: anyone on the network between can read it", fix)
    })
}

/// Whether what is committed survives a crash of the machine.
async fn durable(store: &interlock_store::Store) -> Vec<Finding> {
    let settings = match store.durability().await {
        Ok(settings) => settings,
        Err(error) => {
            let fix = "check the permissions of the database user";
            return vec![Finding::warning("durability", error.to_string(), fix)];
        }
    };
    settings
        .into_iter()
        .map(|setting| {
            let found = format!("{} = {}", setting.name, setting.value);
            if setting.durable {
                Finding::ok("durability", found)
            } else {
                let fix =
                    format!("set {} to {}: with this value a crash can lose commits", setting.name, setting.wanted);
                Finding::problem("durability", found, fix)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[tokio::test]
    async fn a_database_that_was_lost_is_told_from_one_that_is_not_made_yet() {
        let data = std::env::temp_dir().join(format!("interlock-doctor-store-{}", std::process::id()));
        std::fs::create_dir_all(&data).unwrap();
        assert_eq!(look(None, &data).await[0].verdict, Verdict::Skipped);
        std::fs::write(data.join(crate::server::LOCAL_KEY_FILE), "").unwrap();
        let lost = look(None, &data).await;
        assert_eq!(lost[0].verdict, Verdict::Warning);
        assert!(lost[0].fix.as_ref().is_some_and(|fix| fix.contains("interlock db restore")));
        std::fs::remove_dir_all(&data).unwrap();
    }

    #[test]
    fn runs_that_a_restore_has_not_parked_are_named() {
        assert!(unparked(Ok(Vec::new())).is_none());
        let runs: Vec<_> =
            (1..=2).map(|number| (TenantId::from_bytes([1; 16]), RunId::from_bytes([number; 16]))).collect();
        let finding = unparked(Ok(runs.clone())).unwrap();
        assert_eq!(finding.verdict, Verdict::Problem);
        assert!(runs.iter().all(|(_, run)| finding.found.contains(&run.to_string())), "{}", finding.found);
    }

    #[test]
    fn runs_that_cannot_be_read_are_named_with_what_is_wrong() {
        assert_eq!(live_runs(Ok((7, Vec::new()))).verdict, Verdict::Ok);
        let broken = |number: u8| {
            let (run, what) = (RunId::from_bytes([number; 16]), "it is no JSON".to_owned());
            let row = CorruptRow { table: "run_live", column: "step_data", row: run.to_string(), what };
            (TenantId::from_bytes([1; 16]), run, row)
        };
        let finding = live_runs(Ok((7, (1..=6).map(broken).collect())));
        assert_eq!(finding.verdict, Verdict::Problem);
        let first = RunId::from_bytes([1; 16]).to_string();
        assert!(finding.found.contains(&first) && finding.found.contains("column step_data"), "{}", finding.found);
        assert!(finding.found.ends_with(", and 1 more"), "{}", finding.found);
        assert!(finding.fix.is_some_and(|fix| fix.contains("interlock db check")));
    }
}
