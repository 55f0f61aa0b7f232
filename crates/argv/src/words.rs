//! What arguments say besides themselves.

/// What a shell would take for words, with those that quotes and backslashes join besides: `reb\oot`.
pub(crate) fn words(argument: &str) -> Vec<String> {
    let is_quote = |c: char| "`'\"\\".contains(c);
    let ends = |c: char| c.is_whitespace() || ";&|()<>".contains(c);
    let joined = argument.split(ends).filter(|word| word.contains(is_quote)).map(|word| word.replace(is_quote, ""));
    let split = argument.split(|c| ends(c) || is_quote(c)).map(str::to_owned);
    split.chain(joined).filter(|word| !word.is_empty()).collect()
}

/// The absolute path that another one leads to: `/` for `//` and for `/bin/..`. None where it goes straight there.
pub(crate) fn without_detours(path: &str) -> Option<String> {
    let steps = path.strip_prefix('/')?;
    let mut parts: Vec<&str> = Vec::new();
    for part in steps.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    let straight = format!("/{}", parts.join("/"));
    (straight != path).then_some(straight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_as_they_stand_and_as_quotes_join_them() {
        assert_eq!(words("cd /x;ls"), ["cd", "/x", "ls"]);
        assert_eq!(words(r#""reb"oot r\m"#), ["reb", "oot", "r", "m", "reboot", "rm"]);
    }

    #[test]
    fn paths_lead_somewhere_without_their_detours() {
        for (path, leads_to) in [
            ("//", "/"),
            ("/.", "/"),
            ("/bin/..", "/"),
            ("/../..", "/"),
            ("/bin/../*", "/*"),
            ("/etc/", "/etc"),
            ("/usr/./lib//x/../y", "/usr/lib/y"),
        ] {
            assert_eq!(without_detours(path).as_deref(), Some(leads_to), "{path}");
        }
        for path in ["/", "/etc", "/*", "etc/..", "", "-rf", "--root=/bin/.."] {
            assert_eq!(without_detours(path), None, "{path}");
        }
    }
}
