//! The Merkle tree of RFC 6962: roots, inclusion proofs, consistency proofs.
//!
//! Everything is computed from complete subtrees, of which [`Nodes`] gives any by its level and number: level 0 are the
//! leaves, and node `n` of level `l` covers the leaves `n << l` to `(n + 1) << l`. A proof needs a number of them that
//! grows with the logarithm of the size. [`Frontier`] is what appending needs: the complete subtrees on the right edge.

use interlock_core::json::Hash;
use sha2::{Digest as _, Sha256};

pub fn leaf_hash(data: &[u8]) -> Hash {
    Hash(Sha256::new().chain_update([0]).chain_update(data).finalize().into())
}

pub fn node_hash(left: Hash, right: Hash) -> Hash {
    Hash(Sha256::new().chain_update([1]).chain_update(left.0).chain_update(right.0).finalize().into())
}

/// The root of a tree without leaves.
pub fn empty_root() -> Hash {
    Hash::of(b"")
}

/// Where the complete subtrees of a tree are found.
pub trait Nodes {
    fn node(&self, level: u32, number: u64) -> Option<Hash>;
}

/// A node that a proof needs was not given, or the proof was asked of a tree that does not have the leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    #[error("node {number} of level {level} is missing")]
    Missing { level: u32, number: u64 },
    #[error("there is no such leaf or size in the tree")]
    OutOfRange,
}

/// The largest power of two below `n`, which is 2 or more.
const fn split(n: u64) -> u64 {
    1 << (n - 1).ilog2()
}

/// The hash over the leaves `start..end`. `start` is where a subtree of that size begins.
fn range_hash(nodes: &impl Nodes, start: u64, end: u64) -> Result<Hash, ProofError> {
    let length = end - start;
    if length.is_power_of_two() {
        let level = length.trailing_zeros();
        let number = start >> level;
        return nodes.node(level, number).ok_or(ProofError::Missing { level, number });
    }
    let middle = start + split(length);
    Ok(node_hash(range_hash(nodes, start, middle)?, range_hash(nodes, middle, end)?))
}

/// The root of the tree's first `size` leaves.
pub fn root(nodes: &impl Nodes, size: u64) -> Result<Hash, ProofError> {
    if size == 0 { Ok(empty_root()) } else { range_hash(nodes, 0, size) }
}

/// The proof that leaf `index` is in the tree of the first `size` leaves.
pub fn inclusion(nodes: &impl Nodes, index: u64, size: u64) -> Result<Vec<Hash>, ProofError> {
    if index >= size {
        return Err(ProofError::OutOfRange);
    }
    let (mut start, mut end) = (0, size);
    let mut proof = Vec::new();
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            proof.push(range_hash(nodes, middle, end)?);
            end = middle;
        } else {
            proof.push(range_hash(nodes, start, middle)?);
            start = middle;
        }
    }
    proof.reverse();
    Ok(proof)
}

/// The proof that the tree of `new` leaves begins with the tree of `old` leaves.
pub fn consistency(nodes: &impl Nodes, old: u64, new: u64) -> Result<Vec<Hash>, ProofError> {
    if old > new {
        return Err(ProofError::OutOfRange);
    }
    if old == 0 || old == new {
        return Ok(Vec::new());
    }
    let (mut start, mut end, mut whole) = (0, new, true);
    let mut proof = Vec::new();
    while old != end {
        let middle = start + split(end - start);
        if old <= middle {
            proof.push(range_hash(nodes, middle, end)?);
            end = middle;
        } else {
            proof.push(range_hash(nodes, start, middle)?);
            start = middle;
            whole = false;
        }
    }
    if !whole {
        proof.push(range_hash(nodes, start, end)?);
    }
    proof.reverse();
    Ok(proof)
}

/// The root that a leaf and its proof lead to; `None` where the proof has another length than such a tree's.
pub fn root_from_inclusion(leaf: Hash, index: u64, size: u64, proof: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let (mut number, mut last, mut hash) = (index, size - 1, leaf);
    for sibling in proof {
        if last == 0 {
            return None;
        }
        if number & 1 == 1 || number == last {
            hash = node_hash(*sibling, hash);
            // A right edge without a sibling of its own moves up until it has one.
            while number & 1 == 0 && number != 0 {
                number >>= 1;
                last >>= 1;
            }
        } else {
            hash = node_hash(hash, *sibling);
        }
        number >>= 1;
        last >>= 1;
    }
    (last == 0).then_some(hash)
}

/// Whether the tree with root `new_root` begins with the one with `old_root`.
pub fn is_consistent(old: (u64, Hash), new: (u64, Hash), proof: &[Hash]) -> bool {
    let ((old_size, old_root), (new_size, new_root)) = (old, new);
    if old_size == new_size {
        return old_root == new_root && proof.is_empty();
    }
    if old_size == 0 {
        return old_root == empty_root() && proof.is_empty();
    }
    if old_size > new_size {
        return false;
    }
    let (mut number, mut last) = (old_size - 1, new_size - 1);
    while number & 1 == 1 {
        number >>= 1;
        last >>= 1;
    }
    // An old tree that is a complete subtree is its own first hash.
    let (first, rest) = match proof.split_first() {
        _ if old_size.is_power_of_two() => (old_root, proof),
        Some((first, rest)) => (*first, rest),
        None => return false,
    };
    let (mut to_old, mut to_new) = (first, first);
    for sibling in rest {
        if last == 0 {
            return false;
        }
        if number & 1 == 1 || number == last {
            to_old = node_hash(*sibling, to_old);
            to_new = node_hash(*sibling, to_new);
            while number & 1 == 0 && number != 0 {
                number >>= 1;
                last >>= 1;
            }
        } else {
            to_new = node_hash(to_new, *sibling);
        }
        number >>= 1;
        last >>= 1;
    }
    last == 0 && to_old == old_root && to_new == new_root
}

/// The complete subtrees on the right edge of a tree, largest first: all that appending and the root need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    peaks: Vec<Hash>,
}

/// A subtree that became complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completed {
    pub level: u32,
    pub number: u64,
    pub hash: Hash,
}

impl Frontier {
    /// `None` where the number of peaks is not that of a tree of this size.
    pub fn new(size: u64, peaks: Vec<Hash>) -> Option<Self> {
        (peaks.len() == size.count_ones() as usize).then_some(Self { size, peaks })
    }

    pub const fn size(&self) -> u64 {
        self.size
    }

    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// Adds a leaf and tells of every subtree above it that it completes.
    pub fn append(&mut self, leaf: Hash, mut completed: impl FnMut(Completed)) {
        let mut hash = leaf;
        let mut level = 0;
        while self.size >> level & 1 == 1 {
            let left = self.peaks.pop().expect("there is a peak for every bit of the size");
            hash = node_hash(left, hash);
            level += 1;
            completed(Completed { level, number: self.size >> level, hash });
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return empty_root() };
        peaks.fold(*last, |right, left| node_hash(*left, right))
    }
}

/// A whole tree in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryTree {
    levels: Vec<Vec<Hash>>,
    frontier: Frontier,
}

impl MemoryTree {
    pub fn of(leaves: impl IntoIterator<Item = Hash>) -> Self {
        let mut tree = Self { levels: vec![Vec::new()], frontier: Frontier::default() };
        for leaf in leaves {
            tree.levels[0].push(leaf);
            let levels = &mut tree.levels;
            tree.frontier.append(leaf, |Completed { level, hash, .. }| {
                if levels.len() <= level as usize {
                    levels.push(Vec::new());
                }
                levels[level as usize].push(hash);
            });
        }
        tree
    }

    pub fn size(&self) -> u64 {
        self.frontier.size()
    }

    pub fn root(&self) -> Hash {
        self.frontier.root()
    }
}

impl Nodes for MemoryTree {
    fn node(&self, level: u32, number: u64) -> Option<Hash> {
        self.levels.get(level as usize)?.get(usize::try_from(number).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encoding::hex;

    fn leaves(count: u64) -> Vec<Hash> {
        (0..count).map(|number| leaf_hash(&number.to_be_bytes())).collect()
    }

    /// RFC 6962 §2.1, word for word: the slow way, over the leaves themselves.
    fn slow_root(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => empty_root(),
            [one] => *one,
            _ => {
                let (left, right) = leaves.split_at(split(leaves.len() as u64) as usize);
                node_hash(slow_root(left), slow_root(right))
            }
        }
    }

    /// The leaves and roots that implementations of RFC 6962 hold themselves against.
    #[test]
    fn known_roots() {
        let data: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let tree = MemoryTree::of(data.iter().map(|data| leaf_hash(data)));
        for (size, known) in [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
            (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
            (7, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"),
            (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
        ] {
            assert_eq!(hex(&root(&tree, size).unwrap().0), known, "{size} leaves");
        }
    }

    #[test]
    fn every_small_tree_proves_every_leaf_and_every_prefix() {
        let all = leaves(70);
        let tree = MemoryTree::of(all.iter().copied());
        for size in 0..=70u64 {
            let whole = root(&tree, size).unwrap();
            assert_eq!(whole, slow_root(&all[..size as usize]));
            for index in 0..size {
                let proof = inclusion(&tree, index, size).unwrap();
                assert_eq!(root_from_inclusion(all[index as usize], index, size, &proof), Some(whole));
                let longer = [proof.clone(), vec![whole]].concat();
                assert_ne!(root_from_inclusion(all[index as usize], index, size, &longer), Some(whole));
                if let Some((_, shorter)) = proof.split_last() {
                    assert_ne!(root_from_inclusion(all[index as usize], index, size, shorter), Some(whole));
                }
            }
            for old in 0..=size {
                let proof = consistency(&tree, old, size).unwrap();
                let old_root = root(&tree, old).unwrap();
                assert!(is_consistent((old, old_root), (size, whole), &proof), "{old} in {size}");
                if old > 0 && old < size {
                    assert!(!is_consistent((old, whole), (size, whole), &proof));
                    assert!(!is_consistent((old, old_root), (size, old_root), &proof));
                }
            }
        }
        assert_eq!(inclusion(&tree, 70, 70), Err(ProofError::OutOfRange));
        assert_eq!(consistency(&tree, 71, 70), Err(ProofError::OutOfRange));
        assert!(matches!(root(&tree, 71), Err(ProofError::Missing { .. })));
    }

    #[test]
    fn a_frontier_goes_on_where_it_was_kept() {
        let all = leaves(300);
        let mut whole = Frontier::default();
        let mut kept = Frontier::default();
        for (size, leaf) in (1u64..).zip(&all) {
            whole.append(*leaf, |_| {});
            kept = Frontier::new(kept.size(), kept.peaks().to_vec()).unwrap();
            kept.append(*leaf, |_| {});
            assert_eq!(kept, whole);
            assert_eq!(kept.root(), slow_root(&all[..size as usize]));
        }
        assert_eq!(Frontier::new(3, all[..1].to_vec()), None);
    }

    proptest! {
        #[test]
        fn a_proof_fits_its_leaf_its_place_and_its_tree_only(
            size in 1u64..2000, index in any::<u64>(), other in any::<u64>(), flip in any::<usize>(),
        ) {
            let (index, other) = (index % size, other % size);
            let all = leaves(size);
            let tree = MemoryTree::of(all.iter().copied());
            let mut proof = inclusion(&tree, index, size).unwrap();
            prop_assert_eq!(root_from_inclusion(all[index as usize], index, size, &proof), Some(tree.root()));
            if other != index {
                prop_assert_ne!(root_from_inclusion(all[other as usize], index, size, &proof), Some(tree.root()));
                prop_assert_ne!(root_from_inclusion(all[index as usize], other, size, &proof), Some(tree.root()));
            }
            if !proof.is_empty() {
                let at = flip % proof.len();
                proof[at].0[flip % 32] ^= 1;
                prop_assert_ne!(root_from_inclusion(all[index as usize], index, size, &proof), Some(tree.root()));
            }
        }
    }
}
