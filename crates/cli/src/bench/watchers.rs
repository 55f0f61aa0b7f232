//! Watchers: what it costs the engine that many WebSockets watch one run.
//!
//! The engine works on runs as fast as it can (W1), and beside them on one run at an even pace; that one is watched, or
//! not, in turns, so that a drift of the machine favours neither. The watchers share the machine with the server: they
//! read what comes, check that nothing is missing, and do no more than that.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use interlock_core::ids::RunId;
use interlock_core::limits::STEPS_PER_WORKFLOW_MAX;
use interlock_core::plan::StepSpec;
use interlock_core::run::change::Context;
use interlock_protocol::live::path;
use interlock_worker::Tasks;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::BenchArgs;
use super::front::Front;
use super::harness::{Harness, bar, chain, plan, start};
use super::report::{Report, median, percentile, rss_mib};
use super::w1;

const RUNS: u64 = 20_000;
const IN_FLIGHT: usize = 256;
/// How often both are measured, watched and not.
const ROUNDS: usize = 9;
/// How long a step of the watched run takes: two events ten times a second.
const STEP: Duration = Duration::from_millis(100);
/// How long the watchers may take for the last events.
const PATIENCE: Duration = Duration::from_secs(30);
/// Beside the sockets: the store, its connections, the terminal.
const FILES_BESIDE: u64 = 256;

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let runs = args.runs.unwrap_or(RUNS);
    let in_flight = args.in_flight.unwrap_or(IN_FLIGHT);
    allow_files(args.watchers)?;
    let mut harness = Harness::new(args).await?;
    harness.work(tasks, args.workers, in_flight + 2);
    let front = Front::open(&harness).await?;
    let load = chain(args.steps)?;
    w1::drive(&harness, &load, runs / 10 + 1, in_flight, &bar(runs, "watchers: warm-up", args.json)).await?;

    let (mut without, mut with, mut latencies) = (Vec::new(), Vec::new(), Vec::new());
    let (mut frames, mut watched_seconds) = (0, 0.0);
    for round in 1..=ROUNDS {
        let watched = watched_run(&harness).await?;
        let name = |what: &str| format!("watchers: {what}, {round} of {ROUNDS}");
        // Every other round the other way round.
        for is_watched in if round.is_multiple_of(2) { [true, false] } else { [false, true] } {
            let what = name(if is_watched { "watched" } else { "not watched" });
            let progress = bar(runs, &what, args.json);
            let mut crowd = None;
            if is_watched {
                let from = version(&harness, watched).await?.unwrap_or_default();
                crowd = Some(Crowd::gather(&front, watched, from, args.watchers).await?);
            }
            let (mut times, seconds) = w1::drive(&harness, &load, runs, in_flight, &progress).await?;
            ensure!(is_going_on(&harness, watched).await?, "the watched run ended first; measure with fewer --runs");
            let rate = runs as f64 / seconds;
            match crowd {
                Some(crowd) => {
                    frames += crowd.dismiss(&harness, watched).await?;
                    watched_seconds += seconds;
                    latencies.append(&mut times);
                    with.push(rate);
                }
                None => without.push(rate),
            }
        }
        harness.engine.runs().cancel(harness.tenants[0], watched, "measured".into(), false, Context::SYSTEM).await?;
    }
    front.close().await?;

    let mut ratios: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with / without).collect();
    let ratio = median(&mut ratios);
    let (with, without) = (median(&mut with), median(&mut without));
    let steps = f64::from(args.steps);
    let mut more = serde_json::Map::new();
    more.insert("watchers".into(), args.watchers.into());
    more.insert("steps_per_s_unwatched".into(), (without * steps).into());
    more.insert("ratio".into(), ratio.into());
    more.insert("ratio_min".into(), ratios.first().copied().into());
    more.insert("ratio_max".into(), ratios.last().copied().into());
    more.insert("frames_per_s".into(), (frames as f64 / watched_seconds).into());
    let report = Report {
        workload: "watchers",
        store: harness.store_name.clone(),
        runs,
        steps: runs * u64::from(args.steps),
        in_flight,
        runs_per_s: with,
        steps_per_s: with * steps,
        p50_ms: percentile(&mut latencies, 0.5),
        p99_ms: percentile(&mut latencies, 0.99),
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}

fn tasks() -> Tasks {
    let paced = |_, (): ()| async {
        tokio::time::sleep(STEP).await;
        Ok(())
    };
    super::harness::no_ops().task("paced", paced)
}

/// A run that goes on for as long as a round may take.
async fn watched_run(harness: &Harness) -> anyhow::Result<RunId> {
    let steps = (0..STEPS_PER_WORKFLOW_MAX).map(|number| StepSpec::task(format!("s{number}"), "paced"));
    let plan = plan("bench-watched", steps.collect())?;
    Ok(harness.engine.runs().start(start(harness.tenants[0], &plan)).await?.run)
}

async fn version(harness: &Harness, run: RunId) -> anyhow::Result<Option<u64>> {
    let overview =
        harness.engine.store().run_overview(harness.tenants[0], run).await?.context("the watched run is gone")?;
    Ok((!overview.state.is_terminal()).then_some(overview.version))
}

async fn is_going_on(harness: &Harness, run: RunId) -> anyhow::Result<bool> {
    Ok(version(harness, run).await?.is_some())
}

/// Both ends of every socket are in this process.
fn allow_files(watchers: usize) -> anyhow::Result<()> {
    let needed = 2 * watchers as u64 + FILES_BESIDE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    ensure!(
        maximum.is_none_or(|maximum| maximum >= needed),
        "{watchers} watchers need {needed} open files, and this system allows {}; use fewer --watchers",
        maximum.unwrap_or_default()
    );
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).context("the limit of open files stays")?;
    Ok(())
}

/// All who watch.
struct Crowd {
    /// The event that every watcher has to see before it goes.
    until: watch::Sender<Option<u64>>,
    watchers: JoinSet<anyhow::Result<u64>>,
}

impl Crowd {
    /// Everybody has subscribed, to what comes after an event, when this returns.
    async fn gather(front: &Front, run: RunId, from: u64, watchers: usize) -> anyhow::Result<Self> {
        let (until, last) = watch::channel(None);
        let mut crowd = Self { until, watchers: JoinSet::new() };
        for _ in 0..watchers {
            let watcher = Watcher::open(front, run, from).await?;
            crowd.watchers.spawn(watcher.follow(last.clone()));
        }
        Ok(crowd)
    }

    /// Waits until all have seen what has happened by now; how many frames they got.
    async fn dismiss(mut self, harness: &Harness, run: RunId) -> anyhow::Result<u64> {
        self.until.send_replace(version(harness, run).await?);
        let mut frames = 0;
        while let Some(watcher) = self.watchers.join_next().await {
            frames += watcher??;
        }
        Ok(frames)
    }
}

/// One WebSocket, and as much of the protocol as it takes to count what comes.
pub struct Watcher {
    stream: TcpStream,
    read: Vec<u8>,
    /// The event after which it began, and the last one that came.
    from: u64,
    seen: u64,
}

impl Watcher {
    pub async fn open(front: &Front, run: RunId, from: u64) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(front.address).await.context("the server does not take connections")?;
        let path = path::WS_RUN.replace("{run}", &run.to_string());
        let request = format!(
            "GET {path}?last_event_id={from} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: d2F0Y2hlcnMgb2YgYSBydW4=\r\n\r\n",
            front.address, front.token
        );
        stream.write_all(request.as_bytes()).await?;
        let mut read = Vec::with_capacity(4 << 10);
        let end = loop {
            ensure!(stream.read_buf(&mut read).await? > 0, "the server closed the connection");
            if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let refused = || format!("the server refused a watcher: {}", String::from_utf8_lossy(&read));
        ensure!(read.starts_with(b"HTTP/1.1 101 "), refused());
        read.drain(..end);
        Ok(Self { stream, read, from, seen: from })
    }

    /// Reads until the last event has come; how many there were.
    async fn follow(mut self, mut last: watch::Receiver<Option<u64>>) -> anyhow::Result<u64> {
        loop {
            let until = *last.borrow_and_update();
            if until.is_some_and(|until| self.seen >= until) {
                return Ok(self.seen - self.from);
            }
            tokio::select! {
                news = last.changed() => news?,
                read = self.stream.read_buf(&mut self.read) => {
                    ensure!(read? > 0, "the server closed a watcher's connection");
                    self.take_frames()?;
                }
                () = tokio::time::sleep(PATIENCE), if until.is_some() => {
                    bail!("a watcher has seen {} events, and no more came", self.seen);
                }
            }
        }
    }

    /// Reads until an event of this name has come; when that was.
    pub async fn until(mut self, event: &str, now: fn() -> Instant) -> anyhow::Result<Instant> {
        loop {
            let mut at = 0;
            while let Some((text, next)) = frame(&self.read[at..])? {
                if text.windows(event.len()).any(|part| part == event.as_bytes()) {
                    return Ok(now());
                }
                at += next;
            }
            self.read.drain(..at);
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read));
            ensure!(read.await.context("the event does not come")?? > 0, "the server closed a watcher's connection");
        }
    }

    fn take_frames(&mut self) -> anyhow::Result<()> {
        let mut at = 0;
        while let Some((text, next)) = frame(&self.read[at..])? {
            if let Some(id) = event_id(text) {
                self.seen += 1;
                ensure!(id == self.seen, "event {id} came where {} was expected", self.seen);
            }
            at += next;
        }
        self.read.drain(..at);
        Ok(())
    }
}

/// The text of the first message, and where the next begins. A server neither masks nor, here, splits its messages.
fn frame(bytes: &[u8]) -> anyhow::Result<Option<(&[u8], usize)>> {
    const WHOLE_TEXT: u8 = 0x81;
    let [kind, length, rest @ ..] = bytes else { return Ok(None) };
    ensure!(*kind == WHOLE_TEXT, "the server sent a frame of kind {kind:#x} instead of text");
    let (length, head) = match (length, rest) {
        (126, [a, b, ..]) => (usize::from(u16::from_be_bytes([*a, *b])), 4),
        (126, _) => return Ok(None),
        (127, _) => bail!("the server sent a message of more than 64 KiB"),
        (short, _) => (usize::from(*short), 2),
    };
    Ok(bytes.get(head..head + length).map(|text| (text, head + length)))
}

/// The id at the beginning of an event. What is said about the stream itself has none.
fn event_id(text: &[u8]) -> Option<u64> {
    let rest = text.strip_prefix(br#"{"id":""#)?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&rest[..end]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_whatever_their_length() {
        let short = br#"{"id":"7","event":"x"}"#;
        let mut bytes = vec![0x81, short.len() as u8];
        bytes.extend_from_slice(short);
        let long = vec![b' '; 300];
        bytes.extend_from_slice(&[0x81, 126, 1, 44]);
        bytes.extend_from_slice(&long);
        let (text, next) = frame(&bytes).unwrap().unwrap();
        assert_eq!((event_id(text), next), (Some(7), 2 + short.len()));
        let (text, _) = frame(&bytes[next..]).unwrap().unwrap();
        assert_eq!((text.len(), event_id(text)), (300, None));
        for cut in [0, 1, 2, 10, next + 1, next + 3, next + 100] {
            assert!(frame(&bytes[if cut < next { 0 } else { next }..cut]).unwrap().is_none(), "{cut}");
        }
        assert!(frame(&[0x88, 2, 3, 232]).is_err(), "a close is no event");
        assert_eq!(event_id(br#"{"type":"subscribed","last_event_id":"0"}"#), None);
    }
}
