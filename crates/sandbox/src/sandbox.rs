//! The worker's sandbox: what it starts commands with, and what this host was proven to have.

use std::path::PathBuf;
use std::sync::Arc;

use interlock_outbound::Outbound;

use crate::Profile;
use crate::canary;
use crate::cgroup::Cgroups;
use crate::control::Proofs;
use crate::egress::Broker;
use crate::error::SandboxError;
use crate::launch::view::{Additions, View};
use crate::launch::{Identity, Launch, Programs};
use crate::redact::Values;
use crate::request::Request;
use crate::running::{self, PreparedCommand, Running, StartError};
use crate::shim::Action;
use crate::spec::Namespace;
use crate::state_folder::StateFolder;
use crate::work_folder::WorkFolder;

/// Where a root worker's commands run, unless it says otherwise: an identity that no distribution gives out and that owns
/// nothing.
pub const UNPRIVILEGED: Identity = Identity { uid: 65_533, gid: 65_533 };

/// Everything has a default.
#[derive(Clone, Default)]
pub struct SandboxOptions {
    /// The program `bwrap`; looked for in `/usr/bin` and `/usr/local/bin`.
    pub bwrap: Option<PathBuf>,
    /// The program that is the shim; this one.
    pub shim: Option<PathBuf>,
    /// Where a folder for sockets is made; the folder for temporary files.
    pub state: Option<PathBuf>,
    /// Who commands are on the host, where the worker is root; [`UNPRIVILEGED`].
    pub run_as: Option<Identity>,
    /// A path below the mount of each cgroup hierarchy that the worker may write; found by trying.
    pub cgroup: Option<String>,
    /// The client whose rules decide on addresses that commands may reach. Without one there is no egress.
    pub outbound: Option<Outbound>,
}

/// What runs commands. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox {
    host: Arc<Host>,
    proofs: Arc<Proofs>,
}

/// What this host offers, proven or not.
pub(crate) struct Host {
    pub programs: Programs,
    pub cgroups: Cgroups,
    pub state: StateFolder,
    outbound: Option<Outbound>,
}

impl Sandbox {
    /// Prepares the host and runs the canaries, which takes about a second. A host that lacks controls is no error here:
    /// the profiles that need them are refused.
    pub async fn open(options: SandboxOptions) -> Result<Self, SandboxError> {
        let host = Arc::new(Host::prepare(options)?);
        let proofs = Arc::new(Box::pin(canary::prove(&host)).await);
        Ok(Self { host, proofs })
    }

    /// Runs the canaries again. What was proven when the sandbox was opened stays what it offers.
    pub async fn prove_again(&self) -> Proofs {
        Box::pin(canary::prove(&self.host)).await
    }

    /// What the canaries found.
    pub fn proofs(&self) -> &Proofs {
        &self.proofs
    }

    /// Whether commands of the profile can run here; else the first control that is missing.
    pub fn offers(&self, profile: Profile) -> Result<(), SandboxError> {
        match self.proofs.first_missing(profile.spec().required) {
            None => Ok(()),
            Some((control, evidence)) => Err(SandboxError::Refused { profile, control, evidence }),
        }
    }

    /// A folder that commands may share as `/work`, one after the other: empty, and theirs alone.
    pub fn work_folder(&self) -> Result<WorkFolder, SandboxError> {
        let (state, owner) = (&self.host.state, self.host.programs.run_as);
        WorkFolder::create(state.unused(".work"), owner)
            .map_err(|error| SandboxError::Setup(format!("no folder for commands to share: {error}")))
    }

    /// Starts a command. It has been executed, and its confinement attested, when this comes back.
    pub async fn run(&self, request: Request) -> Result<Running, SandboxError> {
        let profile = request.profile();
        self.offers(profile)?;
        request.check()?;
        let (host, spec) = (&self.host, profile.spec());
        let setup = |error: std::io::Error| SandboxError::Setup(error.to_string());
        let group = host.cgroups.create(&spec.limits).map_err(setup)?;
        let broker = host.broker(&request)?;
        let view = View::of(
            spec,
            &Additions {
                read_only: &request.read_only,
                work: request.work.as_deref(),
                broker: broker.as_ref().map(Broker::socket),
                secret_files: !request.secrets.is_empty(),
            },
        );
        let launch = Launch {
            profile: profile.name(),
            spec,
            action: Action::Execute {
                argv: request.command.argv().to_vec(),
                env: request.env.clone(),
                folder: view.folder.clone(),
                file: request.command.file(),
            },
            view,
            secrets: &request.secrets,
            broker: broker.is_some(),
            watchdog: request.watchdog,
            wall: request.wall(),
            doors: group.doors().map_err(setup)?,
            cgroups: group.joined(spec.has(Namespace::Cgroup)),
        };
        let prepared = PreparedCommand {
            values: Values::new(request.secret_values())
                .map_err(|error| SandboxError::SecretsNotLocked(error.to_string()))?,
            group: Some(group),
            broker,
            renewed: true,
            terminate_grace: request.terminate_grace,
            end_by: request.end_by,
        };
        running::start(launch, &host.programs, prepared).await.map_err(|error| match error {
            StartError::NotAttested(why) => SandboxError::NotAttested(why),
            StartError::NotExecuted(why) => SandboxError::NotStarted(why),
        })
    }
}

impl Host {
    fn prepare(options: SandboxOptions) -> Result<Self, SandboxError> {
        let setup = |what: &str, error: std::io::Error| SandboxError::Setup(format!("{what}: {error}"));
        let parent = options.state.unwrap_or_else(std::env::temp_dir);
        let state = StateFolder::create(&parent)
            .map_err(|error| setup(&format!("no folder in {}", parent.display()), error))?;
        let shim = match options.shim {
            Some(shim) => shim,
            None => std::env::current_exe().map_err(|error| setup("this program's file cannot be found", error))?,
        };
        let is_root = rustix::process::geteuid().is_root();
        let run_as = is_root.then_some(options.run_as.unwrap_or(UNPRIVILEGED));
        if run_as.is_some_and(|identity| identity.uid == 0 || identity.gid == 0) {
            return Err(SandboxError::Setup("commands cannot be run as root: name another identity".to_owned()));
        }
        let shim = match run_as {
            Some(_) => state.readable_program(&shim).map_err(|error| setup("the shim cannot be copied", error))?,
            None => shim,
        };
        let programs = Programs { bwrap: options.bwrap.unwrap_or_else(find_bwrap), shim, run_as };
        let cgroups = Cgroups::find(options.cgroup.as_deref());
        Ok(Self { programs, cgroups, state, outbound: options.outbound })
    }

    fn broker(&self, request: &Request) -> Result<Option<Broker>, SandboxError> {
        if request.egress.is_empty() {
            return Ok(None);
        }
        let Some(outbound) = self.outbound.clone() else {
            return Err(SandboxError::Setup(
                "commands have no egress here: the worker has no outbound client".to_owned(),
            ));
        };
        let socket = self.state.unused(".sock");
        let broker = Broker::open(&socket, self.programs.run_as, request.egress.clone(), outbound);
        broker.map(Some).map_err(|error| SandboxError::Setup(format!("the egress broker: {error}")))
    }
}

fn find_bwrap() -> PathBuf {
    let usual = ["/usr/bin/bwrap", "/usr/local/bin/bwrap"].map(PathBuf::from);
    let [first, _] = &usual;
    usual.iter().find(|path| path.exists()).unwrap_or(first).clone()
}
