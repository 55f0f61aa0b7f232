//! A credential: sent, and never shown.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text without the white space that files and pastes leave around it.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let sendable = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        sendable.then(|| Self(text.to_owned()))
    }

    /// Whether it stands for a person, and not for a program.
    pub fn is_persons(&self) -> bool {
        self.0.starts_with("ilp_")
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Enough to recognise it by, too little to use it: `il_4f…`.
    pub fn hint(&self) -> String {
        let shown = if self.0.len() >= 16 { 6 } else { 0 };
        format!("{}…", &self.0[..shown])
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new(" il_0123456789abcdef\n").unwrap();
        assert_eq!(secret.bearer(), "Bearer il_0123456789abcdef");
        assert_eq!(format!("{secret:?} {}", secret.hint()), "Secret(…) il_012…");
        assert_eq!(Secret::new("short").unwrap().hint(), "…");
        assert_eq!(Secret::new(" \n"), None);
        assert_eq!(Secret::new("two words"), None);
    }
}
