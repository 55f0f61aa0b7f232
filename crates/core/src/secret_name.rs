//! What a secret may be called.

/// The longest name of a secret.
pub const SECRET_NAME_BYTES_MAX: usize = 256;

/// Letters, digits and `_`, so that a name is also a file's and a variable's, and leads nowhere else in a path.
pub fn is_secret_name(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.len() <= SECRET_NAME_BYTES_MAX && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_in_a_path() {
        assert!(is_secret_name("SLACK_TOKEN") && is_secret_name("_a1"));
        for name in ["", "1A", "a/b", "..", ".", "a.b", "a b", "ä", &"a".repeat(257)] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
