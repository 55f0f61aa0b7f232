//! The first bytes of everything that is looked for, so that most places of a text cost one look.

use std::io;

use zeroize::Zeroizing;

use crate::sys::LockedBytes;

/// Long enough that ordinary text rarely begins as one of the some hundred forms of a private key does.
const PREFIX_BYTES: usize = 4;
/// A form begins in some twenty ways, most of them with the end of a line in between: less than one bit of ten is set.
const BITS_PER_NEEDLE: usize = 512;
const BITS_MIN: usize = 1 << 10;
const BITS_MAX: usize = 1 << 22;
/// A prefix has one bit for each. Odd, and such that the upper bits of a product depend on all of the prefix.
const MULTIPLIERS: [u32; 2] = [0x9E37_79B1, 0x85EB_CA6B];

/// A set of prefixes, by their hashes: what is not in it begins nothing, what is may begin something. In locked memory,
/// since it tells how each line of a secret begins.
pub(super) struct PrefixFilter {
    bits: LockedBytes,
}

/// A filter that is being filled.
pub(super) struct PrefixBits {
    bits: Zeroizing<Vec<u8>>,
}

impl PrefixBits {
    pub fn for_needles(count: usize) -> Self {
        let bits = (count * BITS_PER_NEEDLE).next_power_of_two().clamp(BITS_MIN, BITS_MAX);
        Self { bits: Zeroizing::new(vec![0; bits / 8]) }
    }

    /// Adds how a form begins. False where `bytes` are too few to tell.
    pub fn add(&mut self, bytes: &[u8]) -> bool {
        let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else { return false };
        for multiplier in MULTIPLIERS {
            let (byte, bit) = place(*prefix, multiplier, self.bits.len());
            self.bits[byte] |= bit;
        }
        true
    }

    /// For a form that is shorter than a prefix: it may begin anywhere.
    pub fn add_all(&mut self) {
        self.bits.fill(u8::MAX);
    }

    pub fn lock(self) -> io::Result<PrefixFilter> {
        Ok(PrefixFilter { bits: LockedBytes::holding(&self.bits)? })
    }
}

impl PrefixFilter {
    /// Whether anything may begin here. Always, where less text is left than it takes to tell.
    pub fn passes(&self, text: &[u8]) -> bool {
        let Some(prefix) = text.first_chunk::<PREFIX_BYTES>() else { return true };
        let bits = self.bits.bytes();
        MULTIPLIERS.iter().all(|multiplier| {
            let (byte, bit) = place(*prefix, *multiplier, bits.len());
            bits[byte] & bit != 0
        })
    }
}

/// Where a prefix has its bit among `len` bytes, a power of two: the byte, and the bit of it.
fn place(prefix: [u8; PREFIX_BYTES], multiplier: u32, len: usize) -> (usize, u8) {
    let bit = u32::from_le_bytes(prefix).wrapping_mul(multiplier) >> (29 - len.ilog2());
    ((bit >> 3) as usize, 1_u8 << (bit & 7))
}
