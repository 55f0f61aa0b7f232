//! Files that hold secrets, read where nobody else can get at them.

use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use interlock_core::private_file::FileAccess;

/// The text of a file that is its reader's alone, or root's with one group that may read it. The error says whose it is
/// and how that is mended. A pipe or a terminal keeps nothing, so it is read as it is.
pub fn read(path: &Path) -> io::Result<String> {
    // One file is opened, looked at and read, whatever happens to its name meanwhile.
    let mut file = File::open(path)?;
    let found = file.metadata()?;
    let access = FileAccess { owner: found.uid(), mode: found.mode() };
    if found.is_file()
        && let Some(why) = access.exposure(&path.display().to_string(), reader())
    {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Takes from its group what this program has written for itself. Where a volume of Kubernetes has an `fsGroup`, that group
/// gets at every file in it whenever it is mounted, and a secret in it would be refused from the second start on. What
/// everyone could read stays as it is, and is refused.
pub fn close_to_group(path: &Path) -> io::Result<()> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let found = file.metadata()?;
    let access = FileAccess { owner: found.uid(), mode: found.mode() };
    if found.is_file() && access.is_open_to_its_group_alone(reader()) {
        file.set_permissions(Permissions::from_mode(found.mode() & 0o700))?;
        tracing::warn!(file = %path.display(), "its group could get at this file; it is its owner's alone now");
    }
    Ok(())
}

fn reader() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_others_can_read_is_refused_and_one_of_its_group_is_closed() {
        let folder = std::env::temp_dir().join(format!("interlock-private-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("some.secret");
        std::fs::write(&path, "hidden").unwrap();
        let set = |mode| std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let mode = || std::fs::metadata(&path).unwrap().mode() & 0o777;
        for open in [0o644, 0o604, 0o666] {
            set(open);
            close_to_group(&path).unwrap();
            assert_eq!(mode(), open, "it is known, and stays to be seen");
            let refused = read(&path).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            let told = refused.to_string();
            assert!(told.contains(&format!("its mode is {open:03o}")) && !told.contains("hidden"), "{told}");
            assert!(told.contains(&format!("chmod 600 {}", path.display())), "{told}");
        }
        set(0o660);
        close_to_group(&path).unwrap();
        assert_eq!((mode(), read(&path).unwrap().as_str()), (0o600, "hidden"));
        // By another name it is the same file.
        let link = folder.join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read(&link).unwrap(), "hidden");
        set(0o644);
        assert!(read(&link).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(close_to_group(&path).is_ok() && read(&path).unwrap_err().kind() == io::ErrorKind::NotFound);
    }
}
