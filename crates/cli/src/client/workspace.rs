//! Workspaces as they are named on the command line.

/// The name of a workspace. An empty one, as a variable that is not set leaves it, is neither none nor all of them.
pub fn name(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("it is empty; name a workspace, or leave the flag out".to_owned());
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_has_a_name() {
        assert_eq!(name("red"), Ok("red".to_owned()));
        for empty in ["", " "] {
            assert!(name(empty).unwrap_err().contains("leave the flag out"), "{empty:?}");
        }
    }
}
