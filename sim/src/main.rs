//! `cargo run -p interlock-sim -- SEED` simulates one seed and prints what happens; `FIRST..END` simulates many and
//! prints only what is broken, and what they exercised. The name of a planted bug behind either puts it into the code.

use std::ops::Range;
use std::process::ExitCode;

use interlock_core::planted::{Bug, plant};
use interlock_sim::{Counts, run_seed};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (argument, bug) = match arguments.as_slice() {
        [argument] => (argument, None),
        [argument, bug] => match Bug::ALL.iter().find(|known| format!("{known:?}") == *bug) {
            Some(bug) => (argument, Some(*bug)),
            None => return usage(),
        },
        _ => return usage(),
    };
    plant(bug);
    if let Some(seeds) = range(argument) {
        return many(seeds);
    }
    let Ok(seed) = argument.parse() else { return usage() };
    match run_seed(seed, true) {
        Ok(passed) => {
            println!("seed {seed}: every promise held\n{}hash {:016x}", passed.counts, passed.hash);
            ExitCode::SUCCESS
        }
        Err(failed) => {
            eprintln!("{failed}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: interlock-sim (SEED | FIRST..END) [BUG]");
    ExitCode::FAILURE
}

fn range(argument: &str) -> Option<Range<u64>> {
    let (first, end) = argument.split_once("..")?;
    Some(first.parse().ok()?..end.parse().ok()?)
}

fn many(seeds: Range<u64>) -> ExitCode {
    let mut counts = Counts::default();
    let mut failures = 0;
    for seed in seeds {
        match run_seed(seed, false) {
            Ok(passed) => counts.merge(&passed.counts),
            Err(failed) => {
                failures += 1;
                println!("seed {seed}: {}", failed.what);
            }
        }
    }
    println!("{counts}{failures} seeds failed");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
