//! The limit on open files. Most systems start a process with a soft limit of 1,024 files and let it raise that to the
//! hard limit itself.

/// Raises the soft limit to the hard one. Answers how many files this process may have open, where that is known.
#[cfg(unix)]
pub fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit on open files cannot be raised");
            current
        }
    }
}

#[cfg(not(unix))]
pub fn raise() -> Option<u64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = super::raise();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!((limit.current, raised), (limit.maximum, limit.maximum));
    }
}
