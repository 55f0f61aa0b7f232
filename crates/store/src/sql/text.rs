//! Statements put together while the binary is compiled: a list of columns is said once, and that costs nothing.

/// The longest statement that is put together.
const BYTES_MAX: usize = 4096;

/// A text that grows while the compiler runs.
pub struct Text {
    bytes: [u8; BYTES_MAX],
    length: usize,
}

impl Text {
    pub const fn of(part: &str) -> Self {
        Self { bytes: [0; BYTES_MAX], length: 0 }.then(part)
    }

    /// A text that does not fit does not compile.
    pub const fn then(mut self, part: &str) -> Self {
        let part = part.as_bytes();
        let mut at = 0;
        while at < part.len() {
            self.bytes[self.length] = part[at];
            self.length += 1;
            at += 1;
        }
        self
    }

    pub const fn number(self, number: usize) -> Self {
        const DIGITS: &str = "0123456789";
        let text = if number >= 10 { self.number(number / 10) } else { self };
        let (_, from) = DIGITS.split_at(number % 10);
        let (digit, _) = from.split_at(1);
        text.then(digit)
    }

    pub const fn as_str(&self) -> &str {
        let (used, _) = self.bytes.split_at(self.length);
        match std::str::from_utf8(used) {
            Ok(text) => text,
            Err(_) => panic!("a statement is not text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn texts_and_numbers_follow_one_another() {
        const TEXT: &str = { const { &Text::of("SET a = $").number(9).then(", b = $").number(120) } }.as_str();
        assert_eq!(TEXT, "SET a = $9, b = $120");
    }
}
