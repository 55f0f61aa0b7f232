//! What the command line itself needs: its config, and a server that answers.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Command, CommandFactory};
use interlock_core::text::nearest::nearest;
use interlock_protocol::health::Health;
use interlock_protocol::problem::Problem;
use interlock_protocol::runs::path;

use super::Finding;
use crate::client::contexts::{self, Contexts};
use crate::client::target::TargetArgs;
use crate::client::{Client, ClientError};
use crate::config;
use crate::output::span;

/// Variables that are read without a flag of the same meaning.
const WITHOUT_A_FLAG: [&str; 2] = ["INTERLOCK_API_KEY", "INTERLOCK_CONFIG_DIR"];
/// A clock that is further off than this is worth a word.
const SKEW_MAX: Duration = Duration::from_secs(5);

pub fn contexts_file() -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.push(match (Contexts::load(), contexts::path()) {
        (Ok(contexts), Ok(path)) => {
            let current = contexts.current.as_deref().unwrap_or("none");
            let count = contexts.contexts.len();
            let count = span::counted(count as u64, "context", "contexts");
            let found = format!("{count}, current: {current} ({})", path.display());
            match contexts.current.as_deref().filter(|name| !contexts.contexts.contains_key(*name)) {
                Some(gone) => {
                    let fix = "choose another one: interlock context use NAME";
                    Finding::problem("config", format!("the current context `{gone}` does not exist"), fix)
                }
                None => Finding::ok("config", found),
            }
        }
        (Err(error), _) => Finding::problem("config", error.to_string(), "mend or remove the file"),
        (_, Err(_)) => Finding::skipped("config", "there is no home folder, so there are no contexts"),
    });
    let mut known: BTreeSet<String> = WITHOUT_A_FLAG.map(str::to_owned).into();
    variables(&crate::Cli::command(), &mut known);
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| name.starts_with("INTERLOCK_") && !known.contains(name)) {
        // Another one that begins the same way is likely a typing mistake.
        let fix = match nearest(&name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => "remove it from the environment".to_owned(),
        };
        findings.push(Finding::warning("environment", format!("{name} is set, and nothing reads it"), fix));
    }
    findings
}

/// Every variable that some command reads.
fn variables(command: &Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(config::variable));
    for verb in command.get_subcommands() {
        variables(verb, known);
    }
}

/// Whether the server that commands would talk to answers, takes the credential, and agrees about the time.
pub async fn server(args: &TargetArgs) -> Vec<Finding> {
    let client = match args.target().and_then(|target| Ok(Client::new(target)?)) {
        Ok(client) => client,
        Err(error) => return vec![Finding::problem("server", error.to_string(), "interlock context show")],
    };
    let (server, from) = (client.target().server.clone(), client.target().from);
    let response = match client.get("/readyz").open().await {
        Ok(response) => response,
        Err(error) => {
            let fix = error.hint().unwrap_or_default();
            // Where no server was named, the user may be about to start one.
            return vec![match from {
                "the default" => Finding::warning("server", error.to_string(), fix),
                _ => Finding::problem("server", error.to_string(), fix),
            }];
        }
    };
    let mut findings = Vec::new();
    findings.extend(skew(&response));
    let status = response.status();
    let body = response.bytes().await.unwrap_or_default();
    findings.push(if status.is_success() {
        Finding::ok("server", format!("{server} is ready ({from})"))
    } else {
        let why = serde_json::from_slice::<Problem>(&body).map(|problem| problem.detail).unwrap_or_default();
        let fix = match () {
            () if why.contains("disk is full") => {
                "free some space on the disk of the database; the server goes on by itself"
            }
            () if why.contains("removed or replaced") => {
                "leave the server running, and save what it has open: docs/guide/runbooks.md says how (the file of the database \
                 is gone)"
            }
            () if why.contains("restart") => "restart the server",
            () => "look into the server's log; its database may be away",
        };
        Finding::problem("server", format!("{server} answers {status}, it is not ready: {why}"), fix)
    });
    if let Ok(Health { problems, .. }) = serde_json::from_slice(&body) {
        let fix = "look into the server's log, and run interlock db check";
        findings.extend(problems.into_iter().map(|problem| Finding::warning("server", problem, fix)));
    }
    findings.push(match client.get(path::RUNS).query("limit", Some(1)).done().await {
        Ok(()) => Finding::ok("credential", "the server takes it"),
        Err(error @ ClientError::Refused { .. }) => {
            let fix = error.hint().unwrap_or_else(|| "interlock login".to_owned());
            Finding::problem("credential", error.to_string(), fix)
        }
        Err(error) => Finding::warning("credential", error.to_string(), "try again"),
    });
    findings
}

/// How far this machine's clock is from the server's. The header counts whole seconds.
fn skew(response: &reqwest::Response) -> Option<Finding> {
    let date = response.headers().get(reqwest::header::DATE)?.to_str().ok()?;
    let theirs = jiff::fmt::rfc2822::parse(date).ok()?.timestamp().as_millisecond();
    let off = span::now().0.abs_diff(theirs);
    Some(if off <= SKEW_MAX.as_millis() as u64 {
        Finding::ok("clock", "agrees with the server's")
    } else {
        let found =
            format!("this machine's clock is {} away from the server's", span::span(interlock_core::time::Millis(off)));
        Finding::warning("clock", found, "turn on time synchronisation: timedatectl set-ntp true")
    })
}
