//! A log of 10,000 entries, tampered with in every way: each is found, at its place and by its name.

use std::collections::BTreeMap;

use interlock_core::ids::RunId;
use interlock_core::json::{Hash, HashHex};
use interlock_core::time::Timestamp;
use interlock_evidence::entry::Salt;
use interlock_evidence::export::{ExportLine, LeafSpan, LogCopy, LoggedEntry, read};
use interlock_evidence::verify_log::{BadEntry, Expected, Tampering, VerifiedLog, verify_log};
use interlock_evidence::writer::{LogState, entries};
use interlock_evidence::{Body, Commitments, EntryOpening, EntrySalts, SigningKey};
use proptest::prelude::*;

const SIZE: u64 = 10_000;
const BLOCK: u64 = 97;

fn key() -> SigningKey {
    SigningKey::from_seed("interlock/test", &[1; 32])
}

fn origin(tenant: &str) -> String {
    format!("interlock/test/{tenant}/1")
}

/// An entry's body with what its hashes hide.
fn body(number: u64, salts: EntrySalts) -> (Body, EntryOpening) {
    let commitments = Commitments(salts.commitments);
    let actor = number.is_multiple_of(3).then(|| format!("person {}", number % 7));
    let details = format!("{{\"events\":[],\"number\":{number}}}");
    let body = Body {
        actor: actor.as_deref().map(|name| HashHex(commitments.actor(name))),
        at: Timestamp(1_700_000_000_000 + number as i64),
        details: Some(HashHex(commitments.details(&details))),
        initiator: "system".into(),
        pins: BTreeMap::new(),
        run: Some(RunId::from_bytes(u128::from(number / 5).to_be_bytes())),
        seq: Some((number % 5 + 1, number % 5 + 1)),
        subject: None,
        types: vec!["execution.step.completed".into()],
    };
    (body, EntryOpening { actor, details: Some(details), salt: salts.commitments })
}

/// A log, sealed in blocks, each with a signed head.
fn log(tenant: &str, size: u64) -> LogCopy {
    let mut state = LogState::new(origin(tenant));
    let mut copy = LogCopy::default();
    let mut seed = [9; 32];
    seed[0] = tenant.as_bytes()[0];
    while state.size() < size {
        let from = state.size();
        let until = (from + BLOCK).min(size);
        let salted = (from..until).map(|number| (number, EntrySalts::draw(&seed, number)));
        let (mut bodies, mut shown) = (Vec::new(), Vec::new());
        for (number, salts) in salted {
            let (body, opened) = body(number, salts);
            bodies.push((body, salts));
            shown.push(opened);
        }
        let block = state.append(bodies);
        let chained = entries(&state.origin, block.first, block.prev, block.bodies);
        for ((entry, salts), opened) in chained.into_iter().zip(&block.salts).zip(shown) {
            copy.entries.push(LoggedEntry { entry, leaf_salt: salts.leaf, opened: Some(opened) });
        }
        let hashes = block.leaves.iter().map(|hash| HashHex(*hash)).collect();
        copy.leaves.push(LeafSpan { first: block.first, hashes });
        copy.checkpoints.push(state.head().sign(&key()));
    }
    copy
}

fn verify(copy: &LogCopy) -> Result<VerifiedLog, BadEntry> {
    verify_log(copy, Expected { origin: Some(&origin("a")), kept_elsewhere: None }, key().public())
}

fn found(copy: &LogCopy) -> (u64, Tampering) {
    let bad = verify(copy).expect_err("it was tampered with");
    (bad.index, bad.kind)
}

/// The same, of a copy that has entries and heads only: the chain and the heads must do.
fn without_leaves(copy: &LogCopy) -> LogCopy {
    LogCopy { leaves: Vec::new(), ..copy.clone() }
}

/// Computes the chain anew from an entry on, as an attacker would who covers up a change.
fn rehash(copy: &mut LogCopy, from: usize) {
    for at in from..copy.entries.len() {
        let prev = if at == 0 { Hash([0; 32]) } else { copy.entries[at - 1].entry.hash() };
        copy.entries[at].entry.prev = prev;
        copy.entries[at].entry.index = at as u64;
    }
}

#[test]
fn an_untouched_log_verifies_with_and_without_its_leaves() {
    let copy = log("a", SIZE);
    let verified = verify(&copy).unwrap();
    assert_eq!((verified.head.size, verified.opened, verified.closed), (SIZE, SIZE, 0));
    assert_eq!(verify(&without_leaves(&copy)).unwrap(), verified);
    let only_head = LogCopy { checkpoints: copy.checkpoints.last().cloned().into_iter().collect(), ..copy };
    assert_eq!(verify(&only_head).unwrap(), verified);
}

#[test]
fn every_tampering_is_found_at_its_place_and_named() {
    let whole = log("a", SIZE);
    let other = log("b", SIZE);
    for at in [0usize, 97, 4_999, 9_998] {
        let index = at as u64;
        let mut altered = whole.clone();
        altered.entries[at].entry.body.at = Timestamp(5);
        assert_eq!(found(&altered), (index, Tampering::Altered), "altered at {at}");
        assert_eq!(found(&without_leaves(&altered)), (index, Tampering::Altered), "altered at {at}, no leaves");

        let mut covered = altered.clone();
        rehash(&mut covered, at);
        assert_eq!(found(&covered), (index, Tampering::Altered), "altered at {at}, chain computed anew");
        let (near, kind) = found(&without_leaves(&covered));
        assert_eq!((near, kind), (index / BLOCK * BLOCK, Tampering::Altered), "the signed heads name the block");

        let mut removed = whole.clone();
        removed.entries.remove(at);
        assert_eq!(found(&removed), (index, Tampering::Removed), "removed at {at}");
        assert_eq!(found(&without_leaves(&removed)), (index, Tampering::Removed), "removed at {at}, no leaves");
        rehash(&mut removed, at);
        assert_eq!(found(&removed), (index, Tampering::Removed), "removed at {at}, chain computed anew");
        // In the last block, which no head follows, it looks as if the end were cut off.
        if index < SIZE / BLOCK * BLOCK {
            let near = (index / BLOCK * BLOCK, Tampering::Removed);
            assert_eq!(found(&without_leaves(&removed)), near, "the signed heads name the block");
        }

        let mut reordered = whole.clone();
        reordered.entries.swap(at, at + 1);
        assert_eq!(found(&reordered), (index, Tampering::Reordered), "reordered at {at}");
        assert_eq!(found(&without_leaves(&reordered)), (index, Tampering::Reordered), "reordered at {at}, no leaves");
        rehash(&mut reordered, at);
        assert_eq!(found(&reordered), (index, Tampering::Reordered), "reordered at {at}, chain computed anew");

        let mut spliced = whole.clone();
        spliced.entries[at] = other.entries[at].clone();
        assert_eq!(found(&spliced), (index, Tampering::Spliced), "spliced at {at}");
        assert_eq!(found(&without_leaves(&spliced)), (index, Tampering::Spliced), "spliced at {at}, no leaves");

        let mut inserted = whole.clone();
        let forged = LoggedEntry { leaf_salt: Salt([4; 16]), ..inserted.entries[at].clone() };
        inserted.entries.insert(at, forged);
        assert_eq!(found(&inserted), (index, Tampering::Inserted), "inserted at {at}");
        assert_eq!(found(&without_leaves(&inserted)), (index, Tampering::Inserted), "inserted at {at}, no leaves");
        rehash(&mut inserted, at);
        assert_eq!(found(&inserted), (index, Tampering::Inserted), "inserted at {at}, chain computed anew");
        let near = (index / BLOCK * BLOCK, Tampering::Inserted);
        assert_eq!(found(&without_leaves(&inserted)), near, "the signed heads name the block");

        let mut truncated = whole.clone();
        truncated.entries.truncate(at);
        assert_eq!(found(&truncated), (index, Tampering::Truncated), "truncated at {at}");
        assert_eq!(found(&without_leaves(&truncated)), (index, Tampering::Truncated), "truncated at {at}, no leaves");

        let mut shown = whole.clone();
        shown.entries[at].opened.as_mut().unwrap().details = Some("{}".into());
        assert_eq!(found(&shown), (index, Tampering::Altered), "other details shown at {at}");
    }
}

/// Rows of a database carry no name: a block that was moved in takes this log's, with the other one's head beside it.
fn with_block_of(whole: &LogCopy, other: &LogCopy, block: usize) -> LogCopy {
    let mut copy = whole.clone();
    let (first, count) = (block * BLOCK as usize, other.leaves[block].hashes.len());
    let moved = &other.entries[first..first + count];
    let bodies = moved.iter().map(|logged| logged.entry.body.clone()).collect();
    let chained = entries(&origin("a"), first as u64, moved[0].entry.prev, bodies);
    for (at, entry) in chained.into_iter().enumerate() {
        copy.entries[first + at] = LoggedEntry { entry, ..moved[at].clone() };
    }
    copy.leaves[block] = other.leaves[block].clone();
    copy.checkpoints[block].clone_from(&other.checkpoints[block]);
    copy
}

#[test]
fn a_block_of_another_tenant_is_named_as_spliced_also_with_its_head() {
    let (whole, other) = (log("a", SIZE), log("b", SIZE));
    let last = whole.checkpoints.len() - 1;
    for block in [0, 1, 51, last] {
        let index = block as u64 * BLOCK;
        let moved = with_block_of(&whole, &other, block);
        let bad = verify(&moved).unwrap_err();
        assert_eq!((bad.index, bad.kind), (index, Tampering::Spliced), "block {block}");
        assert!(bad.what.contains("`interlock/test/b/1`, the log of another tenant"), "{bad}");
        let nameless = verify_log(&moved, Expected::default(), key().public()).unwrap_err();
        assert_eq!(nameless, bad, "the entries tell which log it is");
        let without = verify(&without_leaves(&moved)).unwrap_err();
        assert_eq!(without.kind, Tampering::Spliced, "block {block}, no leaves");
        assert_eq!(without.index / BLOCK, block as u64, "{without}");

        let mut twice = moved.clone();
        twice.checkpoints.push(whole.checkpoints[last].clone());
        assert_eq!(found(&twice), (index, Tampering::Spliced), "block {block}, with the log's own head");

        // Something else was done before it: that comes first, and is not taken for the other log's.
        if block > 1 {
            let mut altered = moved;
            altered.entries[5].entry.body.at = Timestamp(5);
            assert_eq!(found(&altered), (5, Tampering::Altered), "block {block}");
        }
    }
    // Only the head was moved in.
    let mut head = whole.clone();
    head.checkpoints[3].clone_from(&other.checkpoints[3]);
    assert_eq!(found(&head), (4 * BLOCK - 1, Tampering::Spliced));
    let mut earlier = log("a", 300);
    earlier.checkpoints.push({
        let mut state = LogState::new("interlock/test/a/2".into());
        let salts = EntrySalts::draw(&[3; 32], 0);
        state.append(vec![(body(0, salts).0, salts)]);
        state.head().sign(&key())
    });
    let bad = verify(&earlier).unwrap_err();
    assert_eq!((bad.index, bad.kind), (0, Tampering::Spliced));
    assert!(bad.what.contains("another log of the same tenant"), "{bad}");
}

/// Cut off together with its leaves and its heads a log is whole by itself: the checkpoint kept elsewhere tells.
#[test]
fn a_rolled_back_log_is_found_by_a_checkpoint_kept_elsewhere() {
    let whole = log("a", SIZE);
    let mut cut = whole.clone();
    cut.entries.truncate(97);
    cut.leaves.truncate(1);
    cut.checkpoints.truncate(1);
    assert_eq!(verify(&cut).unwrap().head.size, 97, "nothing in it shows that it was longer");
    let kept = |copy: &LogCopy, note: &str| {
        let expected = Expected { origin: None, kept_elsewhere: Some(note) };
        verify_log(copy, expected, key().public()).map_err(|bad| (bad.index, bad.kind))
    };
    let newest = whole.checkpoints.last().unwrap();
    assert_eq!(kept(&cut, newest), Err((97, Tampering::Truncated)));
    for older in whole.checkpoints.iter().step_by(40) {
        assert!(kept(&whole, older).is_ok());
    }
    // Another history under the same name, signed by the same key: only what was kept elsewhere contradicts it.
    let mut state = LogState::new(origin("a"));
    let (first, opened) = body(77, EntrySalts::draw(&[3; 32], 0));
    let salts = EntrySalts::draw(&[3; 32], 0);
    let mut forged = LogCopy::default();
    let block = state.append(vec![(first.clone(), salts); 200]);
    for entry in entries(&state.origin, 0, block.prev, block.bodies) {
        forged.entries.push(LoggedEntry { entry, leaf_salt: salts.leaf, opened: Some(opened.clone()) });
    }
    forged.checkpoints.push(state.head().sign(&key()));
    assert!(verify(&forged).is_ok());
    assert_eq!(kept(&forged, &whole.checkpoints[0]), Err((0, Tampering::Altered)));
    // So does a head of it that was left among the others.
    let both = LogCopy { checkpoints: [whole.checkpoints.clone(), forged.checkpoints].concat(), ..whole };
    assert_eq!(found(&both), (2 * BLOCK, Tampering::Altered));
}

#[test]
fn heads_of_others_are_refused() {
    let whole = log("a", 300);
    let stranger = SigningKey::from_seed("interlock/test", &[2; 32]);
    let refused = verify_log(&whole, Expected::default(), stranger.public()).unwrap_err();
    assert_eq!(refused.kind, Tampering::Head);
    let other = log("b", 300);
    assert_eq!(found(&other), (0, Tampering::Spliced), "another tenant's whole log does not pass for this one");
    let kept = Expected { origin: None, kept_elsewhere: Some(&whole.checkpoints[0]) };
    let swapped = verify_log(&other, kept, key().public()).unwrap_err();
    assert_eq!(swapped.kind, Tampering::Spliced, "nor where only a checkpoint of this one was kept");
    let mixed = LogCopy { checkpoints: [whole.checkpoints.clone(), other.checkpoints].concat(), ..whole.clone() };
    assert_eq!(found(&mixed), (BLOCK - 1, Tampering::Spliced));
    assert_eq!(found(&LogCopy { checkpoints: Vec::new(), ..whole }), (0, Tampering::Head));
}

/// Personal data goes, with the salt that it could be guessed by, and the log verifies as before.
#[test]
fn erased_details_leave_the_log_verifiable() {
    let mut copy = log("a", 1_000);
    let erased: Vec<_> = (0..1_000).filter(|number| number % 3 == 0).collect();
    for at in &erased {
        copy.entries[*at].opened = None;
    }
    let verified = verify(&copy).unwrap();
    assert_eq!((verified.opened, verified.closed, verified.actors_closed), (666, 334, 334));
    let text: String = copy.entries.iter().map(|logged| serde_json::to_string(logged).unwrap()).collect();
    assert!(!text.contains("person"), "the names are gone");
}

/// To take the names out of a copy alters nothing that is hashed; it is counted, as removed details are.
#[test]
fn removed_actors_are_counted() {
    let mut copy = log("a", 1_000);
    assert_eq!(verify(&copy).unwrap().actors_closed, 0, "entries without an actor lack none");
    for logged in copy.entries.iter_mut().take(300) {
        logged.opened.as_mut().unwrap().actor = None;
    }
    let verified = verify(&copy).unwrap();
    assert_eq!((verified.opened, verified.closed, verified.actors_closed), (1_000, 0, 100));
}

#[test]
fn a_log_survives_its_file_and_a_bad_line_is_named() {
    let copy = log("a", 200);
    let mut file = String::new();
    let mut line = |line: &ExportLine| {
        file.push_str(&serde_json::to_string(line).unwrap());
        file.push('\n');
    };
    copy.checkpoints.iter().for_each(|note| line(&ExportLine::Checkpoint(note.clone())));
    copy.entries.iter().for_each(|entry| line(&ExportLine::Entry(entry.clone())));
    copy.leaves.iter().for_each(|leaves| line(&ExportLine::Leaves(leaves.clone())));
    let back = read(file.as_bytes()).unwrap();
    assert_eq!(back.entries, copy.entries);
    assert_eq!(verify(&back).unwrap().head.size, 200);
    let error = read("\n{\"entry\":{}}\n".as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("line 2 cannot be read: missing field `entry` at column "), "{error}");
    for bad in ["7", "[[[", "{\"checkpoint\":\"a\",\"checkpoint\":\"b\"}", "{\"payload\":\"AA\"}", "\0\0", "\"\u{ff}"] {
        let error = read(bad.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("line 1 cannot be read: "), "{error}");
        for word in ["expected value", "variant", "EOF", "at line"] {
            assert!(!error.contains(word), "{bad}: {error}");
        }
    }
    let deep = format!("{{\"entry\":{{\"entry\":{}", "[".repeat(100_000));
    assert!(read(deep.as_bytes()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever byte of an exported entry is changed, the copy does not pass, or means the same.
    #[test]
    fn no_byte_of_an_entry_can_be_changed(at in 0usize..300, byte in any::<usize>(), bit in 0u8..7) {
        let mut copy = log("a", 300);
        let mut text = serde_json::to_string(&copy.entries[at]).unwrap().into_bytes();
        let byte = byte % text.len();
        text[byte] ^= 1 << bit;
        if let Ok(changed) = serde_json::from_slice::<LoggedEntry>(&text) && changed != copy.entries[at] {
            copy.entries[at] = changed;
            let (index, _) = found(&copy);
            prop_assert_eq!(index, at as u64);
            prop_assert!(verify(&without_leaves(&copy)).is_err());
        }
    }
}
