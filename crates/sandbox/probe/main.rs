//! Started by the tests, outside and inside of sandboxes: as shim, as command, as attacker, as worker.

mod attempts;
mod commands;
mod ground;
mod raw;
mod suite;
mod worker;

fn main() {
    interlock_sandbox::shim::main_if_shim();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        // For the attempts on programs that the host has marked: who am I?
        [] | ["euid"] => std::process::exit(i32::from(!rustix::process::geteuid().is_root())),
        ["attempts", ground] => attempts::run_all(ground),
        ["suite", base] => suite::run(base),
        ["worker", rest @ ..] => worker::run(rest),
        ["victim"] => commands::victim(),
        [command, rest @ ..] => commands::run(command, rest),
    }
}
