//! The token that guards a server, kept in a file so that it appears in no argument list and no environment.

use std::path::Path;

use anyhow::Context as _;

pub fn read(path: &Path) -> anyhow::Result<String> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read the token file {}", path.display()))?;
    let token = text.trim();
    anyhow::ensure!(!token.is_empty(), "the token file {} is empty", path.display());
    Ok(token.to_owned())
}
