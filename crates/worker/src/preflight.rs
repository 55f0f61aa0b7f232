//! Before a run is this worker's: whether it could run all of its commands. Nothing of the run is done here.

use std::sync::Arc;

use interlock_core::state::PreflightCheck;
use interlock_core::work::offer::{OfferAnswer, OfferVerdict, RunOffer};
use interlock_credentials::{Credentials, StepScope};
use interlock_protocol::transport::{Transport, TransportError};
use interlock_sandbox::{Profile, WorkDir};
use tokio::time::{Instant, timeout_at};
use tracing::{info, warn};

use crate::attempt::Slots;
use crate::executors::command::Commands;
use crate::run_secrets::RunSecrets;
use crate::workdirs::RunFolder;

/// The check that failed, and why.
struct FailedCheck {
    check: PreflightCheck,
    why: String,
    /// It is this worker's or its host's fault: another worker need not fail alike.
    own_fault: bool,
}

impl FailedCheck {
    /// By what the run asks for, or by what this worker is told to do.
    fn refused(check: PreflightCheck, why: impl Into<String>) -> Self {
        Self { check, why: why.into(), own_fault: false }
    }

    fn own(check: PreflightCheck, why: impl Into<String>) -> Self {
        Self { check, why: why.into(), own_fault: true }
    }
}

impl<T: Transport> Slots<T> {
    /// Looks at an offered run, and takes it or says why not.
    pub async fn preflight(&self, offer: RunOffer) {
        let (begun, time) = (Instant::now(), offer.ack_within_ms.as_duration());
        let until = begun + time;
        let (at, epoch, number) = (offer.at, offer.epoch, offer.number);
        // What is left is for the answer.
        let answer = match self.check(&offer, begun + time * 4 / 5).await {
            Ok(()) => OfferVerdict::Acked,
            Err(FailedCheck { check, why, own_fault }) => {
                info!(run = %at.run, workflow = offer.workflow, %check, why, own_fault, "a run is refused");
                self.session.workdirs.let_go(at);
                OfferVerdict::Refused { check, why, own_fault }
            }
        };
        let is_taken = answer == OfferVerdict::Acked;
        match self
            .session
            .answer_offer(OfferAnswer { tenant: at.tenant, run: at.run, epoch, number, answer }, until)
            .await
        {
            Ok(()) if is_taken => info!(run = %at.run, workflow = offer.workflow, "a run is this worker's"),
            Ok(()) => {}
            Err(TransportError::Refused { code, .. }) => {
                info!(run = %at.run, code, "the offer of a run is over");
                self.session.workdirs.let_go(at);
            }
            // It may have arrived. Whether the run is this worker's is told with a heartbeat.
            Err(TransportError::Unavailable(error)) => {
                warn!(run = %at.run, error, "the answer to an offer may be lost");
            }
        }
    }

    /// The checks that ask others are over by `until`, each under its own name.
    async fn check(&self, offer: &RunOffer, until: Instant) -> Result<(), FailedCheck> {
        let sandbox = |why: String| FailedCheck::refused(PreflightCheck::Sandbox, why);
        let commands = self.commands.as_ref().ok_or_else(|| sandbox("no commands are run here".to_owned()))?;
        let profile = commands
            .profile(&offer.profile)
            .ok_or_else(|| sandbox(format!("no commands of `{}` are run here", offer.profile)))?;
        permitted(commands, profile, offer)?;
        confined(commands, profile, until).await?;
        let credentials = &commands.options().credentials;
        let (tenant, environment) = (offer.at.tenant, Some(offer.environment.as_str()));
        let scope = RunSecrets { tenant, environment, enrolled: self.enrolled }.scope(credentials);
        in_reach(credentials, &scope, &offer.credentials, until).await?;
        let workdir = |why: String| FailedCheck::refused(PreflightCheck::Workdir, why);
        if profile.spec().work != WorkDir::Bound {
            return Err(workdir(format!("the sandbox of `{profile}` has no place for a directory")));
        }
        if !self.session.workdirs.has_room() {
            return Err(workdir("this worker keeps as many directories as it may".to_owned()));
        }
        if self.session.draining.is_cancelled() {
            return Err(sandbox("this worker is about to leave".to_owned()));
        }
        let folder = commands.sandbox().work_folder();
        let folder = folder.map_err(|error| FailedCheck::own(PreflightCheck::Workdir, error.to_string()))?;
        self.session.workdirs.keep(offer.at, RunFolder::new(folder));
        Ok(())
    }
}

/// Whether a step could have each of them. Nothing is leased for a run that is not this worker's yet.
async fn in_reach(
    credentials: &Credentials,
    scope: &StepScope,
    names: &[String],
    until: Instant,
) -> Result<(), FailedCheck> {
    for name in names {
        let Ok(checked) = timeout_at(until, credentials.check(scope, name)).await else {
            let why = format!("whether `{name}` can be had was not answered in time");
            return Err(FailedCheck::own(PreflightCheck::Credentials, why));
        };
        if let Err(error) = checked {
            let (why, own_fault) = (error.to_string(), error.cause.is_out_of_reach());
            return Err(FailedCheck { check: PreflightCheck::Credentials, why, own_fault });
        }
    }
    Ok(())
}

/// Whether the sandbox can be set up, tried out in time for the answer.
async fn confined(commands: &Arc<Commands>, profile: Profile, until: Instant) -> Result<(), FailedCheck> {
    let tried = timeout_at(until, commands.confines(profile)).await;
    let tried = tried.unwrap_or_else(|_| Err("its controls could not be tried out in time".to_owned()));
    tried.map_err(|why| FailedCheck::own(PreflightCheck::Sandbox, why))
}

/// Whether this worker's own lists let every command through that is known.
fn permitted(commands: &Commands, profile: Profile, offer: &RunOffer) -> Result<(), FailedCheck> {
    for command in &offer.commands {
        let variables = command.variables.iter().map(|name| (name.clone(), String::new())).collect();
        let judged = commands.options().rules.permit(profile, command.argv.clone());
        if let Err(why) = judged.and_then(|permitted| permitted.with_variables(variables)) {
            return Err(FailedCheck::refused(PreflightCheck::Commands, format!("step `{}`: {why}", command.step)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::future::{BoxFuture, pending, ready};
    use interlock_core::ids::TenantId;
    use interlock_core::plan::WORKDIR_PROFILES;
    use interlock_core::time::Timestamp;
    use interlock_credentials::{
        Cause, Clock, CredentialsOptions, Description, Entry, EntryKind, Fetched, Lease, Location, SecretProvider,
    };
    use uuid::Uuid;

    use super::*;

    /// Takes a call and does not answer it.
    struct Silent;

    impl SecretProvider for Silent {
        fn locate(&self, _: TenantId, name: &str) -> Result<Location, Cause> {
            let entry = Entry { path: name.to_owned(), kind: EntryKind::Plain };
            Ok(Location { entry, field: "value".to_owned() })
        }

        fn fetch<'a>(&'a self, _: &'a Entry) -> BoxFuture<'a, Result<Fetched, Cause>> {
            Box::pin(pending())
        }

        fn renew<'a>(&'a self, _: &'a str, _: Duration) -> BoxFuture<'a, Result<Lease, Cause>> {
            Box::pin(pending())
        }

        fn revoke<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), Cause>> {
            Box::pin(pending())
        }

        fn describe(&self) -> BoxFuture<'_, Description> {
            let (name, at, detail) = ("slow".to_owned(), "nowhere".to_owned(), String::new());
            Box::pin(ready(Description { name, kind: "test", at, reachable: true, detail }))
        }
    }

    /// The server waits for the answer for so long: it says which check it was, and who is asked next.
    #[tokio::test(start_paused = true)]
    async fn a_provider_that_does_not_answer_fails_its_check_in_time_for_the_answer() {
        let provider: Arc<dyn SecretProvider> = Arc::new(Silent);
        let credentials = Credentials::new(CredentialsOptions {
            providers: [("slow".to_owned(), provider)].into(),
            environments: [("default".to_owned(), "slow".to_owned())].into(),
            environment: "default".to_owned(),
            journal: None,
            clock: Clock::new(|| Timestamp(0)),
        });
        let scope = StepScope { tenant: TenantId(Uuid::from_u128(7)), environment: None };
        let (begun, names) = (Instant::now(), ["A".to_owned(), "B".to_owned()]);
        let failed = in_reach(&credentials, &scope, &names, begun + Duration::from_secs(4)).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!((failed.check, failed.own_fault), (PreflightCheck::Credentials, true));
        assert!(failed.why.contains("`A`"), "{}", failed.why);
    }

    #[test]
    fn a_directory_is_for_the_profiles_whose_sandbox_binds_one() {
        for profile in Profile::ALL {
            let binds = profile.spec().work == WorkDir::Bound;
            assert_eq!(WORKDIR_PROFILES.contains(&profile.name()), binds, "{profile}");
        }
    }
}
