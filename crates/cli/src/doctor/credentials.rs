//! Where secrets come from: whether the providers answer, and whether their values can be kept out of swap. Looking needs
//! no login, which may be good for one use only.

use interlock_credentials::Tenancy;
use rustix::process::{Resource, getrlimit};

use super::Finding;
use crate::server::connectors::CredentialArgs;

/// Each secret takes a page; a worker with many steps has many.
const LOCKED_WARN_BYTES: u64 = 1 << 20;

pub async fn look(args: &CredentialArgs) -> Vec<Finding> {
    let mut findings = vec![locked_memory()];
    let credentials = match args.open(Tenancy::One, None) {
        Ok(Some(credentials)) => credentials,
        Ok(None) => return findings,
        Err(error) => {
            let found = error.to_string();
            findings.push(Finding::problem(
                "credentials",
                found,
                "mend the file; docs/guide/credentials.md has an example",
            ));
            return findings;
        }
    };
    for provider in credentials.describe().await {
        let found = format!("{} ({}, {}): {}", provider.name, provider.kind, provider.at, provider.detail);
        findings.push(if provider.reachable {
            Finding::ok("credentials", found)
        } else {
            Finding::problem("credentials", found, "steps that need its secrets fail until it answers")
        });
    }
    findings
}

fn locked_memory() -> Finding {
    const CHECK: &str = "locked memory";
    match getrlimit(Resource::Memlock).current {
        Some(limit) if limit < LOCKED_WARN_BYTES => {
            let fix = "raise it for the worker: ulimit -l 8192, or LimitMEMLOCK=8M in its unit";
            Finding::warning(CHECK, format!("at most {} KiB, so few secrets can be held at a time", limit >> 10), fix)
        }
        Some(limit) => Finding::ok(CHECK, format!("at most {} KiB", limit >> 10)),
        None => Finding::ok(CHECK, "without a limit"),
    }
}
