//! Entries as others see them: in their place, with what their hashes stand for as far as it is still there.

use std::collections::{BTreeMap, HashMap};

use interlock_boxed::boxed;
use interlock_core::ids::{RunId, TenantId};
use interlock_core::json::{Hash, HashHex};
use interlock_core::time::Timestamp;
use interlock_evidence::checkpoint::Checkpoint;
use interlock_evidence::entry::Salt;
use interlock_evidence::export::{LeafSpan, LoggedEntry};
use interlock_evidence::writer::entries;
use interlock_evidence::{Body, Commitments, Entry, EntryOpening, EntrySalts};
use interlock_store::{AuditBlockRow, AuditLogRow, JournalRow, TenantStore};

use super::{broken, facts, hashes};
use crate::error::EngineError;
use crate::parts::Audit;

/// Blocks that one page looks through at most: a page may be empty and still go on.
const BLOCKS_PER_PAGE_MAX: usize = 64;

/// Blocks read at a time.
const BLOCKS_READ: usize = 8;

/// Which entries to show.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    pub run: Option<RunId>,
    /// An event's name, or its first words: `approval` finds `approval.voted`.
    pub kind: Option<String>,
    /// A person, by name.
    pub actor: Option<String>,
    pub subject: Option<String>,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl AuditFilter {
    pub fn is_empty(&self) -> bool {
        let Self { run, kind, actor, subject, since, until } = self;
        run.is_none() && kind.is_none() && actor.is_none() && subject.is_none() && since.is_none() && until.is_none()
    }

    fn takes(&self, body: &Body, salts: EntrySalts) -> bool {
        let of_kind = |kind: &String| {
            let fits =
                |name: &String| name == kind || name.strip_prefix(kind).is_some_and(|rest| rest.starts_with('.'));
            body.types.iter().any(fits)
        };
        // The name itself is not in the entry; its salted hash is.
        let by = |name: &String| body.actor == Some(HashHex(Commitments(salts.commitments).actor(name)));
        let about = |run: &RunId| body.run == Some(*run) || body.subject == Some(run.to_string());
        self.run.as_ref().is_none_or(about)
            && self.kind.as_ref().is_none_or(of_kind)
            && self.actor.as_ref().is_none_or(by)
            && self.subject.as_ref().is_none_or(|subject| body.subject.as_ref() == Some(subject))
            && self.since.is_none_or(|since| body.at >= since)
            && self.until.is_none_or(|until| body.at < until)
    }
}

/// A page of a log.
#[derive(Debug, Clone)]
pub struct AuditQuery {
    /// Which of the tenant's logs; its present one, where nothing is said.
    pub number: Option<u64>,
    pub newest_first: bool,
    /// The entry that the page begins with.
    pub from: Option<u64>,
    pub limit: usize,
    pub filter: AuditFilter,
}

/// Entries of a log.
#[derive(Debug, Clone)]
pub struct AuditPage {
    pub number: u64,
    pub origin: String,
    pub size: u64,
    pub entries: Vec<LoggedEntry>,
    /// What verification needs beside the entries; only of a whole page in the log's own order.
    pub leaves: Option<LeafSpan>,
    pub checkpoints: Vec<String>,
    /// Where the next page begins.
    pub next: Option<u64>,
}

/// An entry in its block, not opened yet.
pub(super) struct PlacedEntry {
    pub entry: Entry,
    pub salts: EntrySalts,
    pub leaf: Hash,
}

/// The entries of a block.
pub(super) fn placed(origin: &str, block: &AuditBlockRow) -> Result<Vec<PlacedEntry>, EngineError> {
    let mut bodies = Vec::new();
    for line in block.bodies.lines() {
        let body: Body = serde_json::from_str(line)
            .map_err(|error| broken(format!("an entry from {} on: {error}", block.first_entry)))?;
        bodies.push(body);
    }
    let (salts, leaves) = (block.salts.as_chunks::<32>().0, hashes(&block.leaves));
    if bodies.len() != salts.len() || bodies.len() != leaves.len() {
        return Err(broken(format!("the block of entry {} has entries without salts or leaves", block.first_entry)));
    }
    let chained = entries(origin, block.first_entry, block.prev_hash, bodies);
    let place = |((entry, salts), leaf)| PlacedEntry { entry, salts: EntrySalts::from_bytes(salts), leaf };
    Ok(chained.into_iter().zip(salts).zip(leaves).map(place).collect())
}

/// Shows what the hashes of entries stand for.
pub(super) async fn opened(
    store: &TenantStore,
    number: u64,
    placed: Vec<PlacedEntry>,
) -> Result<Vec<LoggedEntry>, EngineError> {
    let (Some(first), Some(last)) = (placed.first(), placed.last()) else { return Ok(Vec::new()) };
    let span = (first.entry.index.min(last.entry.index), first.entry.index.max(last.entry.index));
    let kept = store.audit_details(number, span.0, span.1).await?;
    let mut kept: BTreeMap<u64, (Option<String>, Option<String>)> =
        kept.into_iter().map(|row| (row.entry, (row.actor, row.details))).collect();
    let of_runs: Vec<(RunId, u64, u64)> = placed
        .iter()
        .filter_map(|placed| Some((placed.entry.body.run?, placed.entry.body.seq?)))
        .map(|(run, (first, seq))| (run, first, seq))
        .collect();
    let rows = store.journal_rows(&of_runs).await?;
    let rows: HashMap<(RunId, u64), JournalRow> =
        rows.into_iter().flatten().map(|row| ((row.run, row.seq), row)).collect();
    let open = |placed: PlacedEntry| {
        let PlacedEntry { entry, salts, .. } = placed;
        let body = &entry.body;
        let row = body.run.zip(body.seq).and_then(|(run, (_, seq))| rows.get(&(run, seq)));
        let (actor, details) = match row {
            Some(row) => (facts::actor(row), body.details.map(|_| facts::row_details(row))),
            None => kept.remove(&entry.index).unwrap_or_default(),
        };
        let shown = EntryOpening { actor: actor.filter(|_| body.actor.is_some()), details, salt: salts.commitments };
        let opened = (salts.commitments != Salt::ERASED).then_some(shown);
        LoggedEntry { entry, leaf_salt: salts.leaf, opened }
    };
    Ok(placed.into_iter().map(open).collect())
}

impl Audit {
    /// The signed head of a tenant's log, with the log's number.
    #[boxed]
    pub async fn checkpoint(&self, tenant: TenantId, number: Option<u64>) -> Result<(u64, String), EngineError> {
        let log = self.log(tenant, number).await?;
        Ok((log.number, log.checkpoint))
    }

    async fn log(&self, tenant: TenantId, number: Option<u64>) -> Result<AuditLogRow, EngineError> {
        let store = self.0.for_tenant(tenant);
        let found = match number {
            Some(number) => store.audit_log_numbered(number).await?,
            None => store.audit_log().await?,
        };
        if found.is_none() && number.is_none() {
            // Nothing has happened yet: the log that will be is empty.
            let key = self.signing_key()?;
            let origin = format!("{}/{tenant}/1", key.public().name);
            let head = Checkpoint { origin: origin.clone(), size: 0, root: interlock_evidence::tree::empty_root() };
            return Ok(AuditLogRow {
                tenant,
                number: 1,
                origin,
                epoch: self.0.0.epoch,
                key_id: key.public().id(),
                opened_at: Timestamp(0),
                size: 0,
                last_hash: Hash([0; 32]),
                peaks: Vec::new(),
                checkpoint: head.sign(key),
                feed_cursor: 0,
                sealed_at: Timestamp(0),
            });
        }
        found.ok_or(EngineError::UnknownAuditLog { number: number.unwrap_or(1) })
    }

    /// A page of a tenant's log.
    #[boxed]
    pub async fn entries(&self, tenant: TenantId, query: &AuditQuery) -> Result<AuditPage, EngineError> {
        let log = self.log(tenant, query.number).await?;
        let store = self.0.for_tenant(tenant);
        let mut page = AuditPage {
            number: log.number,
            origin: log.origin.clone(),
            size: log.size,
            entries: Vec::new(),
            leaves: None,
            checkpoints: Vec::new(),
            next: None,
        };
        let Some(newest) = log.size.checked_sub(1) else { return Ok(page) };
        let whole = query.filter.is_empty() && !query.newest_first;
        let mut next = Some(query.from.unwrap_or(if query.newest_first { newest } else { 0 }));
        let (mut matched, mut leaves, mut looked_at) = (Vec::new(), Vec::new(), 0);
        while let Some(from) = next.filter(|_| looked_at < BLOCKS_PER_PAGE_MAX && matched.len() < query.limit) {
            let blocks = if query.newest_first {
                store.audit_blocks_back(log.number, from, BLOCKS_READ).await?
            } else {
                store.audit_blocks(log.number, from, BLOCKS_READ).await?
            };
            if blocks.is_empty() {
                next = None;
            }
            for block in blocks {
                looked_at += 1;
                let mut entries = placed(&log.origin, &block)?;
                if query.newest_first {
                    entries.reverse();
                }
                let mut cut = false;
                for placed in entries {
                    let index = placed.entry.index;
                    let is_before = if query.newest_first { index > from } else { index < from };
                    if is_before {
                        continue;
                    }
                    if matched.len() >= query.limit {
                        next = Some(index);
                        cut = true;
                        break;
                    }
                    next = if query.newest_first { index.checked_sub(1) } else { Some(index + 1) };
                    if query.filter.takes(&placed.entry.body, placed.salts) {
                        leaves.push(HashHex(placed.leaf));
                        matched.push(placed);
                    }
                }
                if cut {
                    break;
                }
                page.checkpoints.push(block.checkpoint);
            }
        }
        page.next = next.filter(|next| *next < log.size);
        if whole {
            page.leaves = matched.first().map(|placed| LeafSpan { first: placed.entry.index, hashes: leaves });
        } else {
            page.checkpoints.clear();
        }
        page.entries = opened(&store, log.number, matched).await?;
        Ok(page)
    }
}
