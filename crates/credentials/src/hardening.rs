//! A process that holds secrets leaves no copy of its memory behind.

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// From here on this process writes no core dump, and other processes of the same user can neither trace it nor read its
/// memory. Programs that it starts are not affected by the former, only by the limit on cores.
pub fn harden_process() -> Result<(), Errno> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
}

#[cfg(test)]
mod tests {
    use rustix::process::{dumpable_behavior, getrlimit};

    use super::*;

    #[test]
    fn a_hardened_process_is_not_dumpable() {
        harden_process().unwrap();
        assert!(matches!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable));
        let core = getrlimit(Resource::Core);
        assert_eq!((core.current, core.maximum), (Some(0), Some(0)));
    }
}
