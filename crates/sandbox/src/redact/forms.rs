//! The forms in which a secret may be printed. A [`Needle`] is a row of [`Unit`]s; each unit lists the ways of writing it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::{DefaultIsZeroes, Zeroize, Zeroizing};

/// Shorter encoded forms would be found in ordinary text.
const ENCODED_BYTES_MIN: usize = 6;
/// A line of a longer secret counts as a secret from this length on. Shorter ones are words such as `user` or `}`, which would be
/// found all over ordinary output; they are covered where the whole secret is printed.
const LINE_BYTES_MIN: usize = 8;
/// Every line that is looked for is long enough for its encoded forms.
const _: () = assert!(ENCODED_BYTES_MIN <= LINE_BYTES_MIN);
/// By how much lines may be indented where a secret is printed, as in YAML: the lines of the secret itself, by spaces, and
/// those into which an encoded form is wrapped, by spaces or tabs.
pub(super) const INDENT_MAX: usize = 16;
/// How a line may end where an encoded form is wrapped: as it is, as in JSON, and as in URLs. None begins with another.
pub(super) const WRAPS: &[&[u8]] = &[b"\n", b"\r\n", b"\\n", b"\\r\\n", b"%0A", b"%0a", b"%0D%0A", b"%0d%0a"];
/// What a line of a wrapped form may be indented by.
pub(super) const BLANKS: &[&[u8]] = &[b" ", b"\t"];

/// One way of writing a unit.
pub(super) type Spelling = Vec<u8>;

/// What a form is made of, in the order of the value.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unit {
    /// The end of a line inside a value.
    #[default]
    LineEnd,
    Char(char),
    /// One that is not UTF-8.
    Byte(u8),
    /// A character of the standard alphabet, or the padding.
    Base64(u8),
    /// A digit in lower case.
    Hex(u8),
}

impl DefaultIsZeroes for Unit {}

impl Unit {
    /// The ways of writing it, each there once.
    pub fn spellings(self) -> Vec<Spelling> {
        let mut spellings = match self {
            Self::LineEnd => line_end(),
            Self::Char(c) => character(c),
            Self::Byte(byte) => {
                let mut spellings = vec![vec![byte]];
                percent(&[byte], &mut spellings);
                spellings
            }
            Self::Base64(c) => base64_character(c),
            Self::Hex(digit) => vec![vec![digit], vec![digit.to_ascii_uppercase()]],
        };
        spellings.sort_unstable();
        spellings.dedup();
        spellings
    }
}

pub(super) struct Needle {
    pub units: Vec<Unit>,
    /// With so many of its units the value is found. Those after them belong to it where they follow, as padding does.
    pub units_min: usize,
    /// Whether it is found wrapped into lines as well, wherever these end.
    pub is_wrapped: bool,
}

impl Drop for Needle {
    fn drop(&mut self) {
        self.units.zeroize();
    }
}

pub(super) fn needles(secret: &[u8]) -> Vec<Needle> {
    let trimmed = secret.trim_ascii();
    let mut needles = Vec::new();
    if trimmed.is_empty() {
        return needles;
    }
    needles.push(escaped(trimmed));
    if trimmed.len() >= ENCODED_BYTES_MIN {
        needles.push(hex(trimmed));
        // With the line end that a file has, and which is encoded with the value where the file is.
        let with_end = secret.trim_ascii_start();
        needles.extend(base64_at_every_offset(with_end));
        if with_end.len() > trimmed.len() {
            needles.push(base64_needle(trimmed, 0));
        }
        if secret.len() > with_end.len() {
            needles.push(base64_needle(secret, 0));
        }
    }
    let mut lines: Vec<&[u8]> = trimmed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    lines.retain(|line| line.len() >= LINE_BYTES_MIN && line.len() < trimmed.len());
    lines.sort_unstable();
    lines.dedup();
    for line in lines {
        needles.push(escaped(line));
        needles.push(hex(line));
        needles.extend(base64_at_every_offset(line));
    }
    needles
}

/// As it is, percent-encoded as in URLs, or escaped as in JSON; each character in a way of its own.
fn escaped(value: &[u8]) -> Needle {
    // As large as it gets: what it would outgrow could not be wiped.
    let mut units = Vec::with_capacity(value.len());
    for part in value.utf8_chunks() {
        let mut characters = part.valid().chars().peekable();
        while let Some(c) = characters.next() {
            let is_line_end = c == '\n' || c == '\r' && characters.next_if_eq(&'\n').is_some();
            units.push(if is_line_end { Unit::LineEnd } else { Unit::Char(c) });
        }
        units.extend(part.invalid().iter().copied().map(Unit::Byte));
    }
    Needle { units_min: units.len(), units, is_wrapped: false }
}

fn character(c: char) -> Vec<Spelling> {
    let mut utf8 = [0; 4];
    let raw = c.encode_utf8(&mut utf8).as_bytes();
    let mut spellings = vec![raw.to_vec()];
    percent(raw, &mut spellings);
    json(c, &mut spellings);
    spellings
}

/// The end of a line inside a value: as it is, as other systems write it, or with the next line indented. Otherwise the whole
/// value would not be found where a program prints it so, and its short lines would be left.
fn line_end() -> Vec<Spelling> {
    let mut spellings = vec![b"\n".to_vec()];
    percent(b"\n", &mut spellings);
    json('\n', &mut spellings);
    for other in ["\r\n", "%0D%0A", "%0d%0a", "\\r\\n", "\\u000D\\u000A", "\\u000d\\u000a", "\n\t"] {
        spellings.push(other.into());
    }
    spellings.extend((1..=INDENT_MAX).map(|width| format!("\n{:width$}", "").into_bytes()));
    spellings
}

fn percent(raw: &[u8], spellings: &mut Vec<Spelling>) {
    spellings.push(raw.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect());
    spellings.push(raw.iter().flat_map(|byte| format!("%{byte:02x}").into_bytes()).collect());
    if raw == b" " {
        spellings.push(b"+".to_vec());
    }
}

fn json(c: char, spellings: &mut Vec<Spelling>) {
    let short = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '/' => "\\/",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        _ => "",
    };
    if !short.is_empty() {
        spellings.push(short.as_bytes().to_vec());
    }
    let mut pair = [0; 2];
    let codes = c.encode_utf16(&mut pair);
    spellings.push(codes.iter().flat_map(|code| format!("\\u{code:04x}").into_bytes()).collect());
    spellings.push(codes.iter().flat_map(|code| format!("\\u{code:04X}").into_bytes()).collect());
}

/// Inside a longer text the value stands at one of three places against groups of three bytes.
fn base64_at_every_offset(value: &[u8]) -> impl Iterator<Item = Needle> {
    (0..3).map(move |offset| base64_needle(value, offset))
}

/// A value that begins `offset` bytes into a group of three, from the first character that depends on it alone. It is
/// found with the last one that does. What may follow is how a text ends that ends with the value: the value's own blanks,
/// its last bits, padding.
fn base64_needle(value: &[u8], offset: usize) -> Needle {
    let mut text: Zeroizing<Vec<u8>> = Zeroizing::new(Vec::with_capacity(offset + value.len()));
    text.resize(offset, 0);
    text.extend(value);
    let encoded = Zeroizing::new(STANDARD.encode(text.as_slice()));
    let first = (offset * 8).div_ceil(6);
    let whole = (offset + value.trim_ascii_end().len()) * 8 / 6;
    let mut units = Vec::with_capacity(encoded.len());
    units.extend(encoded.bytes().skip(first).map(Unit::Base64));
    Needle { units, units_min: whole - first, is_wrapped: true }
}

/// In both alphabets, and percent-encoded or escaped where a URL or JSON needs it.
fn base64_character(c: u8) -> Vec<Spelling> {
    let mut spellings = vec![vec![c]];
    match c {
        b'+' => spellings.push(b"-".to_vec()),
        b'/' => spellings.push(b"_".to_vec()),
        b'=' => {}
        _ => return spellings,
    }
    percent(&[c], &mut spellings);
    json(char::from(c), &mut spellings);
    spellings
}

fn hex(value: &[u8]) -> Needle {
    let digit = |half: u8| Unit::Hex(b"0123456789abcdef"[usize::from(half)]);
    let mut units = Vec::with_capacity(2 * value.len());
    units.extend(value.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
    Needle { units_min: units.len(), units, is_wrapped: true }
}
