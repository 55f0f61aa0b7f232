//! Finds known values in a stream, in any of their forms.

use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use zeroize::{Zeroize, Zeroizing};

use super::MARK;
use super::forms::{BLANKS, INDENT_MAX, Needle, Spelling, Unit, WRAPS, needles};
use super::prefixes::{PrefixBits, PrefixFilter};
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
    needles: Vec<OrderedNeedle>,
    /// The needles that may begin with a byte.
    by_first: Vec<Vec<usize>>,
    /// How needles begin. Nothing where there are no values.
    prefixes: Option<PrefixFilter>,
    /// Of the longest spelling of any unit, or of the longest end of a wrapped line.
    spelling_bytes_max: usize,
}

/// A [`Needle`] whose units are in `order`.
struct OrderedNeedle {
    /// Where its units stand in `order` of the values.
    order: Range<usize>,
    units_min: usize,
    is_wrapped: bool,
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
        let (units, needles) = (Vec::new(), Vec::new());
        Arc::new(Self { units, order: None, needles, by_first, prefixes: None, spelling_bytes_max: 0 })
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
        let distinct: BTreeSet<Unit> = spelled.iter().flat_map(|needle| &needle.units).copied().collect();
        let distinct: Vec<Unit> = distinct.into_iter().collect();
        let units: Vec<Vec<Spelling>> = distinct.iter().copied().map(Unit::spellings).collect();
        let count: usize = spelled.iter().map(|needle| needle.units.len()).sum();
        // As large as it gets: what it would outgrow could not be wiped.
        let mut order: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(2 * count));
        let mut ordered = Vec::with_capacity(spelled.len());
        for needle in &spelled {
            let from = order.len();
            for unit in &needle.units {
                let place = distinct.partition_point(|known| known < unit);
                let place = u16::try_from(place).map_err(|_| io::Error::other("too many characters in secrets"))?;
                order.extend(place.to_le_bytes());
            }
            let (units_min, is_wrapped) = (needle.units_min, needle.is_wrapped);
            ordered.push(OrderedNeedle { order: from..order.len(), units_min, is_wrapped });
        }
        let order = if order.is_empty() { None } else { Some(LockedBytes::holding(&order)?) };
        let mut by_first = vec![Vec::new(); 256];
        for (number, needle) in spelled.iter().enumerate() {
            let spellings: Vec<Spelling> = needle.units.iter().take(1).copied().flat_map(Unit::spellings).collect();
            for first in spellings.iter().filter_map(|spelling| spelling.first()) {
                let listed: &mut Vec<usize> = &mut by_first[usize::from(*first)];
                if listed.last() != Some(&number) {
                    listed.push(number);
                }
            }
        }
        let spelling_bytes_max = units.iter().flatten().map(Vec::len).chain(WRAPS.iter().map(|wrap| wrap.len())).max();
        let spelling_bytes_max = spelling_bytes_max.unwrap_or(0);
        let mut values = Self { units, order, needles: ordered, by_first, prefixes: None, spelling_bytes_max };
        if !values.needles.is_empty() {
            let mut prefixes = PrefixBits::for_needles(values.needles.len());
            for needle in 0..values.needles.len() {
                values.add_prefixes(&Begun { needle, units: 0, indent: None, start: 0 }, &[], &mut prefixes);
            }
            values.prefixes = Some(prefixes.lock()?);
        }
        Ok(Arc::new(values))
    }

    /// Adds all ways in which what was begun with `prefix` may go on, as far as the filter looks.
    fn add_prefixes(&self, begun: &Begun, prefix: &[u8], prefixes: &mut PrefixBits) {
        if prefixes.add(prefix) {
            return;
        }
        if self.is_found(begun) {
            prefixes.add_all();
            return;
        }
        for spelling in self.next_unit(begun) {
            let longer = Zeroizing::new([prefix, spelling.as_slice()].concat());
            self.add_prefixes(&begun.with_unit(), &longer, prefixes);
        }
        for wrap in self.wraps(begun) {
            let longer = Zeroizing::new([prefix, *wrap].concat());
            self.add_prefixes(&begun.with_wrap(), &longer, prefixes);
        }
    }

    /// The ways of writing the unit that a beginning goes on with.
    fn next_unit(&self, begun: &Begun) -> &[Spelling] {
        let order = self.order.as_ref().map_or(&[] as &[u8], LockedBytes::bytes);
        let (numbers, _) = order[self.needles[begun.needle].order.clone()].as_chunks::<2>();
        &self.units[usize::from(u16::from_le_bytes(numbers[begun.units]))]
    }

    /// What may stand before the next unit where an encoded value is wrapped into lines.
    fn wraps(&self, begun: &Begun) -> &'static [&'static [u8]] {
        if begun.units == 0 || !self.needles[begun.needle].is_wrapped {
            return &[];
        }
        match begun.indent {
            None => WRAPS,
            Some(indent) if indent < INDENT_MAX => BLANKS,
            Some(_) => &[],
        }
    }

    fn is_found(&self, begun: &Begun) -> bool {
        self.needles[begun.needle].units_min <= begun.units
    }

    fn is_whole(&self, begun: &Begun) -> bool {
        2 * begun.units == self.needles[begun.needle].order.len()
    }

    /// Whether it takes more text to tell how a beginning goes on.
    fn is_undecided(&self, begun: &Begun, text: &[u8]) -> bool {
        self.next_unit(begun).iter().any(|spelling| is_cut(spelling, text))
            || self.wraps(begun).iter().any(|wrap| is_cut(wrap, text))
    }

    /// Whether a value may begin at the beginning of `text`. Also where there is too little of it to tell.
    pub(super) fn may_begin(&self, text: &[u8]) -> bool {
        text.first().is_some_and(|first| !self.by_first[usize::from(*first)].is_empty())
            && self.prefixes.as_ref().is_some_and(|prefixes| prefixes.passes(text))
    }
}

/// Whether `text` ends within `spelling`.
fn is_cut(spelling: &[u8], text: &[u8]) -> bool {
    text.len() < spelling.len() && spelling.starts_with(text)
}

/// The beginning of a value that was found in the text.
#[derive(Debug, Clone, Copy)]
struct Begun {
    needle: usize,
    /// How many of its units were read.
    units: usize,
    /// After the end of a line into which it is wrapped: how many blanks the next one is indented by so far.
    indent: Option<usize>,
    /// Where it begins in the text.
    start: usize,
}

impl Begun {
    fn with_unit(self) -> Self {
        Self { units: self.units + 1, indent: None, ..self }
    }

    /// With the end of a line, or with a blank after it.
    fn with_wrap(self) -> Self {
        Self { indent: Some(self.indent.map_or(0, |indent| indent + 1)), ..self }
    }
}

/// Scans one stream.
///
/// All values are followed at once, byte by byte, so that every place where one is found is known, also one that begins
/// within another. Of several beginnings that have come equally far at the same place only the first is followed: whatever
/// becomes of it covers the others. So a byte costs no more than all values have units, and a look at the next few bytes
/// where nothing is begun and nothing can begin.
#[derive(Debug)]
pub(super) struct ValueScan {
    values: Arc<Values>,
    /// Text that may still turn out to be a value, or to be shown. All places below are counted from its first byte.
    held: Vec<u8>,
    /// The next byte to look at.
    at: usize,
    /// The beginnings that go on at `at`, at the byte after it, and so on: a unit may be written with several bytes.
    ahead: VecDeque<Vec<Begun>>,
    /// Empty lists, to be used again in `ahead`.
    spare: Vec<Vec<Begun>>,
    /// Where values were found, in order; those that overlap are one.
    found: Vec<Range<usize>>,
    /// Before this place everything is shown, or a mark stands for it.
    told: usize,
}

impl ValueScan {
    pub fn new(values: Arc<Values>) -> Self {
        Self { values, held: Vec::new(), at: 0, ahead: VecDeque::new(), spare: Vec::new(), found: Vec::new(), told: 0 }
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
        while self.at < self.held.len() && self.step(ended) {}
        if ended {
            self.ahead.clear();
        }
        self.tell(out);
    }

    /// Goes on by a byte at least. False where it takes more text to tell.
    fn step(&mut self, ended: bool) -> bool {
        let Self { values, held, at, ahead, spare, found, .. } = self;
        if ahead.iter().all(Vec::is_empty) {
            *at = (*at..held.len()).find(|from| values.may_begin(&held[*from..])).unwrap_or(held.len());
        }
        let text = &held[*at..];
        let Some(first) = text.first() else { return true };
        let mut here = ahead.pop_front().or_else(|| spare.pop()).unwrap_or_default();
        if values.may_begin(text) {
            let needles = &values.by_first[usize::from(*first)];
            here.extend(needles.iter().map(|needle| Begun { needle: *needle, units: 0, indent: None, start: *at }));
        }
        // Most often in order already, else a few rows that are. The first of equals stays.
        here.sort_by_key(|begun| (Reverse(begun.units), begun.needle, begun.indent, begun.start));
        here.dedup_by_key(|begun| (begun.units, begun.needle, begun.indent));
        let may_lack_text = !ended && text.len() < values.spelling_bytes_max;
        if may_lack_text && here.iter().any(|begun| values.is_undecided(begun, text)) {
            here.retain(|begun| begun.units > 0);
            ahead.push_front(here);
            return false;
        }
        for begun in here.drain(..) {
            for spelling in values.next_unit(&begun).iter().filter(|spelling| text.starts_with(spelling)) {
                let further = begun.with_unit();
                if values.is_found(&further) {
                    note(found, begun.start..*at + spelling.len());
                }
                if !values.is_whole(&further) {
                    follow(ahead, spare, spelling.len(), further);
                }
            }
            for wrap in values.wraps(&begun).iter().filter(|wrap| text.starts_with(wrap)) {
                follow(ahead, spare, wrap.len(), begun.with_wrap());
            }
        }
        spare.push(here);
        *at += 1;
        true
    }

    /// Writes what nothing that is to come can change.
    fn tell(&mut self, out: &mut Vec<u8>) {
        let undecided = self.ahead.iter().flatten().map(|begun| begun.start).min();
        let settled = undecided.map_or(self.at, |start| start.min(self.at));
        let due = self.found.partition_point(|found| found.start < settled);
        for found in self.found.drain(..due) {
            // One that begins within the last one has its mark already.
            if self.told <= found.start {
                out.extend(&self.held[self.told..found.start]);
                out.extend(MARK.as_bytes());
            }
            self.told = self.told.max(found.end);
        }
        if self.told < settled {
            out.extend(&self.held[self.told..settled]);
            self.told = settled;
        }
        let rest = self.held.split_off(settled);
        self.held.zeroize();
        self.held = rest;
        self.at -= settled;
        self.told -= settled;
        for begun in self.ahead.iter_mut().flatten() {
            begun.start -= settled;
        }
        for found in &mut self.found {
            *found = found.start - settled..found.end - settled;
        }
    }
}

/// Notes that a beginning goes on so many bytes from here.
fn follow(ahead: &mut VecDeque<Vec<Begun>>, spare: &mut Vec<Vec<Begun>>, bytes: usize, further: Begun) {
    if ahead.len() < bytes {
        ahead.resize_with(bytes, || spare.pop().unwrap_or_default());
    }
    ahead[bytes - 1].push(further);
}

/// Adds a place to those that are known, which are in order and apart. What overlaps becomes one.
fn note(known: &mut Vec<Range<usize>>, mut found: Range<usize>) {
    let from = known.partition_point(|earlier| earlier.end <= found.start);
    let to = known.partition_point(|earlier| earlier.start < found.end);
    for earlier in &known[from..to] {
        found = found.start.min(earlier.start)..found.end.max(earlier.end);
    }
    // At the end: none begins after the byte that was looked at, so that a text full of values costs no more than its length.
    known.splice(from..to, [found]);
}

impl Drop for ValueScan {
    fn drop(&mut self) {
        self.held.zeroize();
    }
}
