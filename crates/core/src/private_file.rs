//! Which files may hold a secret: those that belong to the user who reads them, or to root, and that nobody else can get
//! at. What others can read they know, and what they can write may be theirs. One group may read a file of root's: that is
//! how Kubernetes mounts secrets for a pod that has an `fsGroup`, and how an administrator hands one to a service.

const ROOT: u32 = 0;
const GROUP_READ: u32 = 0o040;
const GROUP: u32 = 0o070;
const EVERYONE: u32 = 0o007;
const OTHERS: u32 = GROUP | EVERYONE;

/// Whose a file is, and who may do what with it, in the numbers of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileAccess {
    pub owner: u32,
    pub mode: u32,
}

impl FileAccess {
    /// What is wrong with a secret in this file, for the user who is to read it, with the command that mends it.
    pub fn exposure(self, path: &str, reader: u32) -> Option<String> {
        let mode = self.mode & 0o777;
        if self.owner != reader && self.owner != ROOT {
            if reader == ROOT {
                // Given to root, it could not be read any more by the service that it belongs to.
                return Some(format!(
                    "it belongs to another user ({0}), who knows what is in it (its mode is {mode:03o}); run this command as that user: \
                     sudo -u '#{0}' …",
                    self.owner
                ));
            }
            return Some(format!(
                "it belongs to another user ({}), who knows what is in it (its mode is {mode:03o}); run: chown {reader} {path} && \
                 chmod 600 {path}",
                self.owner
            ));
        }
        let (others, wanted) = match self.owner {
            ROOT if reader == ROOT => (OTHERS & !GROUP_READ, "600"),
            ROOT => (OTHERS & !GROUP_READ, "640"),
            _ => (OTHERS, "600"),
        };
        let hint = if wanted == "640" { " (in a volume of Kubernetes: defaultMode: 0440 and an fsGroup)" } else { "" };
        (mode & others != 0)
            .then(|| format!("others can get at it (its mode is {mode:03o}); run: chmod {wanted} {path}{hint}"))
    }

    /// Whether the file is the reader's own and only its group can get at it besides, as a volume of Kubernetes with an
    /// `fsGroup` opens the files of a pod to the pod's group whenever it is mounted.
    pub const fn is_open_to_its_group_alone(self, reader: u32) -> bool {
        let (group, everyone) = (self.mode & GROUP, self.mode & EVERYONE);
        self.owner == reader && group != 0 && everyone == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVICE: u32 = 65_532;

    fn exposure(owner: u32, mode: u32, reader: u32) -> Option<String> {
        FileAccess { owner, mode: 0o100_000 | mode }.exposure("/run/s", reader)
    }

    #[test]
    fn a_secret_is_its_readers_alone() {
        for mode in [0o600, 0o400, 0o700] {
            assert_eq!(exposure(SERVICE, mode, SERVICE), None, "{mode:o}");
        }
        for mode in [0o644, 0o640, 0o604, 0o620, 0o602, 0o660, 0o601, 0o777] {
            let why = exposure(SERVICE, mode, SERVICE).expect("it is open");
            assert!(why.contains(&format!("its mode is {mode:03o}")) && why.ends_with("chmod 600 /run/s"), "{why}");
        }
    }

    #[test]
    fn roots_file_may_be_handed_to_a_group_to_read() {
        for (mode, reader) in [(0o440, SERVICE), (0o640, SERVICE), (0o400, SERVICE), (0o640, ROOT), (0o600, ROOT)] {
            assert_eq!(exposure(ROOT, mode, reader), None, "{mode:o}");
        }
        for mode in [0o644, 0o444, 0o660, 0o650, 0o602] {
            let why = exposure(ROOT, mode, SERVICE).expect("it is open");
            assert!(why.contains("chmod 640 /run/s") && why.contains("defaultMode: 0440"), "{why}");
            assert!(exposure(ROOT, mode, ROOT).expect("it is open").ends_with("chmod 600 /run/s"));
        }
    }

    #[test]
    fn another_users_file_is_none_to_trust() {
        for (reader, mended_by) in [(SERVICE, "chown 65532 /run/s"), (ROOT, "sudo -u '#1000'")] {
            let why = exposure(1_000, 0o600, reader).expect("its owner knows it");
            assert!(why.contains("(1000)") && why.contains(mended_by), "{why}");
        }
    }

    #[test]
    fn what_a_volume_opens_to_the_pods_group_is_told_from_what_everyone_can_read() {
        let is_so = |owner, mode| FileAccess { owner, mode }.is_open_to_its_group_alone(SERVICE);
        assert!(is_so(SERVICE, 0o100_660) && is_so(SERVICE, 0o640));
        assert!(!is_so(SERVICE, 0o664) && !is_so(SERVICE, 0o600) && !is_so(ROOT, 0o640));
    }
}
