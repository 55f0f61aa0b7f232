//! Canaries: each control is met by the act that it forbids. What was not seen to be refused is not there.
//!
//! An act runs in a sandbox that has the control and little else, so that no other control can be what stopped it. Where a
//! sandbox without the control can be made, the act must succeed in that one, or it proves nothing.

mod bait;

use std::io;
use std::time::Duration;

use crate::cgroup::{Controller, Group};
use crate::control::{Control, Proof, Proofs};
use crate::launch::Launch;
use crate::launch::view::{Additions, View};
use crate::limits;
use crate::redact::Values;
use crate::running::{self, Outcome, PreparedCommand, Stream};
use crate::sandbox::Host;
use crate::shim::acts::{Act, DONE, REFUSED};
use crate::shim::{self, Action, Attestation};
use crate::spec::Namespace::{self, Cgroup, Ipc, Net, Pid, User, Uts};
use crate::spec::{BARE, LandlockMode, Limits, Spec, Syscalls};
use bait::Bait;

/// What a watchdog's canary lives without renewals.
const WATCHDOG: Duration = Duration::from_millis(300);
/// A sandbox of a canary has fewer processes. In a container the worker may have a number that one of them has, too.
const PROCESSES_INSIDE_MAX: u32 = 32;
const MIB: u64 = 1 << 20;

/// What came of an act.
#[derive(Debug, Clone)]
enum ActOutcome {
    Refused(String),
    Done,
    /// The sandbox itself could not be made, or ended in another way.
    Failed(String),
}

/// An act with its result, and what was seen around it.
struct Trial {
    tried: ActOutcome,
    attestation: Option<Attestation>,
    limits_met: Vec<&'static str>,
    outcome: Option<Outcome>,
}

pub(crate) async fn prove(host: &Host) -> Proofs {
    let bait = match Bait::lay(&host.state) {
        Ok(bait) => bait,
        Err(error) => {
            let absent = Proof::absent(format!("the canaries cannot be prepared: {error}"));
            return Control::ALL.iter().map(|control| (*control, absent.clone())).collect();
        }
    };
    let prover = Prover { host };
    // These two take time, not work.
    let cpu = prover.limited(Controller::Cpu, Act::Compute { millis: 6 });
    let (mut proofs, cpu, watchdog) = tokio::join!(prove_at_once(&prover, &bait), cpu, prover.watchdog());
    proofs.extend([(Control::CgroupCpu, cpu), (Control::Watchdog, watchdog)]);
    proofs.into_iter().collect()
}

async fn prove_at_once(prover: &Prover<'_>, bait: &Bait) -> Vec<(Control, Proof)> {
    let (nothing, nested) = tokio::join!(prover.bare(Act::Nothing), prover.bare(Act::NewUserNamespace));
    let (pid, files) = tokio::join!(
        prover.bare(Act::ReadFile { path: format!("/proc/{}/comm", std::process::id()).into() }),
        prover.bare(Act::ReadFile { path: bait.file.clone() }),
    );
    let (own_net, own_ipc, own_uts) = (with(&[User, Pid, Net]), with(&[User, Pid, Ipc]), with(&[User, Pid, Uts]));
    let (net, ipc, uts) = tokio::join!(
        prover.against(Act::Connect { to: bait.listener }, &own_net),
        prover.against(Act::SharedMemory { key: bait.memory_key }, &own_ipc),
        prover.against(Act::HostName { is: bait.host_name.clone() }, &own_uts),
    );
    let cgroup = prover.run(Act::Nothing, &with(&[User, Pid, Cgroup]), None, limits::WATCHDOG).await;
    let filtered = Spec { syscalls: Syscalls::Denied, ..BARE };
    let landlocked = Spec { landlock: LandlockMode::Hard, ..BARE };
    let scoped = Spec { landlock: LandlockMode::HardWithScopes, ..BARE };
    let (seccomp, landlock, scopes) = tokio::join!(
        prover.against(Act::CompareProcess, &filtered),
        prover.against(Act::ReadShim, &landlocked),
        prover.against(Act::AbstractSocket { name: bait.abstract_name.clone() }, &scoped),
    );
    let (pids, memory) = tokio::join!(
        prover.limited(Controller::Pids, Act::Threads { count: 48 }),
        prover.limited(Controller::Memory, Act::Memory { bytes: 96 << 20 }),
    );
    let resources = prover.resources().await;
    let pid = if std::process::id() > PROCESSES_INSIDE_MAX {
        judge(&pid.tried, "the worker's process is not seen")
    } else {
        own_namespace(&nothing, "pid")
    };
    let mut proofs = vec![
        (Control::UserNamespace, own_namespace(&nothing, "user")),
        (Control::PidNamespace, pid),
        (Control::NetworkNamespace, net),
        (Control::IpcNamespace, ipc),
        (Control::UtsNamespace, uts),
        (Control::CgroupNamespace, own_namespace(&cgroup, "cgroup")),
        (Control::FileView, judge(&files.tried, "a file of the worker's is not seen")),
        (Control::NestedNamespacesOff, judge(&nested.tried, "no user namespace can be made")),
        (Control::Seccomp, seccomp),
        (Control::Landlock, landlock),
        (Control::LandlockScopes, scopes),
        (Control::CgroupPids, pids),
        (Control::CgroupMemory, memory),
        (Control::ResourceLimits, resources),
    ];
    for (control, is_on, evidence) in [
        (
            Control::NoNewPrivileges,
            nothing.attestation.as_ref().is_some_and(|seen| seen.no_new_privileges),
            "the kernel says that no privileges can be gained",
        ),
        (
            Control::NoCapabilities,
            nothing.attestation.as_ref().is_some_and(|seen| seen.capabilities.trim_start_matches('0').is_empty()),
            "the bounding set is empty",
        ),
    ] {
        let proof = if is_on { Proof::proven(evidence) } else { Proof::absent(failure(&nothing.tried)) };
        proofs.push((control, proof));
    }
    proofs
}

const fn with(namespaces: &'static [Namespace]) -> Spec {
    Spec { namespaces, ..BARE }
}

fn failure(tried: &ActOutcome) -> String {
    match tried {
        ActOutcome::Refused(why) => format!("refused: {why}"),
        ActOutcome::Done => "the act was not refused".to_owned(),
        ActOutcome::Failed(why) => why.clone(),
    }
}

fn judge(tried: &ActOutcome, evidence: &str) -> Proof {
    match tried {
        ActOutcome::Refused(why) => Proof::proven(format!("{evidence}: {why}")),
        ActOutcome::Done | ActOutcome::Failed(_) => Proof::absent(failure(tried)),
    }
}

/// The sandbox's namespace is another than the worker's.
fn own_namespace(trial: &Trial, kind: &str) -> Proof {
    let Some(attestation) = &trial.attestation else { return Proof::absent(failure(&trial.tried)) };
    let (inside, outside) = (attestation.namespaces.get(kind).copied(), shim::namespace(kind).ok());
    match (inside, outside) {
        (Some(inside), Some(outside)) if inside != outside => {
            Proof::proven(format!("{inside} inside, {outside} outside"))
        }
        _ => Proof::absent(format!("the {kind} namespace is the worker's own")),
    }
}

struct Prover<'a> {
    host: &'a Host,
}

impl Prover<'_> {
    async fn bare(&self, act: Act) -> Trial {
        self.run(act, &BARE, None, limits::WATCHDOG).await
    }

    /// Refused with the control, done without it.
    async fn against(&self, act: Act, controlled: &Spec) -> Proof {
        let (with, without) = tokio::join!(
            self.run(act.clone(), controlled, None, limits::WATCHDOG),
            self.run(act.clone(), &BARE, None, limits::WATCHDOG)
        );
        compare(&with.tried, &without.tried)
    }

    async fn limited(&self, controller: Controller, act: Act) -> Proof {
        if !self.host.cgroups.has(controller) {
            return Proof::absent(self.host.cgroups.why_not(controller));
        }
        let wide = Limits { pids: 4096, memory_bytes: 1 << 30, cpu_percent: 400, ..BARE.limits };
        let tight = match controller {
            Controller::Pids => Limits { pids: 24, ..wide },
            Controller::Memory => Limits { memory_bytes: 48 * MIB, ..wide },
            // So little that a process meets it on a machine that is busy with other things, too.
            Controller::Cpu => Limits { cpu_percent: 2, ..wide },
        };
        let group = match self.host.cgroups.create(&tight) {
            Ok(group) => group,
            Err(error) => return Proof::absent(format!("no cgroup can be made: {error}")),
        };
        // The limit on processes by identity is out of the way.
        let spec = Spec { limits: Limits { pids: 4096, ..BARE.limits }, ..BARE };
        if controller == Controller::Cpu {
            // How fast a process gets on depends on who else computes; that the kernel holds it back does not.
            let with = self.run(act, &spec, Some(group), limits::WATCHDOG).await;
            return if with.limits_met.contains(&"cpu") {
                Proof::proven("the kernel held a busy process back")
            } else {
                Proof::absent(format!("a busy process was not held back: {}", failure(&with.tried)))
            };
        }
        let (with, without) = tokio::join!(
            self.run(act.clone(), &spec, Some(group), limits::WATCHDOG),
            self.run(act.clone(), &spec, None, limits::WATCHDOG)
        );
        compare(&with.tried, &without.tried)
    }

    async fn resources(&self) -> Proof {
        let limits = Limits { tmp_bytes: 8 * MIB, ..BARE.limits };
        let act = Act::LongFile { bytes: 2 << 20 };
        let tight = Spec { limits, ..BARE };
        let wide = Spec { limits: Limits { file_bytes: 4 * MIB, ..limits }, ..BARE };
        let (with, without) = tokio::join!(
            self.run(act.clone(), &tight, None, limits::WATCHDOG),
            self.run(act.clone(), &wide, None, limits::WATCHDOG)
        );
        compare(&with.tried, &without.tried)
    }

    async fn watchdog(&self) -> Proof {
        let trial = self.run(Act::Wait, &BARE, None, WATCHDOG).await;
        match trial.outcome {
            Some(Outcome::NotRenewed) => Proof::proven("a command without renewals was ended"),
            _ => Proof::absent(failure(&trial.tried)),
        }
    }

    async fn run(&self, act: Act, spec: &Spec, group: Option<Group>, watchdog: Duration) -> Trial {
        match self.try_run(act, spec, group, watchdog).await {
            Ok(trial) => trial,
            Err(why) => {
                Trial { tried: ActOutcome::Failed(why), attestation: None, limits_met: Vec::new(), outcome: None }
            }
        }
    }

    async fn try_run(&self, act: Act, spec: &Spec, group: Option<Group>, watchdog: Duration) -> Result<Trial, String> {
        let doors = group.as_ref().map(Group::doors).transpose().map_err(|error: io::Error| error.to_string())?;
        let renewed = act != Act::Wait;
        let launch = Launch {
            profile: "canary",
            spec,
            view: View::of(spec, &Additions::default()),
            action: Action::Try(act),
            secrets: &[],
            broker: false,
            watchdog,
            wall: spec.limits.wall,
            doors: doors.unwrap_or_default(),
            cgroups: group.as_ref().map(|group| group.joined(spec.has(Cgroup))).unwrap_or_default(),
        };
        let prepared = PreparedCommand {
            values: Values::new(&[]).map_err(|error| error.to_string())?,
            group,
            broker: None,
            renewed,
            terminate_grace: Duration::ZERO,
            end_by: None,
        };
        let started = running::start(launch, &self.host.programs, prepared).await;
        let mut running = started.map_err(|error| error.to_string())?;
        let mut said = String::new();
        while let Some(chunk) = running.next().await {
            if chunk.stream == Stream::Stdout {
                said.push_str(&chunk.text());
            }
        }
        let ended = running.end().await;
        let tried = match ended.outcome {
            Outcome::Exited { code: REFUSED } => ActOutcome::Refused(said.trim().to_owned()),
            Outcome::Exited { code: DONE } => ActOutcome::Done,
            Outcome::Signaled { signal } => ActOutcome::Refused(format!("killed by signal {signal}")),
            // The kernel may choose the shim when it kills for want of memory.
            Outcome::Killed if ended.limits_met.contains(&"memory") => ActOutcome::Refused("killed".to_owned()),
            outcome => ActOutcome::Failed(format!("{outcome:?}")),
        };
        Ok(Trial {
            tried,
            attestation: Some(ended.attestation),
            limits_met: ended.limits_met,
            outcome: Some(ended.outcome),
        })
    }
}

fn compare(with: &ActOutcome, without: &ActOutcome) -> Proof {
    match (with, without) {
        (ActOutcome::Refused(why), ActOutcome::Done) => {
            Proof::proven(format!("refused with it ({why}), done without it"))
        }
        (ActOutcome::Refused(_), without) => {
            Proof::absent(format!("the act proves nothing: without the control it was {}", failure(without)))
        }
        (with, _) => Proof::absent(failure(with)),
    }
}
