//! Every code of `docs/reference/errors.md`, brought about for real: tables from the code to what triggers it. A row of
//! the page without an entry fails the test, and so does an entry that is answered otherwise than its row says.

mod approvals;
mod people;
mod programs;
mod requests;
mod runs;
mod servers;
mod steps;
mod transport;
mod triggers;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use futures::future::LocalBoxFuture;

use crate::harness::{Api, ApiResponse};

/// Brings a code about, with two tenants of its own.
type Trigger = for<'a> fn(&'a Api) -> LocalBoxFuture<'a, CodeSource>;

struct Entry {
    code: &'static str,
    trigger: Trigger,
}

/// Where a code was seen.
#[derive(Debug)]
enum CodeSource {
    /// In a refusal, with its status.
    Refused { status: u16, code: String },
    /// In an answer that is no refusal.
    InAnswer(String),
    /// In a step's error; `again` where the step is tried again.
    Step { code: String, again: bool },
    /// In the engine's refusal: no server comes up in a way that lets a request meet it.
    Engine(String),
}

impl From<ApiResponse> for CodeSource {
    fn from(answer: ApiResponse) -> Self {
        let (status, code) = answer.problem();
        Self::Refused { status, code: code.to_owned() }
    }
}

impl CodeSource {
    /// A page for people, which shows the code in a paragraph of its own.
    fn on_page(answer: &ApiResponse) -> Self {
        let page = answer.body.as_str().unwrap_or_default();
        let (_, rest) = page.split_once("<p class=\"hint\">").unwrap_or_else(|| panic!("no code in {}", answer.body));
        Self::Refused { status: answer.status.as_u16(), code: rest.split('<').next().unwrap_or_default().to_owned() }
    }

    /// An answer as it comes over a socket.
    fn on_the_wire(said: &str) -> Self {
        let status = said.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{said}"));
        let (_, rest) = said.split_once("\"code\":\"").unwrap_or_else(|| panic!("no code in {said}"));
        Self::Refused { status, code: rest.split('"').next().unwrap_or_default().to_owned() }
    }
}

/// Entries, one by one: the code, and an expression in which the API stands under the given name.
macro_rules! table {
    ($name:ident: $($code:literal => |$api:pat_param| $seen:expr),+ $(,)?) => {
        pub(super) const $name: &[super::Entry] = &[$(super::Entry {
            code: $code,
            trigger: |$api| Box::pin(async move { super::CodeSource::from($seen) }),
        }),+];
    };
}
use table;

/// What one request after the other can bring about, on either database.
const REQUESTS: &[&[Entry]] =
    &[requests::TABLE, people::TABLE, approvals::TABLE, runs::TABLE, triggers::TABLE, workers::TABLE];
/// What needs time to pass.
const WAITING: &[&[Entry]] = &[approvals::WAITING, runs::WAITING, workers::WAITING];
/// What needs a server that is in a bad way.
const SERVERS: &[&[Entry]] = &[servers::TABLE];
/// What needs sockets, and so real time.
const SOCKETS: &[&[Entry]] = &[servers::SOCKETS];
/// Errors of steps, in paused time; those of programs, which run for real.
const STEPS: &[&[Entry]] = &[steps::TABLE];
const PROGRAMS: &[&[Entry]] = &[programs::TABLE];

/// The rows of the page, by code: what stands beside it in the tables of requests (a status, or –) and in those of steps
/// (yes or no).
#[derive(Default)]
struct Page {
    requests: BTreeMap<String, String>,
    steps: BTreeMap<String, String>,
}

impl Page {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/errors.md");
        let text = std::fs::read_to_string(path).unwrap();
        let mut page = Self::default();
        for row in text.lines().filter_map(|line| line.strip_prefix("| `")) {
            let (code, rest) = row.split_once("` | ").unwrap();
            let beside = rest.split(" |").next().unwrap();
            let rows = if matches!(beside, "yes" | "no") { &mut page.steps } else { &mut page.requests };
            assert_eq!(rows.insert(code.to_owned(), beside.to_owned()), None, "{code} stands there twice");
        }
        page
    }

    fn check(&self, entry: &Entry, seen: &CodeSource) {
        let (code, beside, row) = match seen {
            CodeSource::Refused { status, code } => (code, status.to_string(), self.requests.get(entry.code)),
            CodeSource::InAnswer(code) => (code, "–".to_owned(), self.requests.get(entry.code)),
            CodeSource::Step { code, again: true } => (code, "yes".to_owned(), self.steps.get(entry.code)),
            CodeSource::Step { code, again: false } => (code, "no".to_owned(), self.steps.get(entry.code)),
            CodeSource::Engine(code) => {
                assert_eq!(code, entry.code);
                return;
            }
        };
        assert_eq!((code.as_str(), Some(&beside)), (entry.code, row), "the code, and what errors.md says beside it");
    }
}

/// Runs every entry on a database of its own.
async fn run(tables: &[&[Entry]]) {
    let page = Page::read();
    for entry in tables.iter().copied().flatten() {
        println!("{}", entry.code);
        let api = Api::new().await;
        let seen = (entry.trigger)(&api).await;
        page.check(entry, &seen);
        api.end().await;
    }
}

#[test]
fn every_row_of_the_page_has_an_entry() {
    let page = Page::read();
    let codes = |tables: &[&[&[Entry]]]| -> BTreeSet<String> {
        let entries = tables.iter().flat_map(|tables| tables.iter()).copied().flatten();
        entries.map(|entry| entry.code.to_owned()).collect()
    };
    for (rows, entries, what) in [
        (&page.requests, codes(&[REQUESTS, WAITING, SERVERS, SOCKETS]), "requests"),
        (&page.steps, codes(&[STEPS, PROGRAMS]), "steps"),
    ] {
        let rows: BTreeSet<String> = rows.keys().cloned().collect();
        let unmet: Vec<_> = rows.difference(&entries).collect();
        let unknown: Vec<_> = entries.difference(&rows).collect();
        assert!(unmet.is_empty(), "{what}: give each of these an entry that triggers it: {unmet:?}");
        assert!(unknown.is_empty(), "{what}: these are triggered and not on the page: {unknown:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_refused_as_the_page_says() {
    run(REQUESTS).await;
}

/// The same on PostgreSQL, on one database: each entry has its own tenants.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_are_refused_as_the_page_says_on_postgres() {
    let page = Page::read();
    let server = Api::on_postgres("codes").await;
    for (number, entry) in (1..).zip(REQUESTS.iter().copied().flatten()) {
        println!("{}", entry.code);
        let api = server.beside(100 * number).await;
        let seen = (entry.trigger)(&api).await;
        page.check(entry, &seen);
    }
    server.end().await;
}

#[tokio::test(start_paused = true)]
async fn time_brings_its_codes_about() {
    run(WAITING).await;
}

#[tokio::test(start_paused = true)]
async fn servers_in_a_bad_way_say_so() {
    run(SERVERS).await;
}

#[tokio::test]
async fn connections_in_a_bad_way_are_told_so() {
    run(SOCKETS).await;
}

#[tokio::test(start_paused = true)]
async fn steps_fail_as_the_page_says() {
    run(STEPS).await;
}

#[tokio::test]
async fn programs_fail_as_the_page_says() {
    run(PROGRAMS).await;
}
