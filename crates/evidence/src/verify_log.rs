//! Verifies a copy of a log with the public key alone, and says of the first bad entry what was done to it.
//!
//! What is believed is the signed head, and nothing else. Leaves that lead to its root are the true ones, so that each
//! entry can be held against its own. Where they do not (or none were given), earlier signed heads narrow the place down,
//! and the chain does the rest. A head of another log of the same key tells where the entries beside it came from. A log
//! that was cut off together with its newest heads looks whole by itself: only a checkpoint that was kept elsewhere shows
//! it.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;

use interlock_core::json::Hash;

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::entry::{Entry, FIRST_PREV};
use crate::export::{LeafSpan, LogCopy, LoggedEntry};
use crate::key::PublicKey;
use crate::tree::{MemoryTree, root};

/// What else is known about the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected<'a> {
    /// The log's name, where it is known: a copy of another log does not pass for it.
    pub origin: Option<&'a str>,
    /// A checkpoint that was kept elsewhere.
    pub kept_elsewhere: Option<&'a str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedLog {
    pub head: Checkpoint,
    /// Entries whose details were shown, and held against their hashes.
    pub opened: u64,
    /// Entries whose details are not there any more, or were not shown.
    pub closed: u64,
    /// Entries with an actor whose name is not there any more, or was not shown.
    pub actors_closed: u64,
}

/// What was done to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tampering {
    Altered,
    Removed,
    Inserted,
    Reordered,
    Truncated,
    /// An entry of another log, which is another tenant's or of before a restore.
    Spliced,
    /// The head itself: there is none, or it is not signed by the key.
    Head,
}

impl fmt::Display for Tampering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Altered => "altered",
            Self::Removed => "removed",
            Self::Inserted => "inserted",
            Self::Reordered => "reordered",
            Self::Truncated => "truncated",
            Self::Spliced => "spliced from another log",
            Self::Head => "head not trustworthy",
        })
    }
}

/// The first thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entry {index}: {kind}: {what}")]
pub struct BadEntry {
    pub index: u64,
    pub kind: Tampering,
    pub what: String,
}

fn bad(index: u64, kind: Tampering, what: impl Into<String>) -> BadEntry {
    BadEntry { index, kind, what: what.into() }
}

pub fn verify_log(copy: &LogCopy, expected: Expected<'_>, key: &PublicKey) -> Result<VerifiedLog, BadEntry> {
    let signed = open_heads(copy, expected.origin, key)?;
    let heads = &signed.own;
    let head = heads.last().expect("there is one, or an error").clone();
    let kept = expected.kept_elsewhere.map(|note| open_kept(note, &head, key)).transpose()?;
    let presented: Vec<Hash> = copy.entries.iter().map(|logged| logged.entry.leaf(logged.leaf_salt)).collect();
    let (leaves, own_leaves) = (joined(&copy.leaves), MemoryTree::of(presented.iter().copied()));
    let given_tree = MemoryTree::of(leaves.iter().copied());
    let found = if is_head_of(&head, &given_tree) {
        compare(copy, &presented, &leaves[..head.size as usize], &head)
    } else if !is_head_of(&head, &own_leaves) || presented.len() as u64 != head.size {
        Err(narrow_down(copy, &own_leaves, heads))
    } else {
        Ok(())
    };
    found.map_err(|found| as_spliced(found, copy, &leaves, &signed))?;
    if let Some(stranger) = signed.foreign.first() {
        let what = format!("the signed head that stands here is {}", other_log(&stranger.origin, &head.origin));
        return Err(bad(stranger.size.saturating_sub(1), Tampering::Spliced, what));
    }
    // A key that has signed two histories contradicts itself, whichever of the two is shown.
    let in_copy = heads.iter().map(|head| (head, "an earlier signed head of the same log"));
    for (other, what) in in_copy.chain(kept.iter().map(|kept| (kept, "the checkpoint that was kept elsewhere"))) {
        if !is_head_of(other, &own_leaves) {
            let start = heads.iter().filter(|head| head.size < other.size).map(|head| head.size).next_back();
            let what = format!("the first {} entries are not those of {what}: the log was written anew", other.size);
            return Err(bad(start.unwrap_or(0), Tampering::Altered, what));
        }
    }
    let mut verified = VerifiedLog { head, opened: 0, closed: 0, actors_closed: 0 };
    for logged in &copy.entries {
        let shows_actor = logged.opened.as_ref().is_some_and(|opened| opened.actor.is_some());
        if logged.entry.body.actor.is_some() && !shows_actor {
            verified.actors_closed += 1;
        }
        let Some(opened) = &logged.opened else {
            verified.closed += 1;
            continue;
        };
        if let Err(field) = opened.check(&logged.entry.body) {
            let what = format!("what is shown as its {field:?} does not belong to its hash").to_lowercase();
            return Err(bad(logged.entry.index, Tampering::Altered, what));
        }
        if opened.details.is_none() && logged.entry.body.details.is_some() {
            verified.closed += 1;
        } else {
            verified.opened += 1;
        }
    }
    Ok(verified)
}

/// The signed heads of a copy, smallest first.
struct SignedHeads {
    /// Of the log that is verified; at least one.
    own: Vec<Checkpoint>,
    /// Of other logs of the same key.
    foreign: Vec<Checkpoint>,
}

fn open_heads(copy: &LogCopy, origin: Option<&str>, key: &PublicKey) -> Result<SignedHeads, BadEntry> {
    let mut heads = Vec::with_capacity(copy.checkpoints.len());
    for note in &copy.checkpoints {
        match Checkpoint::open(note, key) {
            Ok(head) => heads.push(head),
            Err(error @ (CheckpointError::NotSigned { .. } | CheckpointError::Malformed(_))) => {
                return Err(bad(0, Tampering::Head, error.to_string()));
            }
        }
    }
    heads.sort_by_key(|head| head.size);
    let Some(most) = of_most_entries(copy, &heads) else {
        return Err(bad(0, Tampering::Head, "there is no signed head (checkpoint)"));
    };
    let origin = origin.unwrap_or(&most).to_owned();
    let (own, foreign): (Vec<_>, Vec<_>) = heads.into_iter().partition(|head| head.origin == origin);
    if own.is_empty() {
        let what = format!("this is {}, not `{origin}`", other_log(&most, &origin));
        return Err(bad(0, Tampering::Spliced, what));
    }
    Ok(SignedHeads { own, foreign })
}

/// The name of the log that most entries are of and that has a head; of the largest head where none is.
fn of_most_entries(copy: &LogCopy, heads: &[Checkpoint]) -> Option<String> {
    let mut count: HashMap<&str, u64> = HashMap::new();
    for logged in &copy.entries {
        *count.entry(logged.entry.origin.as_str()).or_default() += 1;
    }
    let weight = |head: &&Checkpoint| (count.get(head.origin.as_str()).copied().unwrap_or(0), head.size);
    heads.iter().max_by_key(weight).map(|head| head.origin.clone())
}

/// The part of a log's name that says whose it is: all but its number.
fn owner(origin: &str) -> &str {
    origin.rsplit_once('/').map_or(origin, |(owner, _)| owner)
}

/// Another log than this one, in words.
fn other_log(other: &str, origin: &str) -> String {
    let is_own = owner(other) == owner(origin);
    let whose = if is_own { "another log of the same tenant" } else { "the log of another tenant" };
    format!("`{other}`, {whose}")
}

/// Says of a bad entry that it came from another log, where that log's head came with it: the head that closes its block is
/// the other log's, or the leaf beside it is that of an entry of the other log. Rows of a database carry no name, so that
/// the entries themselves look like this log's.
fn as_spliced(found: BadEntry, copy: &LogCopy, leaves: &[Hash], signed: &SignedHeads) -> BadEntry {
    let heads = &signed.own;
    if matches!(found.kind, Tampering::Reordered | Tampering::Spliced | Tampering::Head) {
        return found;
    }
    let before = heads.iter().rev().map(|head| head.size).find(|size| *size <= found.index).unwrap_or(0);
    let after = heads.iter().map(|head| head.size).find(|size| *size > found.index);
    for stranger in &signed.foreign {
        let is_theirs = |at: &u64| {
            let at = *at as usize;
            let (Some(logged), Some(leaf)) = (copy.entries.get(at), leaves.get(at)) else { return false };
            let entry = Entry { origin: stranger.origin.clone(), ..logged.entry.clone() };
            entry.leaf(logged.leaf_salt) == *leaf
        };
        let proven = (before..found.index.saturating_add(2)).find(is_theirs);
        let closes = stranger.size > found.index && after.is_none_or(|after| stranger.size <= after);
        if proven.is_some() || closes {
            let origin = heads.last().map_or("", |head| head.origin.as_str());
            let what = format!("it is an entry of {}", other_log(&stranger.origin, origin));
            return bad(proven.unwrap_or(found.index), Tampering::Spliced, what);
        }
    }
    found
}

fn open_kept(note: &str, head: &Checkpoint, key: &PublicKey) -> Result<Checkpoint, BadEntry> {
    let kept = Checkpoint::open(note, key)
        .map_err(|error| bad(0, Tampering::Head, format!("the checkpoint that was kept elsewhere: {error}")))?;
    if kept.origin != head.origin {
        let what =
            format!("the checkpoint that was kept elsewhere is of `{}`, the log is `{}`", kept.origin, head.origin);
        // After a restore the tenant's own log begins anew: then the checkpoint is one of the log before it.
        let is_own = owner(&kept.origin) == owner(&head.origin);
        return Err(bad(0, if is_own { Tampering::Head } else { Tampering::Spliced }, what));
    }
    if kept.size > head.size {
        let what = format!(
            "the log has {} entries, and had {} when the checkpoint was made that was kept elsewhere",
            head.size, kept.size
        );
        return Err(bad(head.size, Tampering::Truncated, what));
    }
    Ok(kept)
}

/// The leaves from 0 on, as far as they are without a gap.
fn joined(spans: &[LeafSpan]) -> Vec<Hash> {
    let mut spans: Vec<_> = spans.iter().collect();
    spans.sort_by_key(|span| span.first);
    let mut leaves = Vec::new();
    for span in spans {
        if span.first == leaves.len() as u64 {
            leaves.extend(span.hashes.iter().map(|hash| hash.0));
        }
    }
    leaves
}

fn is_head_of(head: &Checkpoint, tree: &MemoryTree) -> bool {
    tree.size() >= head.size && root(tree, head.size).is_ok_and(|found| found == head.root)
}

/// The leaves are the true ones: what of the entries is not as they say?
fn compare(copy: &LogCopy, presented: &[Hash], leaves: &[Hash], head: &Checkpoint) -> Result<(), BadEntry> {
    let differs = presented.iter().zip(leaves).position(|(presented, leaf)| presented != leaf);
    let Some(at) = differs else {
        return match presented.len().cmp(&leaves.len()) {
            Ordering::Equal => Ok(()),
            Ordering::Less => {
                let what = format!("the log ends here, and its signed head has {} entries", head.size);
                Err(bad(presented.len() as u64, Tampering::Truncated, what))
            }
            Ordering::Greater => Err(bad(head.size, Tampering::Inserted, "the signed head does not have this entry")),
        };
    };
    let index = at as u64;
    let entry = &copy.entries[at].entry;
    let place: HashMap<Hash, usize> = leaves.iter().copied().zip(0..).collect();
    if let Some(&truly) = place.get(&presented[at]) {
        let missing = !presented.iter().collect::<HashSet<_>>().contains(&leaves[at]);
        return Err(if missing {
            bad(index, Tampering::Removed, format!("entry {truly} stands in its place"))
        } else {
            bad(index, Tampering::Reordered, format!("entry {truly} stands in its place"))
        });
    }
    if entry.origin != head.origin {
        let what = format!("it is an entry of {}", other_log(&entry.origin, &head.origin));
        return Err(bad(index, Tampering::Spliced, what));
    }
    let truly = true_entry(copy, at, leaves[at], head);
    Err(if presented.get(at + 1) == Some(&leaves[at]) || (truly.is_some() && presented.len() > leaves.len()) {
        bad(index, Tampering::Inserted, "the signed head does not have this entry, and has a later one in its place")
    } else if let Some(stands_at) = truly {
        let what = format!("what was sealed here stands in the place of entry {stands_at}; the chain was made anew");
        bad(index, Tampering::Reordered, what)
    } else if presented.len() < leaves.len() {
        let what = format!("from here on the log was written anew, without {} entries", leaves.len() - presented.len());
        bad(index, Tampering::Removed, what)
    } else {
        bad(index, Tampering::Altered, "it is not what was sealed")
    })
}

/// Where the entry is that was sealed at this place, if it is among the later ones with another index and link. It is so
/// where rows of the database were exchanged, because an entry gets both from its row's place.
fn true_entry(copy: &LogCopy, at: usize, leaf: Hash, head: &Checkpoint) -> Option<usize> {
    // Every entry before this one is the true one, and so is the link to it.
    let prev = at.checked_sub(1).map_or(FIRST_PREV, |before| copy.entries[before].entry.hash());
    let is_it = |logged: &LoggedEntry| {
        let body = logged.entry.body.clone();
        let entry = Entry { body, index: at as u64, origin: head.origin.clone(), prev };
        entry.leaf(logged.leaf_salt) == leaf
    };
    copy.entries.iter().enumerate().skip(at + 1).find(|(_, logged)| is_it(logged)).map(|(place, _)| place)
}

/// Neither leaves nor entries lead to the head. The earlier heads say up to where they do, and the chain what comes next.
fn narrow_down(copy: &LogCopy, tree: &MemoryTree, heads: &[Checkpoint]) -> BadEntry {
    let head = heads.last().expect("there is one");
    let good = heads.iter().rev().find(|head| is_head_of(head, tree)).map_or(0, |head| head.size);
    let until = heads.iter().find(|head| head.size > good).map_or(head.size, |head| head.size);
    let mut prev = match good.checked_sub(1).and_then(|last| copy.entries.get(last as usize)) {
        Some(logged) => logged.entry.hash(),
        None => FIRST_PREV,
    };
    let later: HashSet<u64> = copy.entries.iter().skip(good as usize).map(|logged| logged.entry.index).collect();
    for (at, logged) in copy.entries.iter().enumerate().skip(good as usize) {
        let (index, entry) = (at as u64, &logged.entry);
        if index >= head.size {
            break;
        }
        if entry.origin != head.origin {
            let what = format!("it is an entry of {}", other_log(&entry.origin, &head.origin));
            return bad(index, Tampering::Spliced, what);
        }
        if entry.index < index && copy.entries.len() as u64 > head.size {
            let index = if entry.index + 1 == index { entry.index } else { index };
            let what = format!("two entries say that they are entry {}", entry.index);
            return bad(index, Tampering::Inserted, what);
        }
        if entry.index != index {
            let kind = if later.contains(&index) { Tampering::Reordered } else { Tampering::Removed };
            return bad(index, kind, format!("entry {} stands in its place", entry.index));
        }
        if entry.prev != prev {
            // The entry before was sealed as something else, unless a signed head vouches for it.
            let index = if index > good { index - 1 } else { index };
            return bad(index, Tampering::Altered, "the chain breaks here");
        }
        prev = entry.hash();
    }
    let (count, until) = (copy.entries.len() as u64, until.saturating_sub(1));
    // Cut off at its end, a log still has the heads of before.
    if count < head.size && heads.iter().filter(|head| head.size <= count).all(|head| is_head_of(head, tree)) {
        let what = format!("the log ends here, and its signed head has {} entries", head.size);
        return bad(count, Tampering::Truncated, what);
    }
    let anew = format!("from one of the entries {good} to {until} on the log was written anew");
    match count.cmp(&head.size) {
        Ordering::Less => bad(good, Tampering::Removed, format!("{anew}, without {} entries", head.size - count)),
        Ordering::Greater => bad(good, Tampering::Inserted, format!("{anew}, with {} more entries", count - head.size)),
        Ordering::Equal => {
            let what = format!(
                "one of the entries {good} to {until} is not what was sealed; the chain was computed anew behind it"
            );
            bad(good, Tampering::Altered, what)
        }
    }
}
