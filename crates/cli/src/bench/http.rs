//! HTTP: runs started by `POST /runs`, durable and each under its own idempotency key, over connections that are kept
//! open; first as fast as the server answers, then at half that rate.
//!
//! The load generator shares the machine with the server, so it speaks HTTP/1.1 by itself and no more of it than it
//! needs. At half load a request's time counts from when it was due, so that a stall cannot hide behind the requests
//! that it kept from being sent.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use indicatif::ProgressBar;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::BenchArgs;
use super::front::Front;
use super::harness::{Harness, bar, now};
use super::report::{Report, percentile, rss_mib};

const CONNECTIONS: usize = 64;
const RUNS: u64 = 100_000;
const WARM_UP_MAX: u64 = 2_000;
/// How long the half load lasts at least.
const HALF_SECONDS: f64 = 10.0;

pub async fn run(args: &BenchArgs) -> anyhow::Result<Report> {
    let runs = args.runs.unwrap_or(RUNS);
    let connections = args.in_flight.unwrap_or(CONNECTIONS);
    let harness = Harness::new(args).await?;
    let there_before = harness.engine.store().stats().await?.live_runs;
    let front = Front::open(&harness).await?;
    let load = Load {
        address: front.address,
        token: front.token.clone(),
        // A store that was measured before has its keys.
        series: harness.engine.fresh_id().simple().to_string(),
        body: json!({
            "plan": { "workflow": "bench-http", "version": 1,
                      "steps": [{ "key": "s0", "kind": "task", "handler": "noop" }] },
            "inputs": { "order": 17 },
        })
        .to_string(),
        connections,
    };
    let warm_up = (runs / 20).clamp(1, WARM_UP_MAX);
    load.at_full("warm", warm_up, &bar(warm_up, "http: warm-up", args.json)).await?;

    let (mut full, rate) = load.at_full("full", runs, &bar(runs, "http: as fast as it goes", args.json)).await?;
    let half_runs = ((rate / 2.0 * HALF_SECONDS) as u64).clamp(1, runs);
    let mut half = load.at(rate / 2.0, half_runs, &bar(half_runs, "http: at half that rate", args.json)).await?;

    front.close().await?;
    // An answer is not enough: every run has to be there.
    let (made, asked) = (harness.engine.store().stats().await?.live_runs - there_before, warm_up + runs + half_runs);
    ensure!(made == asked, "{asked} runs were started, and {made} are there");
    let mut more = serde_json::Map::new();
    more.insert("half_load_per_s".into(), (rate / 2.0).into());
    more.insert("half_load_p50_ms".into(), percentile(&mut half, 0.5).into());
    more.insert("half_load_p99_ms".into(), percentile(&mut half, 0.99).into());
    let report = Report {
        workload: "http",
        store: harness.store_name.clone(),
        runs,
        // They are started and not worked on.
        steps: 0,
        in_flight: connections,
        runs_per_s: rate,
        steps_per_s: 0.0,
        p50_ms: percentile(&mut full, 0.5),
        p99_ms: percentile(&mut full, 0.99),
        rss_mib: rss_mib(),
        more,
    };
    harness.close().await;
    Ok(report)
}

#[derive(Clone)]
struct Load {
    address: SocketAddr,
    token: String,
    series: String,
    body: String,
    connections: usize,
}

impl Load {
    /// Every connection sends its next request when the last one is answered. Answers with all times and the rate.
    async fn at_full(&self, phase: &'static str, runs: u64, progress: &ProgressBar) -> anyhow::Result<(Vec<u64>, f64)> {
        let began = now();
        let next = Arc::new(AtomicU64::new(0));
        let times = self
            .drive(phase, progress, move || {
                let number = next.fetch_add(1, Ordering::Relaxed);
                (number < runs).then_some((number, None))
            })
            .await?;
        Ok((times, runs as f64 / began.elapsed().as_secs_f64()))
    }

    /// Requests fall due at a fixed rate, whether the ones before are answered or not.
    async fn at(&self, rate: f64, runs: u64, progress: &ProgressBar) -> anyhow::Result<Vec<u64>> {
        let began = now();
        let next = Arc::new(AtomicU64::new(0));
        self.drive("half", progress, move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let due = began + Duration::from_secs_f64(number as f64 / rate);
            (number < runs).then_some((number, Some(due)))
        })
        .await
    }

    async fn drive(
        &self,
        phase: &'static str,
        progress: &ProgressBar,
        next: impl Fn() -> Option<(u64, Option<Instant>)> + Clone + Send + 'static,
    ) -> anyhow::Result<Vec<u64>> {
        let mut drivers = JoinSet::new();
        for _ in 0..self.connections {
            let (load, next, progress) = (self.clone(), next.clone(), progress.clone());
            drivers.spawn(async move {
                let mut connection = BenchConnection::open(&load).await?;
                let mut times = Vec::new();
                while let Some((number, due)) = next() {
                    if let Some(due) = due {
                        tokio::time::sleep_until(due.into()).await;
                    }
                    let began = due.unwrap_or_else(now);
                    connection.start(&format!("{}-{phase}-{number}", load.series)).await?;
                    times.push(began.elapsed().as_micros() as u64);
                    if number.is_multiple_of(256) {
                        progress.set_position(number);
                    }
                }
                Ok::<_, anyhow::Error>(times)
            });
        }
        let mut times = Vec::new();
        while let Some(driver) = drivers.join_next().await {
            times.extend(driver??);
        }
        progress.finish_and_clear();
        Ok(times)
    }
}

/// One kept connection, and as much of HTTP/1.1 as `POST /runs` needs.
struct BenchConnection {
    stream: TcpStream,
    head: String,
    body: String,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl BenchConnection {
    async fn open(load: &Load) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(load.address).await.context("the server does not take connections")?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /api/v1/runs HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\nidempotency-key: ",
            load.address,
            load.token,
            load.body.len()
        );
        Ok(Self { stream, head, body: load.body.clone(), request: Vec::new(), answer: Vec::new() })
    }

    async fn start(&mut self, key: &str) -> anyhow::Result<()> {
        self.request.clear();
        for part in [&self.head, key, "\r\n\r\n", &self.body] {
            self.request.extend_from_slice(part.as_bytes());
        }
        self.stream.write_all(&self.request).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                bail!("the server closed the connection");
            }
            if let Some(length) = length_of(&self.answer)? {
                ensure!(self.answer.len() <= length, "the answer is longer than it says");
                if self.answer.len() == length {
                    return Ok(());
                }
            }
        }
    }
}

/// How long the whole answer is, once its head is there. Anything but 201 ends the measurement.
fn length_of(answer: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let text = String::from_utf8_lossy(answer);
    ensure!(answer.starts_with(b"HTTP/1.1 201 "), "the server refused a start: {text}");
    let head = String::from_utf8_lossy(&answer[..end]);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    Ok(Some(end + 4 + length.context("the answer has no content-length")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_measured_by_its_head() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(length_of(answer).unwrap(), Some(answer.len()));
        assert_eq!(length_of(&answer[..20]).unwrap(), None);
        assert!(length_of(b"HTTP/1.1 503 No\r\n\r\n").is_err());
    }
}
