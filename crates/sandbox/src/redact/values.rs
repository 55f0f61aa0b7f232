//! Finds known values in a stream, in any of their forms.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use super::MARK;
use super::forms::{Needle, Spelling, needles};
use crate::secret::SecretValue;
use crate::sys::LockedBytes;

/// All forms of all values that must not be seen. Made once for a command, used by both of its streams.
///
/// A value is given away by the order of its characters. That order is in locked memory, as numbers of units; the units
/// themselves are sorted, each there once, in ordinary memory.
pub struct Values {
    units: Vec<Vec<Spelling>>,
    /// For each unit of each needle its number, two bytes. Nothing where there are no values.
    order: Option<LockedBytes>,
    /// Where each needle stands in `order`.
    needles: Vec<Range<usize>>,
    /// The needles that may begin with a byte.
    by_first: Vec<Vec<usize>>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values({} forms)", self.needles.len())
    }
}

impl Values {
    /// Nothing is found by its value.
    pub fn none() -> Arc<Self> {
        let by_first = vec![Vec::new(); 256];
        Arc::new(Self { units: Vec::new(), order: None, needles: Vec::new(), by_first })
    }

    /// An error where memory for them cannot be locked.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a SecretValue>) -> io::Result<Arc<Self>> {
        // A value that comes twice is looked for once.
        let mut known: Vec<&SecretValue> = Vec::new();
        for secret in secrets {
            if !known.iter().any(|earlier| earlier.bytes() == secret.bytes()) {
                known.push(secret);
            }
        }
        let spelled: Vec<Needle> = known.into_iter().flat_map(|secret| needles(secret.bytes())).collect();
        let distinct: BTreeSet<&Vec<Spelling>> = spelled.iter().flat_map(|needle| &needle.units).collect();
        let units: Vec<Vec<Spelling>> = distinct.into_iter().cloned().collect();
        let count: usize = spelled.iter().map(|needle| needle.units.len()).sum();
        // As large as it gets: what it would outgrow could not be wiped.
        let mut order: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(2 * count));
        let mut ranges = Vec::with_capacity(spelled.len());
        for needle in &spelled {
            let from = order.len();
            for unit in &needle.units {
                let number = units.partition_point(|known| known < unit);
                let number = u16::try_from(number).map_err(|_| io::Error::other("too many characters in secrets"))?;
                order.extend(number.to_le_bytes());
            }
            ranges.push(from..order.len());
        }
        let order = if order.is_empty() { None } else { Some(LockedBytes::holding(&order)?) };
        let mut by_first = vec![Vec::new(); 256];
        for (number, needle) in spelled.iter().enumerate() {
            for first in needle.units.first().into_iter().flatten().filter_map(|spelling| spelling.first()) {
                let listed: &mut Vec<usize> = &mut by_first[usize::from(*first)];
                if listed.last() != Some(&number) {
                    listed.push(number);
                }
            }
        }
        Ok(Arc::new(Self { units, order, needles: ranges, by_first }))
    }

    /// The units of a needle, one after the other.
    fn units_of(&self, needle: &Range<usize>) -> impl Iterator<Item = &Vec<Spelling>> {
        let order = self.order.as_ref().map_or(&[] as &[u8], LockedBytes::bytes);
        let (numbers, _) = order[needle.clone()].as_chunks::<2>();
        numbers.iter().map(move |number| &self.units[usize::from(u16::from_le_bytes(*number))])
    }

    /// The longest value at the beginning of the text, or that it takes more text to tell.
    fn at_start(&self, text: &[u8]) -> ValueMatch {
        let candidates = text.first().map(|first| &self.by_first[usize::from(*first)]);
        let mut longest = None;
        for number in candidates.into_iter().flatten() {
            match self.seen(&self.needles[*number], text) {
                ValueMatch::MaybeLonger => return ValueMatch::MaybeLonger,
                ValueMatch::Value(len) => longest = longest.max(Some(len)),
                ValueMatch::Nothing => {}
            }
        }
        longest.map_or(ValueMatch::Nothing, ValueMatch::Value)
    }

    /// Follows all spellings at once, so that ambiguous ones cost no more than their number.
    fn seen(&self, needle: &Range<usize>, text: &[u8]) -> ValueMatch {
        let mut ends = vec![0];
        let mut maybe_longer = false;
        for spellings in self.units_of(needle) {
            let mut next = Vec::new();
            for end in &ends {
                let rest = &text[*end..];
                for spelling in spellings {
                    if rest.starts_with(spelling) {
                        next.push(end + spelling.len());
                    } else if rest.len() < spelling.len() && spelling.starts_with(rest) {
                        maybe_longer = true;
                    }
                }
            }
            next.sort_unstable();
            next.dedup();
            ends = next;
        }
        if maybe_longer {
            return ValueMatch::MaybeLonger;
        }
        ends.last().map_or(ValueMatch::Nothing, |end| ValueMatch::Value(*end))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueMatch {
    Nothing,
    Value(usize),
    MaybeLonger,
}

#[derive(Debug)]
pub(super) struct ValueScan {
    values: Arc<Values>,
    held: Vec<u8>,
}

impl ValueScan {
    pub fn new(values: Arc<Values>) -> Self {
        Self { values, held: Vec::new() }
    }

    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.scan(bytes, false, out);
    }

    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.scan(&[], true, out);
    }

    fn scan(&mut self, bytes: &[u8], ended: bool, out: &mut Vec<u8>) {
        if self.values.needles.is_empty() {
            out.extend(bytes);
            return;
        }
        self.held.extend(bytes);
        let mut at = 0;
        while at < self.held.len() {
            let text = &self.held[at..];
            let seen = match self.values.at_start(text) {
                ValueMatch::MaybeLonger if !ended => break,
                // No more text comes: the longest value within what there is.
                ValueMatch::MaybeLonger => longest_whole(&self.values, text),
                seen => seen,
            };
            if let ValueMatch::Value(len) = seen {
                out.extend(MARK.as_bytes());
                at += len;
            } else {
                let skip = text.iter().skip(1).position(|byte| !self.values.by_first[usize::from(*byte)].is_empty());
                let text = &text[..skip.map_or(text.len(), |skip| skip + 1)];
                out.extend(text);
                at += text.len();
            }
        }
        let rest = self.held.split_off(at);
        self.held.zeroize();
        self.held = rest;
    }
}

fn longest_whole(values: &Values, text: &[u8]) -> ValueMatch {
    let whole = |needle: &Range<usize>| {
        let mut ends = vec![0];
        for spellings in values.units_of(needle) {
            let ends_of = |end: &usize| {
                let rest = &text[*end..];
                spellings
                    .iter()
                    .filter(|spelling| rest.starts_with(spelling))
                    .map(|s| end + s.len())
                    .collect::<Vec<_>>()
            };
            ends = ends.iter().flat_map(ends_of).collect();
            ends.dedup();
        }
        ends.into_iter().max()
    };
    values.needles.iter().filter_map(whole).max().map_or(ValueMatch::Nothing, ValueMatch::Value)
}

impl Drop for ValueScan {
    fn drop(&mut self) {
        self.held.zeroize();
    }
}
