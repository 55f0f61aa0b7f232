//! `interlock sandbox`: what this host can confine commands with, and one command tried out under a profile.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_core::text::visible::visible;
use interlock_sandbox::{
    CommandRule, CommandRules, Control, Outcome, Profile, ProofState, Request, Sandbox, SandboxOptions, Stream,
};
use serde::Serialize;

use crate::output::exit::{Exit, ExitError};
use crate::output::paint::Tone;
use crate::output::{OutputArgs, Printer};

#[derive(Args)]
pub struct SandboxArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: SandboxVerb,
}

#[derive(Subcommand)]
enum SandboxVerb {
    /// Prove what this host has, control by control, and which profiles it can offer.
    Check,
    /// Run one command under a profile, as a worker would, and exit with its status.
    Run(TryArgs),
}

#[derive(Args)]
struct TryArgs {
    /// prod-critical, prod-standard, staging-standard or dev-flex.
    #[arg(long)]
    profile: Profile,
    /// How long it may take, in seconds; the profile's limit by default.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// The program, by its absolute path, and its arguments.
    #[arg(last = true, required = true)]
    argv: Vec<String>,
}

/// What a host has.
#[derive(Serialize)]
struct HostReport {
    controls: Vec<ControlReport>,
    profiles: Vec<ProfileReport>,
}

#[derive(Serialize)]
struct ControlReport {
    control: Control,
    proven: bool,
    evidence: String,
}

#[derive(Serialize)]
struct ProfileReport {
    profile: Profile,
    offered: bool,
    /// The first control that is missing, and what was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

pub async fn run(args: SandboxArgs) -> anyhow::Result<()> {
    let printer = args.output.printer();
    let sandbox = Sandbox::open(SandboxOptions::default()).await;
    let sandbox = sandbox.context("the sandbox needs bubblewrap (`bwrap`)")?;
    match args.verb {
        SandboxVerb::Check => check(&sandbox, printer),
        SandboxVerb::Run(args) => try_out(&sandbox, args).await,
    }
}

fn check(sandbox: &Sandbox, printer: Printer) -> anyhow::Result<()> {
    let controls = sandbox.proofs().iter().map(|(control, proof)| ControlReport {
        control,
        proven: proof.standing == ProofState::Proven,
        evidence: proof.evidence.clone(),
    });
    let profiles = Profile::ALL.iter().map(|profile| {
        let refused = sandbox.offers(*profile).err();
        ProfileReport { profile: *profile, offered: refused.is_none(), why: refused.map(|why| why.to_string()) }
    });
    let report = HostReport { controls: controls.collect(), profiles: profiles.collect() };
    printer.show(&report, |paint| {
        let mut text = String::new();
        for ControlReport { control, proven, evidence } in &report.controls {
            let standing = if *proven { paint.tone(Tone::Good, "proven") } else { paint.tone(Tone::Bad, "absent") };
            let _ = writeln!(text, "{:<22} {standing}  {}", control.name(), visible(evidence));
        }
        text.push('\n');
        for ProfileReport { profile, why, .. } in &report.profiles {
            let told = match why {
                None => paint.tone(Tone::Good, "offered"),
                Some(why) => visible(why).into_owned(),
            };
            let _ = writeln!(text, "{:<22} {told}", profile.name());
        }
        text
    })
}

/// No policy judges what is tried out here, only the user who types it: that command is the rule.
async fn try_out(sandbox: &Sandbox, args: TryArgs) -> anyhow::Result<()> {
    let refused = |error: &dyn std::fmt::Display| ExitError::saying(Exit::Usage, error.to_string());
    let mut rules = CommandRules::default();
    let program = args.argv.first().cloned().unwrap_or_default();
    // What is no program makes no rule, and is refused for what it is.
    rules.allow.extend(format!("{program} {{arguments...}}").parse::<CommandRule>().ok());
    // Word for word it also names what the command starts, as in `env A=1 id`. Words with spaces fit the first rule alone.
    rules.allow.extend(args.argv.join(" ").parse::<CommandRule>().ok());
    let command = rules.permit(args.profile, args.argv).map_err(|error| refused(&error))?;
    let mut request = Request::new(command);
    if let Some(seconds) = args.timeout {
        request = request.timeout(Duration::from_secs(seconds));
    }
    let mut running = sandbox.run(request).await?;
    while let Some(chunk) = running.next().await {
        match chunk.stream {
            Stream::Stdout => std::io::stdout().write_all(&chunk.bytes)?,
            Stream::Stderr | Stream::Status => std::io::stderr().write_all(&chunk.bytes)?,
        }
    }
    std::io::stdout().flush()?;
    let ended = running.end().await;
    let code = match ended.outcome {
        Outcome::Exited { code: 0 } => return Ok(()),
        Outcome::Exited { code } => code,
        Outcome::Signaled { signal } => 128 + signal,
        Outcome::Canceled | Outcome::TimedOut | Outcome::NotRenewed | Outcome::Killed => {
            anyhow::bail!("the command was ended: {:?}", ended.outcome)
        }
    };
    // The command's own word, as a shell would pass it on.
    std::process::exit(i32::from(u8::try_from(code).unwrap_or(u8::MAX)))
}
