//! `cargo run -p interlock-sim -- SEED…`: simulates seeds and prints what happens.

use std::process::ExitCode;

fn main() -> ExitCode {
    let seeds: Vec<u64> = std::env::args().skip(1).filter_map(|seed| seed.parse().ok()).collect();
    if seeds.is_empty() {
        eprintln!("usage: interlock-sim SEED…");
        return ExitCode::FAILURE;
    }
    for seed in seeds {
        match interlock_sim::run_seed(seed, true) {
            Ok(passed) => println!("seed {seed}: every promise held\n{}  {:016x} hash", passed.counts, passed.hash),
            Err(failed) => {
                eprintln!("{failed}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
