//! Calls that no profile leaves to a command: they reach the kernel's or other processes' insides, or make new namespaces.

use seccompiler::SeccompCmpOp as Op;

use super::{FilterError, Rules, rule};

const DENIED: &[libc::c_long] = &[
    // Mounts and roots.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_nfsservctl,
    // Files by handle, past every path.
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_reboot,
    libc::SYS_vhangup,
    libc::SYS_lookup_dcookie,
    // The machine's clock and name.
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[libc::c_long] = &[];

/// Each flag of clone that makes a namespace.
pub(super) const NEW_NAMESPACE: &[libc::c_int] = &[
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// What would type into the terminal from which the worker was started.
pub(super) const TERMINAL_INPUT: [u64; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// Execution domains that a command may have: the usual one, and the question which it has.
pub(super) const PERSONALITIES: [u64; 2] = [0, 0xffff_ffff];

/// Kinds of sockets whose code in the kernel a command has no business with.
const SOCKET_FAMILIES: &[libc::c_int] = &[libc::AF_ALG, libc::AF_VSOCK, libc::AF_PACKET, libc::AF_KEY, libc::AF_XDP];

pub(super) fn rules() -> Result<Rules, FilterError> {
    let mut rules: Rules = DENIED.iter().chain(DENIED_HERE).map(|call| (*call, Vec::new())).collect();
    let clone = NEW_NAMESPACE
        .iter()
        .map(|flag| rule(&[(0, Op::MaskedEq(*flag as u64), *flag as u64)]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, clone);
    let ioctl = TERMINAL_INPUT.iter().map(|request| rule(&[(1, Op::Eq, *request)])).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_ioctl, ioctl);
    let [usual, question] = PERSONALITIES;
    rules.insert(libc::SYS_personality, vec![rule(&[(0, Op::Ne, usual), (0, Op::Ne, question)])?]);
    let socket = SOCKET_FAMILIES.iter().map(|family| rule(&[(0, Op::Eq, *family as u64)])).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_socket, socket);
    Ok(rules)
}
