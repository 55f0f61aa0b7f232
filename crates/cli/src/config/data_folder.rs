//! Makes the data folder: its owner's alone, and never a part of a git repository around it.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::Context as _;

const IGNORE_FILE: &str = ".gitignore";
const IGNORE_ALL: &str = "*\n";

/// Makes the folder if it is not there. One that is there is left as it is: it may be more than a data folder.
pub fn make(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let cannot = || format!("cannot make the data folder {}", folder.display());
    std::fs::DirBuilder::new().mode(0o700).recursive(true).create(folder).with_context(cannot)?;
    // Secrets and keys come to lie in it.
    let file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(folder.join(IGNORE_FILE));
    file.and_then(|mut file| file.write_all(IGNORE_ALL.as_bytes())).with_context(cannot)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_new_folder_is_private_and_ignored_and_an_old_one_is_left_alone() {
        let root = std::env::temp_dir().join(format!("interlock-data-folder-{}", std::process::id()));
        let made = root.join("deep/data");
        make(&made).unwrap();
        assert_eq!(fs::read_to_string(made.join(IGNORE_FILE)).unwrap(), "*\n");
        assert_eq!(fs::metadata(&made).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(made.join(IGNORE_FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        let there = root.join("there");
        fs::create_dir(&there).unwrap();
        make(&there).unwrap();
        assert!(!there.join(IGNORE_FILE).exists());
        fs::remove_dir_all(&root).unwrap();
    }
}
