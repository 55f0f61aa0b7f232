//! Appending to a log. The state is small, whatever the length of the log, and a block of entries is computed from it
//! without looking at anything older; the store keeps both in one commit, or neither.

use interlock_core::json::Hash;

use crate::checkpoint::Checkpoint;
use crate::entry::{Body, Entry, EntrySalts, FIRST_PREV, leaf};
use crate::tiles::TILE_HEIGHT;
use crate::tree::{Completed, Frontier};

/// Where a log stands: all that the next entry depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    pub origin: String,
    /// The hash of the last entry.
    pub last: Hash,
    pub frontier: Frontier,
}

/// Entries that were appended together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The index of the first entry.
    pub first: u64,
    /// The hash of the entry before it.
    pub prev: Hash,
    pub bodies: Vec<Body>,
    pub salts: Vec<EntrySalts>,
    pub leaves: Vec<Hash>,
    /// Nodes that belong into tiles above the leaves, in order.
    pub tile_nodes: Vec<Completed>,
}

impl LogState {
    pub fn new(origin: String) -> Self {
        Self { origin, last: FIRST_PREV, frontier: Frontier::default() }
    }

    pub const fn size(&self) -> u64 {
        self.frontier.size()
    }

    /// The head, to be signed.
    pub fn head(&self) -> Checkpoint {
        Checkpoint { origin: self.origin.clone(), size: self.size(), root: self.frontier.root() }
    }

    pub fn append(&mut self, bodies: Vec<(Body, EntrySalts)>) -> Block {
        let count = bodies.len();
        let mut block = Block {
            first: self.size(),
            prev: self.last,
            bodies: Vec::with_capacity(count),
            salts: Vec::with_capacity(count),
            leaves: Vec::with_capacity(count),
            tile_nodes: Vec::new(),
        };
        for (body, salts) in bodies {
            let entry = Entry { body, index: self.size(), origin: std::mem::take(&mut self.origin), prev: self.last };
            self.last = entry.hash();
            self.origin = entry.origin;
            let leaf = leaf(salts.leaf, self.last);
            self.frontier.append(leaf, |completed| {
                if completed.level.is_multiple_of(TILE_HEIGHT) {
                    block.tile_nodes.push(completed);
                }
            });
            block.bodies.push(entry.body);
            block.salts.push(salts);
            block.leaves.push(leaf);
        }
        block
    }
}

/// The entries of a block, chained on `prev`.
pub fn entries(origin: &str, first: u64, prev: Hash, bodies: Vec<Body>) -> Vec<Entry> {
    let mut prev = prev;
    let chained = (first..).zip(bodies).map(|(index, body)| {
        let entry = Entry { body, index, origin: origin.to_owned(), prev };
        prev = entry.hash();
        entry
    });
    chained.collect()
}
