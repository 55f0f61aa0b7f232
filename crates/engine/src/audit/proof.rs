//! A run's entries in the log, and the proof that they are in it.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::ids::RunId;
use interlock_core::json::{Hash, HashHex};
use interlock_core::time::Timestamp;
use interlock_evidence::bundle::{LogPart, ProvenEntry};
use interlock_evidence::tiles::{TILE_WIDTH, TileAt, Tiles, needed_for_inclusion};
use interlock_evidence::tree::inclusion;
use interlock_store::{AuditBlockRow, JournalRow, TenantStore};

use super::read::{PlacedEntry, opened, placed};
use super::{broken, hashes};
use crate::error::EngineError;

/// Blocks that may hold one instant: those that were sealed at about the same time, and late ones.
const BLOCKS_PER_INSTANT_MAX: usize = 64;
/// Blocks read at a time for the leaves of a tile.
const BLOCKS_READ: usize = 64;

/// Entries opened at a time.
const ENTRIES_OPENED: usize = 500;

/// What was found in one log.
#[derive(Default)]
struct FoundEntries {
    entries: BTreeMap<u64, PlacedEntry>,
    /// The head with the last of them.
    anchor: Option<(u64, String)>,
}

/// The run's entries with their proofs, log by log. None where some of its rows are not in the log yet.
pub(super) async fn logs(
    store: &TenantStore,
    run: RunId,
    rows: &[JournalRow],
    late: &[Timestamp],
) -> Result<Option<Vec<LogPart>>, EngineError> {
    let mut found: BTreeMap<u64, FoundEntries> = BTreeMap::new();
    let mut seen: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut missing: BTreeSet<u64> = rows.iter().map(|row| row.seq).collect();
    let instants = rows.iter().map(|row| (row.at, Some(row.seq))).chain(late.iter().map(|at| (*at, None)));
    for (at, seq) in instants {
        // An earlier row's block had this one, too.
        if seq.is_some_and(|seq| !missing.contains(&seq)) {
            continue;
        }
        for block in store.audit_blocks_at(at, BLOCKS_PER_INSTANT_MAX).await? {
            if seen.insert((block.number, block.last_entry)) {
                take(store, run, &block, &mut found, &mut missing).await?;
            }
        }
        if seq.is_some_and(|seq| missing.contains(&seq)) {
            return Ok(None);
        }
    }
    let mut parts = Vec::with_capacity(found.len());
    for (number, found) in found {
        parts.push(proven(store, number, found).await?);
    }
    Ok(Some(parts))
}

async fn take(
    store: &TenantStore,
    run: RunId,
    block: &AuditBlockRow,
    found: &mut BTreeMap<u64, FoundEntries>,
    missing: &mut BTreeSet<u64>,
) -> Result<(), EngineError> {
    let name = run.to_string();
    if !block.bodies.contains(&name) {
        return Ok(());
    }
    let origin = store.audit_log_numbered(block.number).await?.ok_or_else(|| broken("a block has no log"))?.origin;
    let log = found.entry(block.number).or_default();
    for placed in placed(&origin, block)? {
        let body = &placed.entry.body;
        if body.run != Some(run) && body.subject.as_ref() != Some(&name) {
            continue;
        }
        if let Some((_, seq)) = body.seq.filter(|_| body.run == Some(run)) {
            missing.remove(&seq);
        }
        if log.anchor.as_ref().is_none_or(|(size, _)| *size <= block.last_entry) {
            log.anchor = Some((block.last_entry + 1, block.checkpoint.clone()));
        }
        log.entries.insert(placed.entry.index, placed);
    }
    Ok(())
}

async fn proven(store: &TenantStore, number: u64, found: FoundEntries) -> Result<LogPart, EngineError> {
    let (size, checkpoint) = found.anchor.ok_or_else(|| broken("a block has no head"))?;
    let indices: Vec<u64> = found.entries.keys().copied().collect();
    let wanted = needed_for_inclusion(&indices, size).map_err(|error| broken(error.to_string()))?;
    let mut tiles = Tiles::default();
    for at in wanted {
        tiles.put(at, tile(store, number, at, size).await?);
    }
    let mut entries = Vec::with_capacity(indices.len());
    let mut placed = found.entries.into_values();
    loop {
        // Piece by piece: the rows that open them have whole inputs and outputs.
        let piece: Vec<PlacedEntry> = placed.by_ref().take(ENTRIES_OPENED).collect();
        if piece.is_empty() {
            return Ok(LogPart { checkpoint, entries });
        }
        for logged in opened(store, number, piece).await? {
            let proof = inclusion(&tiles, logged.entry.index, size).map_err(|error| broken(error.to_string()))?;
            entries.push(ProvenEntry { logged, proof: proof.into_iter().map(HashHex).collect() });
        }
    }
}

/// The hashes of a tile, as far as the tree of `size` has them.
async fn tile(store: &TenantStore, number: u64, at: TileAt, size: u64) -> Result<Vec<Hash>, EngineError> {
    if at.level > 0 {
        return Ok(hashes(&store.audit_tile(number, at.level, at.number).await?));
    }
    let (first, end) = (at.number * TILE_WIDTH, ((at.number + 1) * TILE_WIDTH).min(size));
    let mut leaves: Vec<Hash> = Vec::new();
    while first + (leaves.len() as u64) < end {
        let from = first + leaves.len() as u64;
        let blocks = store.audit_blocks(number, from, BLOCKS_READ).await?;
        if blocks.is_empty() {
            return Err(broken(format!("entry {from} is missing")));
        }
        for block in blocks {
            let next = first + leaves.len() as u64;
            // Later blocks of the batch are not of this tree, and the next one need not begin where it ends.
            if next >= end {
                break;
            }
            let skip = next.checked_sub(block.first_entry).ok_or_else(|| broken(format!("entry {next} is missing")))?;
            let wanted = (end - next) as usize;
            leaves.extend(hashes(&block.leaves).into_iter().skip(skip as usize).take(wanted));
        }
    }
    Ok(leaves)
}
