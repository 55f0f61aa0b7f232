//! The controls of the sandbox that a profile requires, by the names that workers register with (`control:seccomp`). The sandbox
//! itself decides what runs; this list says which of them a worker lacks that is not given a profile's commands. A test of the
//! worker holds it against the table of profiles.

/// What every profile requires.
const ALWAYS: &[&str] = &[
    "user_namespace",
    "pid_namespace",
    "ipc_namespace",
    "uts_namespace",
    "file_view",
    "no_new_privileges",
    "no_capabilities",
    "nested_namespaces_off",
    "seccomp",
    "resource_limits",
    "watchdog",
];
/// What the profiles of production and staging require besides.
const CONFINED: &[&str] =
    &["network_namespace", "cgroup_namespace", "landlock", "cgroup_pids", "cgroup_memory", "cgroup_cpu"];
/// What the strictest one requires besides.
const CRITICAL: &[&str] = &["landlock_scopes"];

/// The names of the controls without which nothing runs under the profile; none for a profile that is not known.
pub fn required_controls(profile: &str) -> impl Iterator<Item = &'static str> {
    let lists: &[&[&'static str]] = match profile {
        "prod-critical" => &[ALWAYS, CONFINED, CRITICAL],
        "prod-standard" | "staging-standard" => &[ALWAYS, CONFINED],
        "dev-flex" => &[ALWAYS],
        _ => &[],
    };
    lists.iter().copied().flatten().copied()
}
