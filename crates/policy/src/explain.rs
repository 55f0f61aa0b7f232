//! A decision in words: which rules gave it, and what it demands.

use std::fmt::Write;

use crate::decision::{Excluded, Obligations, PolicyDecision, Scope, Undecided, Verdict};

/// What a person is told about a decision, a line for each thing.
pub fn explain(decided: &Result<PolicyDecision, Undecided>) -> String {
    let decision = match decided {
        Ok(decision) => decision,
        Err(undecided) => return format!("could not decide, so nothing is performed: {undecided}\n"),
    };
    let mut out = match decision.verdict {
        Verdict::Allow => format!("allowed (tier {})\n", decision.tier),
        Verdict::NeedsApproval => format!("needs approval (tier {})\n", decision.tier),
        Verdict::Deny => format!("denied (tier {}); nobody can approve it\n", decision.tier),
    };
    for reason in &decision.reasons {
        writeln!(out, "  rule {reason}").expect("a text takes a text");
    }
    if let Some(due) = &decision.obligations {
        describe(due, &mut out);
    }
    out
}

fn describe(due: &Obligations, out: &mut String) {
    let people = match due.quorum {
        1 => "one person".to_owned(),
        more => format!("{more} different people"),
    };
    let whose = match due.approvers.as_slice() {
        [] => "anybody who may approve".to_owned(),
        groups => format!("the groups {}", groups.join(", ")),
    };
    let covers = match due.scope {
        Scope::Step => "this step",
        Scope::Phase => "all that this phase does",
    };
    let named = |excluded: &Excluded| match excluded {
        Excluded::Starter => "the person who started the run",
        Excluded::Author => "the person who wrote the workflow",
    };
    let excluded: Vec<&str> = due.exclude.iter().map(named).collect();
    let lifted = if due.self_approval { " (unless the tenant allows self-approval)" } else { "" };
    let mut line = |text: String| writeln!(out, "  {text}").expect("a text takes a text");
    line(format!("approval: {people} of {whose}, for {covers}"));
    if !excluded.is_empty() {
        line(format!("not: {}{lifted}", excluded.join(", ")));
    }
    line(format!("reminder after {}, expires after {}", time(due.escalate_after_s), time(due.expires_after_s)));
}

fn time(seconds: u64) -> String {
    match seconds {
        s if s % 3_600 == 0 => format!("{} h", s / 3_600),
        s if s % 60 == 0 => format!("{} min", s / 60),
        s => format!("{s} s"),
    }
}
