//! One command to run, put together by the caller.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::Profile;
use crate::egress::Target;
use crate::limits;
use crate::rules::PermittedCommand;
use crate::secret::{SecretFile, SecretValue};
use crate::spec::WorkDir;
use interlock_argv::changes_code;

/// What every command is given.
const OWN_VARIABLES: [(&str, &str); 3] =
    [("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"), ("HOME", "/tmp"), ("LANG", "C.UTF-8")];

/// What runs, and with what. Built step by step; checked as a whole when it is run.
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) command: PermittedCommand,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) work: Option<PathBuf>,
    pub(crate) read_only: Vec<PathBuf>,
    pub(crate) secrets: Vec<SecretFile>,
    pub(crate) redacted: Vec<SecretValue>,
    pub(crate) egress: Vec<Target>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) end_by: Option<Instant>,
    pub(crate) watchdog: Duration,
    pub(crate) terminate_grace: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the command cannot be run as asked: {0}")]
pub struct InvalidRequest(String);

impl Request {
    /// The command has the variables that its rules let the workflow set.
    pub fn new(command: PermittedCommand) -> Self {
        let own = OWN_VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let env = own.chain(command.variables().clone()).collect();
        Self {
            command,
            env,
            work: None,
            read_only: Vec::new(),
            secrets: Vec::new(),
            redacted: Vec::new(),
            egress: Vec::new(),
            timeout: None,
            end_by: None,
            watchdog: limits::WATCHDOG,
            terminate_grace: Duration::ZERO,
        }
    }

    /// A variable that the caller itself sets. Those of a workflow are judged: [`PermittedCommand::with_variables`]. Nothing of
    /// the worker's own environment reaches the command.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The folder that the command finds as `/work`, where its profile binds one.
    pub fn work(mut self, folder: impl Into<PathBuf>) -> Self {
        self.work = Some(folder.into());
        self
    }

    /// A path of the host that the command may read and execute, at the same place. Only the tests' program stands where no
    /// profile shows it.
    #[cfg(any(test, feature = "probe"))]
    pub fn read_only(mut self, path: impl Into<PathBuf>) -> Self {
        self.read_only.push(path.into());
        self
    }

    /// The command finds the value in `/run/secrets/<name>`. It is also redacted from the output.
    pub fn secret_file(mut self, name: impl Into<String>, value: SecretValue) -> Self {
        self.secrets.push(SecretFile { name: name.into(), value });
        self
    }

    /// A value that the command does not get, but that must not be in its output either.
    pub fn redact(mut self, value: SecretValue) -> Self {
        self.redacted.push(value);
        self
    }

    /// A target that the command may reach through the broker's socket, `/run/egress.sock`.
    pub fn egress(mut self, target: Target) -> Self {
        self.egress.push(target);
        self
    }

    /// At most the profile's limit, which also holds where this is not called.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Its time is up then at the latest, however long it took to start the command.
    pub fn end_by(mut self, at: Instant) -> Self {
        self.end_by = Some(at);
        self
    }

    /// How long the caller's own lease is. A command whose caller stands still is ended before others take its work over: after
    /// three quarters of the lease, since the last quarter may have passed before the caller stood still, and after 15 s at most.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.watchdog = limits::WATCHDOG.min(lease * 3 / 4);
        self
    }

    /// How long the command lives without a renewal, where a test has to tell the watchdog from what else ends a command.
    #[cfg(feature = "probe")]
    pub fn watchdog(mut self, watchdog: Duration) -> Self {
        self.watchdog = watchdog;
        self
    }

    /// On cancel and timeout: SIGTERM first, and the kill after this.
    pub fn terminate_grace(mut self, grace: Duration) -> Self {
        self.terminate_grace = grace;
        self
    }

    pub fn profile(&self) -> Profile {
        self.command.profile()
    }

    pub(crate) fn wall(&self) -> Duration {
        self.timeout.unwrap_or(self.profile().spec().limits.wall)
    }

    /// All values to be kept out of the output.
    pub(crate) fn secret_values(&self) -> impl Iterator<Item = &SecretValue> {
        self.secrets.iter().map(|secret| &secret.value).chain(&self.redacted)
    }

    pub(crate) fn check(&self) -> Result<(), InvalidRequest> {
        self.check_env()?;
        self.check_paths()?;
        self.check_secrets()?;
        let profile = self.profile();
        let most = profile.spec().limits.wall;
        if self.wall() > most || self.wall().is_zero() {
            return invalid(format!("its timeout is not within {} s, which is what {profile} gives", most.as_secs()));
        }
        if self.terminate_grace > limits::TERMINATE_GRACE_MAX {
            return invalid(format!("its grace is longer than {:?}", limits::TERMINATE_GRACE_MAX));
        }
        if self.egress.len() > limits::EGRESS_TARGETS_MAX {
            return invalid(format!("it has more than {} targets", limits::EGRESS_TARGETS_MAX));
        }
        Ok(())
    }

    fn check_env(&self) -> Result<(), InvalidRequest> {
        let bytes: usize = self.env.iter().map(|(name, value)| name.len() + value.len()).sum();
        if self.env.len() > limits::ENVIRONMENT_MAX || bytes > limits::ENVIRONMENT_BYTES_MAX {
            return invalid("its environment is too large".to_owned());
        }
        for (name, value) in &self.env {
            let fine = !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0');
            if !fine {
                return invalid(format!("`{}` cannot be a variable", name.escape_debug()));
            }
            if changes_code(name) && !OWN_VARIABLES.contains(&(name.as_str(), value.as_str())) {
                return invalid(format!("the variable {name} would change which code runs"));
            }
        }
        Ok(())
    }

    fn check_paths(&self) -> Result<(), InvalidRequest> {
        let profile = self.profile();
        if let Some(work) = &self.work {
            if profile.spec().work != WorkDir::Bound {
                return invalid(format!("{profile} binds no work folder of the caller's"));
            }
            check_path(work)?;
        }
        if self.read_only.len() > limits::READ_ONLY_PATHS_MAX {
            return invalid(format!("it has more than {} read-only paths", limits::READ_ONLY_PATHS_MAX));
        }
        self.read_only.iter().try_for_each(|path| check_path(path))
    }

    fn check_secrets(&self) -> Result<(), InvalidRequest> {
        if self.secrets.len() > limits::SECRETS_MAX || self.redacted.len() > limits::SECRETS_MAX {
            return invalid(format!("it has more than {} secrets", limits::SECRETS_MAX));
        }
        let mut names: Vec<&str> = Vec::new();
        for SecretFile { name, .. } in &self.secrets {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(plain) {
                return invalid(format!("`{}` is no plain file name for a secret", name.escape_debug()));
            }
            if names.contains(&name.as_str()) {
                return invalid(format!("two secrets are to be in the file `{name}`"));
            }
            names.push(name);
        }
        for value in self.secret_values() {
            let bytes = value.bytes();
            if bytes.len() < limits::SECRET_BYTES_MIN || bytes.len() > limits::SECRET_BYTES_MAX {
                let (least, most) = (limits::SECRET_BYTES_MIN, limits::SECRET_BYTES_MAX);
                return invalid(format!("a secret is not within {least} … {most} bytes"));
            }
            let texts = self.command.argv().iter().chain(self.env.values());
            if texts.into_iter().any(|text| contains(text.as_bytes(), bytes)) {
                return invalid("a secret stands in its arguments or environment: pass it as a file".to_owned());
            }
        }
        Ok(())
    }
}

/// Folders that hold the host's state or its secrets, or are the kernel's own.
const CLOSED: &[&str] = &["/proc", "/sys", "/dev", "/run", "/var/run", "/boot"];
/// Too much at once. A folder below one of these is fine.
const TOO_WIDE: &[&str] = &["/", "/etc", "/root", "/home", "/var", "/var/lib"];

fn check_path(path: &Path) -> Result<(), InvalidRequest> {
    let shown = path.display();
    let canonical = match std::fs::canonicalize(path) {
        Ok(canonical) => canonical,
        Err(error) => return invalid(format!("{shown} cannot be found: {error}")),
    };
    if !path.is_absolute() || canonical != path {
        return invalid(format!("{shown} is not an absolute path without links: write {}", canonical.display()));
    }
    if path.to_str().is_none_or(|text| text.contains('\0')) {
        return invalid(format!("{shown} is not UTF-8"));
    }
    if CLOSED.iter().any(|closed| path.starts_with(closed)) || TOO_WIDE.iter().any(|wide| path == Path::new(wide)) {
        return invalid(format!("{shown} is not shown to commands"));
    }
    Ok(())
}

fn contains(text: &[u8], value: &[u8]) -> bool {
    text.windows(value.len()).any(|window| window == value)
}

fn invalid<T>(what: String) -> Result<T, InvalidRequest> {
    Err(InvalidRequest(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandRules;

    fn request(profile: Profile, argv: &[&str]) -> Request {
        let mut rules = CommandRules::default();
        rules.allow.push("/usr/bin/id {args...}".parse().unwrap());
        Request::new(rules.permit(profile, argv.iter().map(|word| (*word).to_owned()).collect()).unwrap())
    }

    fn plain() -> Request {
        request(Profile::ProdStandard, &["/usr/bin/id"])
    }

    fn refused(request: &Request) -> String {
        request.check().unwrap_err().to_string()
    }

    #[test]
    fn secrets_in_arguments_and_environment_are_refused_without_being_shown() {
        let secret = || SecretValue::new("hunter22").unwrap();
        let in_argv = request(Profile::ProdStandard, &["/usr/bin/id", "--x=hunter22"]).secret_file("a", secret());
        let in_env = plain().env("TOKEN", "hunter22").redact(secret());
        for request in [in_argv, in_env] {
            let said = refused(&request);
            assert!(said.contains("arguments or environment") && !said.contains("hunter"), "{said}");
            assert!(!format!("{:?}", request.secrets).contains("hunter"));
        }
    }

    #[test]
    fn files_of_secrets_have_plain_and_distinct_names() {
        let with = |name: &str| plain().secret_file(name, SecretValue::new("hunter22").unwrap());
        for name in ["../x", "", ".hidden", "a/b", "a\n"] {
            assert!(refused(&with(name)).contains("no plain file name"), "{name:?}");
        }
        let twice = with("token").secret_file("token", SecretValue::new("hunter23").unwrap());
        assert!(refused(&twice).contains("two secrets"));
        assert!(refused(&plain().redact(SecretValue::new("abc").unwrap())).contains("4 …"));
        assert_eq!(with("db.password").check(), Ok(()));
    }

    #[test]
    fn paths_that_would_show_the_host_are_refused() {
        for path in ["/", "/etc", "/proc/1", "/sys", "/run", "/dev/null", "/nowhere", "/usr/../etc", "tmp"] {
            assert!(plain().read_only(path).check().is_err(), "{path}");
        }
        assert_eq!(plain().read_only("/usr/share").check(), Ok(()));
        let work = request(Profile::ProdCritical, &["/usr/bin/id"]).work("/tmp");
        assert!(refused(&work).contains("no work folder"));
    }

    #[test]
    fn a_command_ends_before_the_lease_of_a_caller_that_stands_still() {
        for (lease_ms, watchdog_ms) in [(400, 300), (4_000, 3_000), (20_000, 15_000), (3_600_000, 15_000)] {
            let request = plain().lease(Duration::from_millis(lease_ms));
            assert_eq!(request.watchdog, Duration::from_millis(watchdog_ms));
        }
        assert_eq!(plain().watchdog, limits::WATCHDOG);
    }

    #[test]
    fn variables_of_the_loader_and_times_beyond_the_profile_are_refused() {
        assert!(refused(&plain().env("LD_PRELOAD", "/tmp/x.so")).contains("LD_PRELOAD"));
        let judged = plain().command.with_variables([("HOME".to_owned(), "/srv".to_owned())].into());
        assert!(judged.unwrap_err().to_string().contains("HOME"), "no rule names it");
        assert!(refused(&plain().env("A=B", "")).contains("variable"));
        assert!(refused(&plain().timeout(Duration::from_secs(1_801))).contains("1800 s"));
    }
}
