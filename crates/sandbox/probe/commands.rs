//! Commands for the tests of output, endings and trees of processes.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::raw::{call, fork_off};

pub fn run(command: &str, arguments: &[&str]) {
    let code = match (command, arguments) {
        ("tree", [mark]) => tree(mark),
        ("pour", [bytes]) => pour(bytes.parse().expect("a number")),
        ("drip", [count, millis]) => drip(count.parse().expect("a number"), millis.parse().expect("a number")),
        ("cat", paths) => cat(paths),
        ("through", [target]) => through(target),
        ("stubborn", []) => stubborn(),
        ("polite", []) => polite(),
        ("memory", [bytes]) => code(crate::raw::take_memory(bytes.parse().expect("a number"))),
        ("code", [code]) => code.parse().expect("a number"),
        ("signal", [number]) => {
            let _ = call(libc::SYS_kill, &[std::process::id() as usize, number.parse().expect("a number")]);
            0
        }
        ("environment", []) => {
            std::env::vars().for_each(|(name, value)| println!("{name}={value}"));
            0
        }
        ("arguments", []) => {
            println!("{:?}", fs::read_to_string("/proc/1/cmdline"));
            0
        }
        ("descriptors", []) => {
            let open = fs::read_dir("/proc/self/fd").expect("a list");
            let mut names: Vec<String> = open.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            println!("{}", names.join(" "));
            0
        }
        ("background", []) => {
            fork_off(wait_for_ever).expect("a child");
            0
        }
        _ => panic!("the probe does not know {command} {arguments:?}"),
    };
    std::process::exit(code)
}

/// Kept for processes that only have to be there.
pub fn victim() {
    wait_for_ever();
}

fn wait_for_ever() {
    loop {
        let _ = call(libc::SYS_pause, &[]);
    }
}

fn code(result: io::Result<()>) -> i32 {
    i32::from(result.is_err())
}

/// Children that have left their parent's session and group, and whose parents are gone.
fn tree(_mark: &str) -> i32 {
    for _ in 0..3 {
        fork_off(|| {
            let _ = call(libc::SYS_setsid, &[]);
            let _ = fork_off(|| {
                let _ = call(libc::SYS_setsid, &[]);
                ignore_signals();
                wait_for_ever();
            });
        })
        .expect("a child");
    }
    println!("grown");
    wait_for_ever();
    0
}

/// All that can be ignored.
fn ignore_signals() {
    for signal in 1..32 {
        let ignore = [1_usize, 0, 0, 0];
        let _ = call(libc::SYS_rt_sigaction, &[signal, crate::raw::address(&ignore), 0, 8]);
    }
}

fn pour(bytes: usize) -> i32 {
    let line = vec![b'x'; 64 << 10];
    let mut left = bytes;
    let mut out = io::stdout().lock();
    while left > 0 {
        let part = left.min(line.len());
        if out.write_all(&line[..part]).is_err() {
            return 1;
        }
        left -= part;
    }
    0
}

fn drip(count: u32, millis: u64) -> i32 {
    for number in 0..count {
        println!("drip {number}");
        let pause = Duration::from_millis(millis);
        let _ =
            rustix::thread::nanosleep(&rustix::thread::Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() });
    }
    0
}

fn cat(paths: &[&str]) -> i32 {
    for path in paths {
        match fs::read(path) {
            Ok(bytes) => io::stdout().write_all(&bytes).expect("stdout is read"),
            Err(error) => {
                eprintln!("{path}: {error}");
                return 1;
            }
        }
    }
    0
}

/// Asks the broker for a connection, sends a greeting, prints the answer.
fn through(target: &str) -> i32 {
    let talk = || -> io::Result<String> {
        let mut stream = UnixStream::connect("/run/egress.sock")?;
        write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\nhello")?;
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    match talk() {
        Ok(answer) => {
            println!("{answer}");
            0
        }
        Err(error) => {
            println!("{error}");
            1
        }
    }
}

fn stubborn() -> i32 {
    ignore_signals();
    println!("ready");
    wait_for_ever();
    0
}

/// Ends by itself on SIGTERM, with a code of its own.
fn polite() -> i32 {
    let mask = 1_u64 << (libc::SIGTERM - 1);
    let mask = crate::raw::address(&mask);
    call(libc::SYS_rt_sigprocmask, &[0, mask, 0, 8]).expect("a mask");
    println!("ready");
    match call(libc::SYS_rt_sigtimedwait, &[mask, 0, 0, 8]) {
        Ok(_) => {
            println!("goodbye");
            7
        }
        Err(_) => 1,
    }
}
