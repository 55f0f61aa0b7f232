//! Filters of system calls. Several are stacked; the strictest answer wins.
//!
//! bubblewrap installs [`base`] around everything in the sandbox, the shim included. The shim adds the profile's
//! allow-list ([`listed`]) to the command, last of all.

mod allow;
mod deny;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::spec::Syscalls;

#[cfg(target_arch = "x86_64")]
const ARCH: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: TargetArch = TargetArch::aarch64;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

#[derive(Debug, Clone, thiserror::Error)]
#[error("a filter of system calls cannot be made: {0}")]
pub struct FilterError(String);

/// What the command's sockets may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    None,
    /// The broker's.
    Unix,
    /// Also those of the sandbox's own, empty network.
    Local,
}

/// The filters that hold for everything in a sandbox, each as bytes for bubblewrap: the deny-list; clone3 answered as
/// unknown, so that the C library falls back to clone, whose flags a filter can read; and no second ABI.
pub(crate) fn base() -> Result<&'static [Vec<u8>], FilterError> {
    static BASE: OnceLock<Result<Vec<Vec<u8>>, FilterError>> = OnceLock::new();
    let made = BASE.get_or_init(|| {
        let denied = compile(deny::rules()?, SeccompAction::Allow, SeccompAction::Errno(libc::EPERM as u32))?;
        let clone3 = Rules::from([(libc::SYS_clone3, Vec::new())]);
        let clone3 = compile(clone3, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS as u32))?;
        Ok(vec![bytes(&denied), bytes(&clone3), bytes(&no_second_abi())])
    });
    made.as_deref().map_err(Clone::clone)
}

/// How many filters are in force once the command starts.
pub(crate) fn expected_filters(syscalls: Syscalls) -> u32 {
    match syscalls {
        Syscalls::Unfiltered => 0,
        Syscalls::Denied => 3,
        Syscalls::Listed { .. } => 4,
        Syscalls::Strict => 5,
    }
}

/// The profile's allow-list, if it has one. The strict list comes as two filters: what the standard list has beyond it is
/// refused, because programs make such calls by habit (a look-up of a user's name asks a cache through a socket) and do
/// well without; what not even the standard list has kills.
pub(crate) fn listed(syscalls: Syscalls, sockets: Sockets) -> Result<Vec<BpfProgram>, FilterError> {
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    match syscalls {
        Syscalls::Denied | Syscalls::Unfiltered => Ok(Vec::new()),
        Syscalls::Listed { memory_files, .. } => {
            let more = if memory_files { allow::MEMORY_FILES } else { &[] };
            Ok(vec![compile(allow::standard(sockets, more)?, refused, SeccompAction::Allow)?])
        }
        Syscalls::Strict => {
            // The wider one first: it leaves the call that adds the second.
            let known = compile(allow::known(sockets)?, SeccompAction::KillProcess, SeccompAction::Allow)?;
            let strict = compile(allow::strict(sockets)?, refused, SeccompAction::Allow)?;
            Ok(vec![known, strict])
        }
    }
}

/// Calls of the x32 ABI carry a bit in their number and would walk past a deny-list. 32-bit calls proper are stopped by
/// the check of the architecture that every compiled filter begins with.
fn no_second_abi() -> BpfProgram {
    const LOAD_NUMBER: sock_filter = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    const X32_BIT: u32 = 0x4000_0000;
    vec![
        LOAD_NUMBER,
        sock_filter { code: 0x35, jt: 0, jf: 1, k: X32_BIT },
        sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_KILL_PROCESS },
        sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

fn compile(rules: Rules, otherwise: SeccompAction, on_match: SeccompAction) -> Result<BpfProgram, FilterError> {
    let filter = SeccompFilter::new(rules, otherwise, on_match, ARCH).map_err(error)?;
    BpfProgram::try_from(filter).map_err(error)
}

/// As the kernel reads it.
fn bytes(program: &[sock_filter]) -> Vec<u8> {
    let instruction = |one: &sock_filter| {
        let [code_0, code_1] = one.code.to_ne_bytes();
        let [k_0, k_1, k_2, k_3] = one.k.to_ne_bytes();
        [code_0, code_1, one.jt, one.jf, k_0, k_1, k_2, k_3]
    };
    program.iter().flat_map(instruction).collect()
}

/// One call under conditions on its arguments, all of which must hold.
fn rule(conditions: &[(u8, Op, u64)]) -> Result<SeccompRule, FilterError> {
    let conditions: Result<Vec<_>, _> = conditions
        .iter()
        .map(|(argument, op, value)| SeccompCondition::new(*argument, Len::Dword, op.clone(), *value))
        .collect();
    SeccompRule::new(conditions.map_err(error)?).map_err(error)
}

fn error(error: impl std::fmt::Display) -> FilterError {
    FilterError(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_compiles_within_the_kernels_limit() {
        const INSTRUCTIONS_MAX: usize = 4096;
        for filter in base().unwrap() {
            assert!(filter.len() / 8 <= INSTRUCTIONS_MAX && !filter.is_empty());
        }
        for syscalls in [Syscalls::Strict, Syscalls::Listed { log: true, memory_files: true }] {
            for sockets in [Sockets::None, Sockets::Unix, Sockets::Local] {
                for program in listed(syscalls, sockets).unwrap() {
                    assert!(program.len() <= INSTRUCTIONS_MAX, "{}", program.len());
                }
            }
        }
        assert!(listed(Syscalls::Denied, Sockets::None).unwrap().is_empty());
    }

    #[test]
    fn no_call_is_on_both_lists_without_a_condition() {
        let denied = deny::rules().unwrap();
        for allowed in
            [allow::strict(Sockets::Unix).unwrap(), allow::standard(Sockets::Local, allow::MEMORY_FILES).unwrap()]
        {
            for (call, rules) in &allowed {
                let denied_whole = denied.get(call).is_some_and(Vec::is_empty);
                assert!(!(denied_whole && rules.is_empty()), "call {call}");
            }
        }
    }

    #[test]
    fn the_strict_list_is_within_the_standard_one() {
        let strict = allow::strict(Sockets::Unix).unwrap();
        let standard = allow::standard(Sockets::Local, allow::MEMORY_FILES).unwrap();
        assert!(strict.keys().all(|call| standard.contains_key(call)));
        assert!(strict.len() < standard.len());
        assert!(!allow::strict(Sockets::None).unwrap().contains_key(&libc::SYS_socket));
    }
}
