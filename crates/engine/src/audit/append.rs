//! Brings what was committed into a tenant's log. Everything is computed outside of any transaction, from where the log
//! stands, and committed under the guard that it still stands there: a crash before the commit costs the work, one after
//! it nothing, and of two servers one finds that the other was faster.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::Hash;
use interlock_evidence::tiles::{TILE_HEIGHT, TILE_WIDTH};
use interlock_evidence::tree::{Completed, Frontier};
use interlock_evidence::writer::LogState;
use interlock_evidence::{Body, EntrySalts, SigningKey};
use interlock_store::{
    AppendAudit, AuditAppended, AuditBlockRow, AuditDetailsRow, AuditLogRow, AuditNote, AuditTileRow, FeedSpan,
    JournalRow,
};

use super::bodies::{self, RowEvents, SETTLED};
use super::facts::{Pinnable, is_pinned_kind};
use super::{broken, bytes, hashes};
use crate::Engine;
use crate::error::EngineError;

/// Events of the feed, and notes, that one block takes at most.
const BLOCK_EVENTS_MAX: u64 = 2_048;
const BLOCK_NOTES_MAX: usize = 256;

/// A log, and what the next block begins with.
struct OpenLog {
    state: LogState,
    number: u64,
    feed_cursor: u64,
    /// The log's size and last hash; none where the log begins.
    from: Option<(u64, Hash)>,
    /// The log before this one, where it begins.
    previous: Option<AuditLogRow>,
    opened_at: interlock_core::time::Timestamp,
}

/// What goes into a block, in order.
struct BlockDraft {
    seed: [u8; 32],
    first: u64,
    bodies: Vec<(Body, EntrySalts)>,
    details: Vec<AuditDetailsRow>,
    due: BTreeSet<RunId>,
    /// Runs that have ended in it.
    ended: BTreeSet<RunId>,
}

impl BlockDraft {
    fn new(first: u64) -> Result<Self, EngineError> {
        let mut seed = [0; 32];
        aws_lc_rs::rand::fill(&mut seed).map_err(|_| broken("there is no randomness for its salts"))?;
        Ok(Self { seed, first, bodies: Vec::new(), details: Vec::new(), due: BTreeSet::new(), ended: BTreeSet::new() })
    }

    fn next_index(&self) -> u64 {
        self.first + self.bodies.len() as u64
    }

    fn salts(&self) -> EntrySalts {
        EntrySalts::draw(&self.seed, self.next_index())
    }

    fn push(&mut self, body: Body, salts: EntrySalts) {
        self.bodies.push((body, salts));
    }

    fn push_with_details(&mut self, body: Body, salts: EntrySalts, actor: Option<String>, details: String) {
        let entry = self.next_index();
        self.details.push(AuditDetailsRow { entry, actor, details: Some(details) });
        self.push(body, salts);
    }
}

/// Appends one block to the tenant's log. Answers how many entries it has, 0 where there was nothing to append or another
/// server was faster.
pub(crate) async fn append(engine: &Engine, key: &SigningKey, tenant: TenantId) -> Result<u64, EngineError> {
    let store = &engine.0.store;
    let mut open = open(engine, key, tenant).await?;
    let spans = store.feed_spans(tenant, open.feed_cursor, BLOCK_EVENTS_MAX).await?;
    let notes = store.audit_notes(tenant, BLOCK_NOTES_MAX).await?;
    if spans.is_empty() && notes.is_empty() {
        return Ok(0);
    }
    let wanted: Vec<_> = spans.iter().map(|span| (span.run, span.first_seq, span.seq)).collect();
    let rows = store.journal_rows(tenant, &wanted).await?;
    let pinnable = pinnable(engine, tenant, &rows, &notes).await?;
    let mut draft = BlockDraft::new(open.state.size())?;
    let now = engine.now();
    if open.from.is_none() {
        let details = opening(open.previous.as_ref());
        let salts = draft.salts();
        draft.push_with_details(bodies::of_opened(&details, now, salts), salts, None, details);
    }
    for (span, rows) in spans.iter().zip(rows) {
        add_rows(&mut draft, span, &rows, &pinnable, now);
    }
    for note in &notes {
        add_note(&mut draft, note, &pinnable);
    }
    let feed_cursor = spans.last().map_or(open.feed_cursor, |span| span.cursor);
    let BlockDraft { bodies, details, mut due, ended, .. } = draft;
    if !ended.is_subset(&due) && always_bundles(engine, tenant).await? {
        due.extend(ended);
    }
    let count = bodies.len() as u64;
    let block = open.state.append(bodies);
    let checkpoint = open.state.head().sign(key);
    let at = || block.bodies.iter().map(|body| body.at);
    let row = AuditBlockRow {
        number: open.number,
        first_entry: block.first,
        last_entry: block.first + count - 1,
        prev_hash: block.prev,
        bodies: lines(&block.bodies)?,
        salts: block.salts.iter().flat_map(|salts| salts.to_bytes()).collect(),
        leaves: bytes(&block.leaves),
        at_from: at().min().unwrap_or(now),
        at_to: at().max().unwrap_or(now),
        checkpoint: checkpoint.clone(),
    };
    let log = AuditLogRow {
        tenant,
        number: open.number,
        origin: open.state.origin.clone(),
        epoch: engine.0.epoch,
        key_id: key.public().id(),
        opened_at: open.opened_at,
        size: open.state.size(),
        last_hash: open.state.last,
        peaks: bytes(open.state.frontier.peaks()),
        checkpoint,
        feed_cursor,
        sealed_at: now,
    };
    let append = AppendAudit {
        log,
        from: open.from,
        block: row,
        tiles: tiles(&block.tile_nodes),
        details,
        notes: notes.iter().map(|note| note.id).collect(),
        due: due.into_iter().collect(),
    };
    let has_due = !append.due.is_empty();
    Ok(match store.write(append).await? {
        AuditAppended::Stale => 0,
        AuditAppended::Appended => {
            if has_due {
                engine.0.wake_evidence.notify_one();
            }
            count
        }
    })
}

/// The tenant's log, or a new one where there is none, the store was restored since, or the key is another.
async fn open(engine: &Engine, key: &SigningKey, tenant: TenantId) -> Result<OpenLog, EngineError> {
    let last = engine.0.store.audit_log(tenant).await?;
    match last {
        Some(log) if log.epoch == engine.0.epoch && log.key_id == key.public().id() => {
            let frontier = Frontier::new(log.size, hashes(&log.peaks)).ok_or_else(|| broken("its peaks"))?;
            Ok(OpenLog {
                number: log.number,
                feed_cursor: log.feed_cursor,
                from: Some((log.size, log.last_hash)),
                opened_at: log.opened_at,
                previous: None,
                state: LogState { origin: log.origin, last: log.last_hash, frontier },
            })
        }
        previous => {
            let number = previous.as_ref().map_or(1, |log| log.number + 1);
            let origin = format!("{}/{tenant}/{number}", key.public().name);
            Ok(OpenLog {
                state: LogState::new(origin),
                number,
                feed_cursor: previous.as_ref().map_or(0, |log| log.feed_cursor),
                from: None,
                opened_at: engine.now(),
                previous,
            })
        }
    }
}

/// Whether the tenant wants evidence of every run.
async fn always_bundles(engine: &Engine, tenant: TenantId) -> Result<bool, EngineError> {
    Ok(engine.0.store.tenant(tenant).await?.is_some_and(|tenant| tenant.settings.evidence_always))
}

/// What a log says of the one before it.
fn opening(previous: Option<&AuditLogRow>) -> String {
    match previous {
        None => serde_json::json!({ "continues": null }).to_string(),
        Some(log) => serde_json::json!({
            "continues": { "origin": log.origin, "size": log.size, "checkpoint": log.checkpoint }
        })
        .to_string(),
    }
}

/// Receipts and approvals of those runs in the block that tell of some.
async fn pinnable(
    engine: &Engine,
    tenant: TenantId,
    rows: &[Vec<JournalRow>],
    notes: &[AuditNote],
) -> Result<BTreeMap<RunId, Pinnable>, EngineError> {
    let mut runs: BTreeSet<RunId> = BTreeSet::new();
    for row in rows.iter().flatten() {
        if !runs.contains(&row.run) && !RowEvents::of(row).pinned.is_empty() {
            runs.insert(row.run);
        }
    }
    runs.extend(notes.iter().filter_map(settled_run));
    let store = engine.for_tenant(tenant);
    let mut pinnable = BTreeMap::new();
    for run in runs {
        pinnable.insert(run, Pinnable::of_run(&store, run).await?);
    }
    Ok(pinnable)
}

/// The run whose effect a note says was settled.
fn settled_run(note: &AuditNote) -> Option<RunId> {
    if note.kind == SETTLED { note.subject.as_ref()?.parse().ok() } else { None }
}

fn add_rows(
    draft: &mut BlockDraft,
    span: &FeedSpan,
    rows: &[JournalRow],
    pinnable: &BTreeMap<RunId, Pinnable>,
    now: interlock_core::time::Timestamp,
) {
    if rows.is_empty() {
        let salts = draft.salts();
        draft.push(bodies::of_missing(span, now), salts);
    }
    for row in rows {
        let events = RowEvents::of(row);
        if !events.pinned.is_empty() || events.is_denied {
            draft.due.insert(row.run);
        }
        if events.ends_run {
            draft.ended.insert(row.run);
        }
        let salts = draft.salts();
        draft.push(bodies::of_row(row, events, salts, pinnable.get(&row.run)), salts);
    }
}

fn add_note(draft: &mut BlockDraft, note: &AuditNote, pinnable: &BTreeMap<RunId, Pinnable>) {
    let salts = draft.salts();
    let run = settled_run(note);
    let details: serde_json::Value = note.details.decode().unwrap_or_default();
    let receipt = details["receipt"].as_str().filter(|id| is_pinned_kind(id));
    let pinned = receipt.zip(run.and_then(|run| pinnable.get(&run)));
    draft.due.extend(run);
    let body = bodies::of_note(note, salts, pinned);
    draft.push_with_details(body, salts, note.actor.clone(), note.details.as_str().to_owned());
}

fn lines(bodies: &[Body]) -> Result<String, EngineError> {
    let mut text = String::with_capacity(bodies.len() * 256);
    for body in bodies {
        text.push_str(&serde_json::to_string(body).map_err(|error| broken(error.to_string()))?);
        text.push('\n');
    }
    Ok(text)
}

/// New nodes by the tile that they belong to.
fn tiles(nodes: &[Completed]) -> Vec<AuditTileRow> {
    let mut tiles: BTreeMap<(u32, u64), Vec<u8>> = BTreeMap::new();
    for node in nodes {
        let at = (node.level / TILE_HEIGHT, node.number / TILE_WIDTH);
        tiles.entry(at).or_default().extend_from_slice(&node.hash.0);
    }
    tiles.into_iter().map(|((level, tile), hashes)| AuditTileRow { level, tile, hashes }).collect()
}
