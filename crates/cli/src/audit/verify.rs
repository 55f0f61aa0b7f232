//! `interlock audit verify`.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use interlock_core::ids::TenantId;
use interlock_core::text::visible::visible;
use interlock_evidence::export::{self, ExportError};
use interlock_evidence::limits::CHECKPOINT_BYTES_MAX;
use interlock_evidence::verify_log::{Expected, VerifiedLog, verify_log};
use interlock_protocol::identity::Me;
use interlock_protocol::identity::path::ME;
use serde_json::json;

use super::{copy, key, read};
use crate::client::{ClientArgs, ClientError};
use crate::output::exit::{Exit, ExitError};

#[derive(Debug, Args)]
pub struct AuditVerifyArgs {
    /// A file that `audit export` wrote; the server's log where omitted.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The public key, as PEM or as a line `NAME+ID+KEY`; the server's own where omitted.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// A checkpoint that was kept elsewhere: the log must still begin with the entries that it covers.
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// The name that the log must have.
    #[arg(long)]
    origin: Option<String>,
    /// Which of the tenant's logs; the present one where omitted.
    #[arg(long, value_name = "NUMBER", conflicts_with = "file")]
    log: Option<u64>,
}

pub async fn run(client: &ClientArgs, args: AuditVerifyArgs) -> anyhow::Result<()> {
    let key = key(args.key.as_ref(), client).await?;
    let kept = args.checkpoint.as_deref().map(|file| read(file, CHECKPOINT_BYTES_MAX as u64)).transpose()?;
    let mut origin = args.origin;
    let log = if let Some(file) = &args.file {
        let cannot = || format!("{} cannot be read", file.display());
        let opened = File::open(file).with_context(cannot)?;
        match export::read(BufReader::new(opened)) {
            Ok(log) => log,
            Err(ExportError::Io(error)) => return Err(error).with_context(cannot),
            // A verdict, too: the copy is not the one that was exported.
            Err(error) => return damaged(client, format!("{}: {error}", file.display()), "The copy is damaged"),
        }
    } else {
        let (server, _) = client.open()?;
        let log = match copy::fetch(&server, args.log).await {
            Ok(log) => log,
            // What is stored cannot even be put together: that is a verdict, not a failure to reach one.
            Err(error) => return damaged(client, damage(error)?, "Its rows are damaged"),
        };
        if origin.is_none() {
            let me: Me = server.get(ME).send().await?;
            origin = log.checkpoints.first().and_then(|head| origin_of(me.tenant, head));
        }
        log
    };
    let printer = client.output.printer();
    let expected = Expected { origin: origin.as_deref(), kept_elsewhere: kept.as_deref() };
    match verify_log(&log, expected, &key) {
        Ok(verified) => {
            let VerifiedLog { head, opened, closed, actors_closed } = &verified;
            let shown = json!({
                "verified": true, "origin": head.origin, "size": head.size, "root": head.root.to_string(),
                "opened": opened, "closed": closed, "actors_closed": actors_closed,
            });
            printer.show(&shown, |_| in_words(&verified))
        }
        Err(bad) => {
            let shown = json!({
                "verified": false, "entry": bad.index, "tampering": bad.kind.to_string(), "what": bad.what,
            });
            let words = visible(&bad.to_string()).into_owned();
            printer.show(&shown, |_| format!("The log was tampered with. First bad {words}"))?;
            Err(ExitError::silently(Exit::Unsuccessful))
        }
    }
}

/// The name that the tenant's log has, if the head is one of this server's: another tenant's log does not pass for it.
fn origin_of(tenant: TenantId, head: &str) -> Option<String> {
    let mut parts = head.lines().next()?.rsplitn(3, '/');
    let (number, _, server) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{server}/{tenant}/{number}"))
}

/// The verdict on a whole log, with what it does not show: that may have been erased, or taken out of this copy.
fn in_words(verified: &VerifiedLog) -> String {
    let VerifiedLog { head, opened, closed, actors_closed } = verified;
    let origin = visible(&head.origin);
    let missing = |count: u64, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what} erased or not shown"),
    };
    let (closed, actors) = (missing(*closed, "details"), missing(*actors_closed, "actors"));
    format!("The log {origin} is whole: {} entries, {opened} with details{closed}{actors}.", head.size)
}

/// What the server says of rows that contradict themselves; any other error is one.
fn damage(error: anyhow::Error) -> anyhow::Result<String> {
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Refused { problem, .. }) if problem.code == "AUDIT_BROKEN" => Ok(own_words(&problem.detail)),
        _ => Err(error),
    }
}

/// The server's words without its advice to run this command.
fn own_words(detail: &str) -> String {
    detail.strip_suffix("; run `interlock audit verify`").unwrap_or(detail).to_owned()
}

fn damaged(client: &ClientArgs, what: String, head: &str) -> anyhow::Result<()> {
    let shown = json!({ "verified": false, "entry": null, "tampering": "damaged", "what": what });
    let words = visible(&what).into_owned();
    client.output.printer().show(&shown, |_| format!("The log was tampered with. {head}: {words}"))?;
    Err(ExitError::silently(Exit::Unsuccessful))
}

#[cfg(test)]
mod tests {
    use interlock_core::json::Hash;
    use interlock_evidence::checkpoint::Checkpoint;

    use super::*;

    #[test]
    fn damaged_rows_are_told_without_the_advice_to_do_what_was_just_done() {
        let told = interlock_engine::EngineError::AuditBroken { what: "the block of entry 4".into() }.to_string();
        assert_eq!(own_words(&told), "the audit log contradicts itself (the block of entry 4)");
    }

    #[test]
    fn a_log_of_another_tenant_does_not_have_the_callers_name() {
        let (own, other) = (TenantId::from_bytes([1; 16]), TenantId::from_bytes([2; 16]));
        let name = |tenant: TenantId| format!("interlock/4f0c/{tenant}/2");
        let head = format!("{}\n20\nroot\n", name(other));
        assert_eq!(origin_of(other, &head), Some(name(other)));
        assert_eq!(origin_of(own, &head), Some(name(own)));
        assert_eq!(origin_of(own, "somewhere\n20\n"), None);
    }

    #[test]
    fn the_verdict_says_what_is_not_shown() {
        let head = Checkpoint { origin: "interlock/a".into(), size: 20, root: Hash([0; 32]) };
        let mut verified = VerifiedLog { head, opened: 20, closed: 0, actors_closed: 0 };
        assert_eq!(in_words(&verified), "The log interlock/a is whole: 20 entries, 20 with details.");
        verified.actors_closed = 18;
        assert_eq!(
            in_words(&verified),
            "The log interlock/a is whole: 20 entries, 20 with details, 18 actors erased or not shown."
        );
        (verified.opened, verified.closed) = (17, 3);
        assert_eq!(
            in_words(&verified),
            "The log interlock/a is whole: 20 entries, 17 with details, 3 details erased or not shown, 18 actors erased or \
             not shown."
        );
    }
}
