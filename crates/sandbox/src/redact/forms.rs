//! The forms in which a secret may be printed. A [`Needle`] is a row of units; each unit lists the ways of writing it.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use zeroize::{Zeroize, Zeroizing};

/// Shorter encoded forms would be found in ordinary text.
const ENCODED_BYTES_MIN: usize = 6;
/// A line of a longer secret counts as a secret from this length on. Shorter ones are words such as `user` or `}`, which would be
/// found all over ordinary output; they are covered where the whole secret is printed.
const LINE_BYTES_MIN: usize = 8;
/// By how many spaces the lines of a secret may be indented where it is printed, as in YAML.
const INDENT_MAX: usize = 8;

/// One way of writing a unit.
pub(super) type Spelling = Vec<u8>;

pub(super) struct Needle {
    pub units: Vec<Vec<Spelling>>,
}

impl Drop for Needle {
    fn drop(&mut self) {
        self.units.iter_mut().flatten().for_each(Zeroize::zeroize);
    }
}

pub(super) fn needles(secret: &[u8]) -> Vec<Needle> {
    let trimmed = secret.trim_ascii();
    let mut needles = Vec::new();
    if trimmed.is_empty() {
        return needles;
    }
    needles.push(escaped(trimmed));
    for line in trimmed.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
        if line.len() >= LINE_BYTES_MIN && line.len() < trimmed.len() {
            needles.push(escaped(line));
        }
    }
    if trimmed.len() >= ENCODED_BYTES_MIN {
        needles.push(hex(trimmed));
        for value in [secret, trimmed] {
            needles.push(base64_needle(&Zeroizing::new(STANDARD.encode(value))));
            // Inside a longer text the value stands at one of three places against groups of three bytes.
            needles.extend((0..3).map(|shift| base64_needle(&shifted_base64(value, shift))));
            if secret.len() == trimmed.len() {
                break;
            }
        }
    }
    needles
}

/// As it is, percent-encoded as in URLs, or escaped as in JSON; each character in a way of its own.
fn escaped(value: &[u8]) -> Needle {
    let mut units = Vec::new();
    for part in value.utf8_chunks() {
        let mut characters = part.valid().chars().peekable();
        while let Some(c) = characters.next() {
            if c == '\n' || c == '\r' && characters.next_if_eq(&'\n').is_some() {
                units.push(line_end());
                continue;
            }
            let mut spelled = [0; 4];
            let raw = c.encode_utf8(&mut spelled).as_bytes();
            let mut spellings = vec![raw.to_vec()];
            percent(raw, &mut spellings);
            json(c, &mut spellings);
            units.push(spellings);
        }
        for byte in part.invalid() {
            let mut spellings = vec![vec![*byte]];
            percent(&[*byte], &mut spellings);
            units.push(spellings);
        }
    }
    Needle { units }
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

/// The characters that depend on the value alone, when it begins `shift` bytes into a group.
fn shifted_base64(value: &[u8], shift: usize) -> Zeroizing<String> {
    let mut padded = vec![0; shift];
    padded.extend(value);
    let mut encoded = STANDARD_NO_PAD.encode(&padded);
    padded.zeroize();
    let first = (shift * 8).div_ceil(6);
    let whole = (shift + value.len()) * 8 / 6;
    let kept = Zeroizing::new(encoded[first..whole].to_owned());
    encoded.zeroize();
    kept
}

/// Both alphabets, wrapped into lines or not, and percent-encoded where a URL needs it.
fn base64_needle(encoded: &str) -> Needle {
    let unit = |(at, c): (usize, u8)| {
        let mut ways: Vec<Spelling> = match c {
            b'+' => vec![b"+".to_vec(), b"-".to_vec(), b"%2B".to_vec(), b"%2b".to_vec()],
            b'/' => vec![b"/".to_vec(), b"_".to_vec(), b"%2F".to_vec(), b"%2f".to_vec(), b"\\/".to_vec()],
            b'=' => vec![b"=".to_vec(), b"%3D".to_vec(), b"%3d".to_vec()],
            plain => vec![vec![plain]],
        };
        if at > 0 {
            for line_end in [&b"\n"[..], b"\r\n", b"\\n"] {
                let wrapped: Vec<Spelling> = ways.iter().map(|way| [line_end, way].concat()).collect();
                ways.extend(wrapped.into_iter().take(1));
            }
        }
        ways
    };
    Needle { units: encoded.bytes().enumerate().map(unit).collect() }
}

fn hex(value: &[u8]) -> Needle {
    let digits = value.iter().flat_map(|byte| format!("{byte:02x}").into_bytes());
    let units = digits.map(|digit| {
        let upper = digit.to_ascii_uppercase();
        if upper == digit { vec![vec![digit]] } else { vec![vec![digit], vec![upper]] }
    });
    Needle { units: units.collect() }
}
