//! Allow-lists. The strict one is what programs of an operating system's base need to read, write, compute and start each
//! other; the standard one adds what runtimes of languages, archivers and version control need.

use seccompiler::SeccompCmpOp as Op;

use super::deny::{NEW_NAMESPACE, PERSONALITIES, TERMINAL_INPUT};
use super::{FilterError, Rules, Sockets, rule};

const STRICT: &[libc::c_long] = &[
    // Files and folders.
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_lseek,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_readlinkat,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_ftruncate,
    libc::SYS_truncate,
    libc::SYS_fallocate,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_fadvise64,
    libc::SYS_readahead,
    libc::SYS_copy_file_range,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_tee,
    libc::SYS_flock,
    libc::SYS_umask,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    // Descriptors, pipes, waiting.
    libc::SYS_fcntl,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_eventfd2,
    libc::SYS_signalfd4,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_msync,
    libc::SYS_mincore,
    libc::SYS_mlock,
    libc::SYS_munlock,
    libc::SYS_brk,
    libc::SYS_membarrier,
    libc::SYS_rseq,
    // Processes and threads.
    libc::SYS_clone3,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getpgid,
    libc::SYS_setpgid,
    libc::SYS_getsid,
    libc::SYS_setsid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getresuid,
    libc::SYS_getresgid,
    libc::SYS_getgroups,
    libc::SYS_set_tid_address,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_futex,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_getrlimit,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_getparam,
    libc::SYS_sched_getscheduler,
    libc::SYS_getpriority,
    libc::SYS_getcpu,
    libc::SYS_capget,
    // Signals.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigsuspend,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_sigaltstack,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_restart_syscall,
    // Time, and what the machine is.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getitimer,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_timer_settime,
    libc::SYS_timer_gettime,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_delete,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_getrandom,
];

#[cfg(target_arch = "x86_64")]
const STRICT_HERE: &[libc::c_long] = &[
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_getdents,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_rename,
    libc::SYS_link,
    libc::SYS_symlink,
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
    libc::SYS_dup2,
    libc::SYS_pipe,
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_create,
    libc::SYS_epoll_wait,
    libc::SYS_eventfd,
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_getpgrp,
    libc::SYS_alarm,
    libc::SYS_pause,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const STRICT_HERE: &[libc::c_long] = &[];

const STANDARD: &[libc::c_long] = &[
    libc::SYS_mlock2,
    libc::SYS_mlockall,
    libc::SYS_munlockall,
    libc::SYS_mbind,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy,
    libc::SYS_remap_file_pages,
    libc::SYS_pkey_alloc,
    libc::SYS_pkey_free,
    libc::SYS_pkey_mprotect,
    libc::SYS_vmsplice,
    libc::SYS_sync,
    libc::SYS_syncfs,
    libc::SYS_mknodat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_inotify_init1,
    libc::SYS_inotify_add_watch,
    libc::SYS_inotify_rm_watch,
    libc::SYS_io_setup,
    libc::SYS_io_destroy,
    libc::SYS_io_submit,
    libc::SYS_io_cancel,
    libc::SYS_io_getevents,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setpriority,
    libc::SYS_ioprio_get,
    libc::SYS_ioprio_set,
    libc::SYS_setrlimit,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_getattr,
    libc::SYS_sched_setattr,
    libc::SYS_sched_get_priority_max,
    libc::SYS_sched_get_priority_min,
    libc::SYS_sched_rr_get_interval,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_seccomp,
    libc::SYS_landlock_create_ruleset,
    libc::SYS_landlock_add_rule,
    libc::SYS_landlock_restrict_self,
    // Within the sandbox's own IPC namespace.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semctl,
    libc::SYS_semtimedop,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
];

#[cfg(target_arch = "x86_64")]
const STANDARD_HERE: &[libc::c_long] =
    &[libc::SYS_mknod, libc::SYS_inotify_init, libc::SYS_signalfd, libc::SYS_sendmmsg];
#[cfg(not(target_arch = "x86_64"))]
const STANDARD_HERE: &[libc::c_long] = &[];

/// What a socket is good for, once there is one.
const SOCKET_CALLS: &[libc::c_long] = &[
    libc::SYS_connect,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
];

const SERVER_CALLS: &[libc::c_long] =
    &[libc::SYS_bind, libc::SYS_listen, libc::SYS_accept, libc::SYS_accept4, libc::SYS_recvmmsg, libc::SYS_sendmmsg];

pub(super) fn strict(sockets: Sockets) -> Result<Rules, FilterError> {
    let mut rules: Rules = STRICT.iter().chain(STRICT_HERE).map(|call| (*call, Vec::new())).collect();
    let namespaces = NEW_NAMESPACE.iter().fold(0, |mask, flag| mask | *flag as u64);
    rules.insert(libc::SYS_clone, vec![rule(&[(0, Op::MaskedEq(namespaces), 0)])?]);
    let [typing, console] = TERMINAL_INPUT;
    rules.insert(libc::SYS_ioctl, vec![rule(&[(1, Op::Ne, typing), (1, Op::Ne, console)])?]);
    let [usual, question] = PERSONALITIES;
    rules.insert(libc::SYS_personality, vec![rule(&[(0, Op::Eq, usual)])?, rule(&[(0, Op::Eq, question)])?]);
    if sockets != Sockets::None {
        rules.extend(SOCKET_CALLS.iter().map(|call| (*call, Vec::new())));
        let pairs = vec![rule(&[(0, Op::Eq, libc::AF_UNIX as u64)])?];
        rules.insert(libc::SYS_socket, pairs.clone());
        rules.insert(libc::SYS_socketpair, pairs);
    }
    Ok(rules)
}

/// Files without a path. They can be executed like any other, and no rule about paths keeps them from it.
pub(super) const MEMORY_FILES: &[libc::c_long] = &[libc::SYS_memfd_create];

/// Calls that do not kill under the strict list: all of the standard one, whatever their arguments.
pub(super) fn known(sockets: Sockets) -> Result<Rules, FilterError> {
    let named = standard(sockets, MEMORY_FILES)?
        .into_keys()
        .chain(SOCKET_CALLS.iter().copied())
        .chain(SERVER_CALLS.iter().copied());
    Ok(named.chain([libc::SYS_socket, libc::SYS_socketpair]).map(|call| (call, Vec::new())).collect())
}

pub(super) fn standard(sockets: Sockets, more: &[libc::c_long]) -> Result<Rules, FilterError> {
    let mut rules = strict(sockets)?;
    rules.extend(STANDARD.iter().chain(STANDARD_HERE).chain(more).map(|call| (*call, Vec::new())));
    if sockets == Sockets::Local {
        rules.extend(SERVER_CALLS.iter().map(|call| (*call, Vec::new())));
        let mut families = Vec::new();
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            families.push(rule(&[(0, Op::Eq, family as u64)])?);
        }
        rules.insert(libc::SYS_socket, families);
    }
    Ok(rules)
}
