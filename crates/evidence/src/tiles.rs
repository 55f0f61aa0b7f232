//! How a large tree is kept: in tiles of 256 hashes. Tile `n` of level `l` holds the nodes `256 n` to `256 n + 255` of the
//! tree's level `8 l`; the levels between are computed. So a store keeps 1/255 more than the leaves, and a proof reads one
//! tile for each power of 256 and the last ones of each level.

use std::collections::{BTreeMap, BTreeSet};

use std::cell::RefCell;

use interlock_core::json::Hash;

use crate::tree::{self, Nodes, ProofError, node_hash};

/// Levels of the tree in a tile.
pub const TILE_HEIGHT: u32 = 8;
/// Hashes in a full tile.
pub const TILE_WIDTH: u64 = 1 << TILE_HEIGHT;

/// Which tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TileAt {
    pub level: u32,
    pub number: u64,
}

/// Tiles that were read, for a proof.
#[derive(Debug, Clone, Default)]
pub struct Tiles(BTreeMap<TileAt, Vec<Hash>>);

impl Tiles {
    /// The first hashes of a tile, in order.
    pub fn put(&mut self, at: TileAt, hashes: Vec<Hash>) {
        self.0.insert(at, hashes);
    }
}

/// The first node of the tree's level that a tile holds, and how many of the nodes below `number` they are.
const fn place(level: u32, number: u64) -> (TileAt, u64, u64) {
    let inside = level % TILE_HEIGHT;
    let first = number << inside;
    (TileAt { level: level / TILE_HEIGHT, number: first >> TILE_HEIGHT }, first % TILE_WIDTH, 1 << inside)
}

impl Nodes for Tiles {
    fn node(&self, level: u32, number: u64) -> Option<Hash> {
        let (at, first, count) = place(level, number);
        let hashes = self.0.get(&at)?.get(first as usize..(first + count) as usize)?;
        let mut row = hashes.to_vec();
        while row.len() > 1 {
            row = row.chunks_exact(2).map(|pair| node_hash(pair[0], pair[1])).collect();
        }
        row.pop()
    }
}

/// Records which tiles a proof reads, and answers with an arbitrary hash.
#[derive(Default)]
struct TileRecorder(RefCell<BTreeSet<TileAt>>);

impl Nodes for TileRecorder {
    fn node(&self, level: u32, number: u64) -> Option<Hash> {
        self.0.borrow_mut().insert(place(level, number).0);
        Some(Hash([0; 32]))
    }
}

/// The tiles that proofs of these leaves in the tree of `size` need.
pub fn needed_for_inclusion(leaves: &[u64], size: u64) -> Result<BTreeSet<TileAt>, ProofError> {
    let asked = TileRecorder::default();
    for leaf in leaves {
        tree::inclusion(&asked, *leaf, size)?;
    }
    Ok(asked.0.into_inner())
}

/// The tiles that the proof from one size to another needs.
pub fn needed_for_consistency(old: u64, new: u64) -> Result<BTreeSet<TileAt>, ProofError> {
    let asked = TileRecorder::default();
    tree::consistency(&asked, old, new)?;
    Ok(asked.0.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{MemoryTree, consistency, inclusion, leaf_hash};

    /// What a store of tiles would answer.
    fn read(tree: &MemoryTree, wanted: &BTreeSet<TileAt>) -> Tiles {
        let mut tiles = Tiles::default();
        for at in wanted {
            let first = at.number * TILE_WIDTH;
            let nodes = (first..first + TILE_WIDTH).map_while(|number| tree.node(at.level * TILE_HEIGHT, number));
            tiles.put(*at, nodes.collect());
        }
        tiles
    }

    #[test]
    fn proofs_from_tiles_are_the_trees_own_and_need_few_of_them() {
        let size = 70_001;
        let tree = MemoryTree::of((0..size).map(|number: u64| leaf_hash(&number.to_be_bytes())));
        for index in [0, 1, 255, 256, 65_535, 65_536, 65_537, 69_999, 70_000] {
            for size in [index + 1, 70_000, 70_001] {
                if index >= size {
                    continue;
                }
                let wanted = needed_for_inclusion(&[index], size).unwrap();
                assert!(wanted.len() <= 6, "{index} in {size} needs {wanted:?}");
                let proof = inclusion(&read(&tree, &wanted), index, size).unwrap();
                assert_eq!(proof, inclusion(&tree, index, size).unwrap());
            }
        }
        for (old, new) in [(1, 70_001), (255, 256), (256, 70_001), (65_536, 70_001), (70_000, 70_001)] {
            let wanted = needed_for_consistency(old, new).unwrap();
            assert!(wanted.len() <= 8, "{old} in {new} needs {wanted:?}");
            assert_eq!(consistency(&read(&tree, &wanted), old, new), consistency(&tree, old, new));
        }
    }

    #[test]
    fn a_missing_tile_is_said_and_not_guessed() {
        assert!(matches!(inclusion(&Tiles::default(), 3, 9), Err(ProofError::Missing { .. })));
    }
}
