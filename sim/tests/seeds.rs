//! Many seeds, each a world of its own. `INTERLOCK_SIM_SEEDS` says how many, `INTERLOCK_SIM_FIRST` where to begin;
//! `INTERLOCK_SIM_SEED` simulates a single one and prints all that happens in it.

use std::ops::Range;

use interlock_sim::{Counts, Fault, run_seed};

/// Each chunk is a test, so that they run side by side.
const CHUNKS: u64 = 2;
const SEEDS: u64 = 60;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, which is not a number")))
}

fn chunk(index: u64) {
    if let Some(seed) = number("INTERLOCK_SIM_SEED") {
        if index == 0 {
            let passed = run_seed(seed, true).unwrap_or_else(|failed| panic!("{failed}"));
            println!("seed {seed}: every promise held\n{}", passed.counts);
        }
        return;
    }
    let (seeds, first) = (number("INTERLOCK_SIM_SEEDS").unwrap_or(SEEDS), number("INTERLOCK_SIM_FIRST").unwrap_or(0));
    let range = first + index * seeds / CHUNKS..first + (index + 1) * seeds / CHUNKS;
    let mut counts = Counts::default();
    for seed in range.clone() {
        match run_seed(seed, false) {
            Ok(passed) => counts.merge(&passed.counts),
            Err(failed) => panic!("{failed}"),
        }
    }
    println!("{range:?}\n{counts}");
    enough_happened(&range, &counts);
}

/// What a hundred seeds exercise at the least, and others in proportion. Less, and a green test means little.
const PER_HUNDRED: &[(&str, u64)] = &[
    ("commits", 5_000),
    ("runs succeeded", 150),
    ("runs failed", 40),
    ("runs canceled", 15),
    ("effects sent: read", 50),
    ("effects sent: idempotent", 50),
    ("effects sent: keyed", 50),
    ("effects sent: unsafe", 50),
    ("effects answered from their receipt", 20),
    ("steps taken over or tried again", 60),
    ("steps handed on", 40),
    ("reports refused", 5),
    ("reports answered again", 2),
    ("sessions lost", 4),
    ("doubts resolved", 3),
    ("signals", 200),
    ("signals dropped as repeats", 100),
    ("starts replayed", 50),
    ("starts queued", 10),
    ("starts signaled", 1),
    ("subject held by another workspace", 4),
    ("engines stopped in good order", 20),
    ("votes for", 40),
    ("votes against", 4),
    ("tasks that wait", 40),
    ("messages delivered", 40),
    ("workers drained", 3),
    ("watchers came back", 500),
    ("command: pause", 20),
    ("command: resume", 10),
    ("command: retry", 5),
    ("command: skip", 5),
    ("command: restart from a step", 4),
    ("command: roll back", 1),
    ("command: cancel", 8),
    ("command: cancel and roll back", 5),
    ("command: resume as new", 15),
    ("worlds of several servers", 20),
    ("sessions of the worker crate", 40),
    ("rows made unreadable", 8),
    ("runs swept", 5),
    ("payloads put aside", 30),
    ("bulk jobs", 8),
    ("restores broken off", 1),
    ("slots started", 100),
    ("slots skipped", 5),
    ("schedules paused, resumed or triggered", 10),
    ("webhook deliveries", 20),
    ("signals that start runs", 20),
    ("deliveries repeated", 20),
    ("delivery id used for another body", 5),
    ("webhooks taken", 1_000),
    ("webhooks refused", 50),
    ("webhooks repeated", 5),
    ("endpoints hung", 2),
    ("endpoints that were not held up", 2),
    ("dead letters replayed", 2),
    ("effects sent unasked", 50),
    ("polls that kept a place", 10),
    ("ready runs that did not fit", 5),
    ("change sets by the priority lane", 10),
    ("worlds whose clocks differ by all that is tolerated", 3),
    ("doubts resolved at once", 1),
    ("storms that ended on unreadable rows", 2),
    ("runs of bulk jobs", 1),
    ("endpoints enabled again", 5),
    ("verifications of rollbacks", 5),
    ("command: retry with another input", 4),
    ("command: fail", 8),
    ("votes refused", 40),
    ("runs that ended as expired", 5),
    ("approvals refused while their run was paused", 2),
    ("tasks that report a refusal", 10),
    ("intents refused", 2),
    ("effects not sent: lease too short", 2),
    ("steps given back", 2),
    ("turns of a subject", 4),
    ("subject busy", 1),
    ("key used with another request", 30),
    ("events watched", 5_000),
];

fn enough_happened(seeds: &Range<u64>, counts: &Counts) {
    let least = |of_hundred: u64| of_hundred * (seeds.end - seeds.start) / 100;
    let faults = Fault::ALL.iter().map(|fault| (fault.name(), 5));
    let expected = PER_HUNDRED.iter().copied().chain(faults).map(|(what, of_hundred)| (what, least(of_hundred)));
    let short: Vec<String> = expected
        .filter(|(what, least)| counts.get(what) < *least)
        .map(|(what, least)| format!("{} times `{what}`, expected at least {least}", counts.get(what)))
        .collect();
    assert!(short.is_empty(), "too little happened in {seeds:?}:\n{}", short.join("\n"));
}

macro_rules! chunks {
    ($($name:ident = $index:literal),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                chunk($index);
            }
        )+
    };
}

chunks! {
    seeds_0 = 0,
    seeds_1 = 1,
}
