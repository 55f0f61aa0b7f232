//! What only its owner may read: the data folder, and the files in it that give access.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::Finding;
use crate::server::{LOCAL_KEY_FILE, SECRET_FILE};

const CHECK: &str = "private files";

/// Which folder is looked at, with its whole path.
pub fn folder(data: &Path) -> Finding {
    let whole = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
    if data.exists() {
        return Finding::ok("data folder", whole.display().to_string());
    }
    let found = format!("{} does not exist yet; `interlock up` makes it, `--data` names another", whole.display());
    Finding::skipped("data folder", found)
}

/// What others can read or write is named, each with the command that ends it.
pub fn look(data: &Path) -> Vec<Finding> {
    if !data.exists() {
        return vec![Finding::skipped(CHECK, format!("{} does not exist yet", data.display()))];
    }
    let mut findings: Vec<Finding> = open_to_others(data, "700").into_iter().collect();
    for file in [SECRET_FILE, LOCAL_KEY_FILE] {
        findings.extend(open_to_others(&data.join(file), "600"));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, format!("{} is its owner's alone", data.display())));
    }
    findings
}

fn open_to_others(path: &Path, wanted: &str) -> Option<Finding> {
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let open = mode & 0o077 != 0;
    open.then(|| {
        let found = format!("others can get at {} (its mode is {mode:03o})", path.display());
        Finding::warning(CHECK, found, format!("chmod {wanted} {}", path.display()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_others_can_read_is_named_with_what_ends_it() {
        let data = std::env::temp_dir().join(format!("interlock-doctor-{}", std::process::id()));
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let fixes = || look(&data).into_iter().filter_map(|finding| finding.fix).collect::<Vec<_>>();
        assert!(fixes().is_empty(), "nothing is there yet");
        assert!(folder(&data).found.contains("does not exist yet"), "{}", folder(&data).found);
        fs::create_dir(&data).unwrap();
        assert_eq!(folder(&data).found, data.display().to_string());
        let secret = data.join(SECRET_FILE);
        fs::write(&secret, "x").unwrap();
        mode(&data, 0o755);
        mode(&secret, 0o640);
        assert_eq!(fixes(), [format!("chmod 700 {}", data.display()), format!("chmod 600 {}", secret.display())]);
        mode(&data, 0o700);
        mode(&secret, 0o600);
        assert!(fixes().is_empty());
        fs::remove_dir_all(data).unwrap();
    }
}
