//! Before a run is this worker's: whether it could run all of its commands. Nothing of the run is done here.

use interlock_core::state::PreflightCheck;
use interlock_core::work::offer::{OfferAnswer, OfferVerdict, RunOffer};
use interlock_credentials::StepScope;
use interlock_protocol::transport::{Transport, TransportError};
use interlock_sandbox::{Profile, WorkDir};
use tokio::time::Instant;
use tracing::{info, warn};

use crate::attempt::Slots;
use crate::executors::command::Commands;
use crate::workdirs::RunFolder;

/// The check that failed, and why.
type Failed = (PreflightCheck, String);

impl<T: Transport> Slots<T> {
    /// Looks at an offered run, and takes it or says why not.
    pub async fn preflight(&self, offer: RunOffer) {
        let until = Instant::now() + offer.ack_within_ms.as_duration();
        let (at, epoch, number) = (offer.at, offer.epoch, offer.number);
        let answer = match self.check(&offer).await {
            Ok(()) => OfferVerdict::Acked,
            Err((check, why)) => {
                info!(run = %at.run, workflow = offer.workflow, %check, why, "a run is refused");
                self.session.workdirs.let_go(at);
                OfferVerdict::Refused { check, why }
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

    async fn check(&self, offer: &RunOffer) -> Result<(), Failed> {
        let sandbox = |why: String| (PreflightCheck::Sandbox, why);
        let commands = self.commands.as_ref().ok_or_else(|| sandbox("no commands are run here".to_owned()))?;
        let profile = commands
            .profile(&offer.profile)
            .ok_or_else(|| sandbox(format!("no commands of `{}` are run here", offer.profile)))?;
        permitted(commands, profile, offer)?;
        self.has_credentials(commands, offer).await?;
        let workdir = |why: String| (PreflightCheck::Workdir, why);
        if profile.spec().work != WorkDir::Bound {
            return Err(workdir(format!("the sandbox of `{profile}` has no place for a directory")));
        }
        if !self.session.workdirs.has_room() {
            return Err(workdir("this worker keeps as many directories as it may".to_owned()));
        }
        if self.session.draining.is_cancelled() {
            return Err(sandbox("this worker is about to leave".to_owned()));
        }
        let folder = commands.sandbox().work_folder().map_err(|error| workdir(error.to_string()))?;
        self.session.workdirs.keep(offer.at, RunFolder::new(folder));
        Ok(())
    }

    /// Each is fetched as a step would, and revoked again.
    async fn has_credentials(&self, commands: &Commands, offer: &RunOffer) -> Result<(), Failed> {
        if offer.credentials.is_empty() {
            return Ok(());
        }
        let credentials = &commands.options().credentials;
        let environment = if self.enrolled {
            Some(offer.environment.clone())
        } else {
            credentials.environment_for(&offer.environment)
        };
        let secrets = credentials.step(StepScope { tenant: offer.at.tenant, environment });
        let mut fetched = Ok(());
        for name in &offer.credentials {
            if let Err(error) = secrets.get(name).await {
                fetched = Err((PreflightCheck::Credentials, error.to_string()));
                break;
            }
        }
        secrets.end().await;
        fetched
    }
}

/// Whether this worker's own lists let every command through that is known.
fn permitted(commands: &Commands, profile: Profile, offer: &RunOffer) -> Result<(), Failed> {
    for command in &offer.commands {
        if let Err(why) = commands.options().rules.permit(profile, command.argv.clone()) {
            return Err((PreflightCheck::Commands, format!("step `{}`: {why}", command.step)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use interlock_core::plan::WORKDIR_PROFILES;

    use super::*;

    #[test]
    fn a_directory_is_for_the_profiles_whose_sandbox_binds_one() {
        for profile in Profile::ALL {
            let binds = profile.spec().work == WorkDir::Bound;
            assert_eq!(WORKDIR_PROFILES.contains(&profile.name()), binds, "{profile}");
        }
    }
}
