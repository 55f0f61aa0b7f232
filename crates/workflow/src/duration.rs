//! Durations as people write them: `30s`, `10m`, `1h30m`, `7d`, `500ms`.

use std::fmt::Write as _;

use interlock_core::time::Millis;

/// The same as a JSON Schema pattern.
pub const PATTERN: &str = "^([0-9]+(d|h|ms|m|s))+$";

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDuration {
    #[error("`{0}` is not a duration")]
    Syntax(String),
    #[error("`{0}` is too long a duration")]
    TooLong(String),
}

pub fn parse(text: &str) -> Result<Millis, InvalidDuration> {
    let shown = || text.chars().take(40).collect::<String>();
    let syntax = || InvalidDuration::Syntax(shown());
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(syntax());
    }
    let mut total = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(syntax)?;
        let number: u64 = rest[..digits].parse().map_err(|_| syntax())?;
        rest = &rest[digits..];
        let (unit, millis) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit)).ok_or_else(syntax)?;
        rest = &rest[unit.len()..];
        let part = number.checked_mul(*millis).ok_or_else(|| InvalidDuration::TooLong(shown()))?;
        total = total.checked_add(part).ok_or_else(|| InvalidDuration::TooLong(shown()))?;
    }
    Ok(Millis(total))
}

/// The shortest way to write it.
pub fn show(span: Millis) -> String {
    if span.0 == 0 {
        return "0s".to_owned();
    }
    let mut rest = span.0;
    let mut text = String::new();
    for (unit, millis) in UNITS.iter().rev() {
        if rest >= *millis {
            let _ = write!(text, "{}{unit}", rest / millis);
            rest %= millis;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_show() {
        for (text, millis) in [("30s", 30_000), ("10m", 600_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("5ms", 5)]
        {
            assert_eq!(parse(text), Ok(Millis(millis)));
            assert_eq!(show(Millis(millis)), text);
        }
        for text in ["", "10", "m", "1x", "-5s", "1.5h", "5 m"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("99999999999999999d").is_err());
    }
}
