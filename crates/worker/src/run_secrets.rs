//! [`RunSecrets`]: which secrets a run is given on this worker. Preflight and the run's steps ask the same.

use interlock_core::ids::TenantId;
use interlock_credentials::{Credentials, NO_ENVIRONMENT, StepScope};

pub(crate) struct RunSecrets<'a> {
    pub tenant: TenantId,
    /// In which the run acts; none where the server does not say it.
    pub environment: Option<&'a str>,
    /// The worker has a certificate.
    pub enrolled: bool,
}

impl RunSecrets<'_> {
    /// A worker with a certificate looks in the run's environment and nowhere else, and so does one whose credentials are of
    /// several environments. Others look in their own. A run of which nothing is said has the secrets of no environment.
    pub fn scope(&self, credentials: &Credentials) -> StepScope {
        let environment = self.environment.unwrap_or(NO_ENVIRONMENT);
        let environment =
            if self.enrolled { Some(environment.to_owned()) } else { credentials.environment_for(environment) };
        StepScope { tenant: self.tenant, environment }
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::time::Timestamp;
    use interlock_credentials::Clock;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_worker_with_a_certificate_looks_in_the_environment_of_the_run() {
        let credentials = Credentials::none(Clock::new(|| Timestamp(0)));
        let tenant = TenantId(Uuid::from_u128(7));
        for (enrolled, environment, expected) in
            [(true, Some("prod"), Some("prod")), (false, Some("prod"), None), (true, None, Some("none"))]
        {
            let scope = RunSecrets { tenant, environment, enrolled }.scope(&credentials);
            assert_eq!((scope.tenant, scope.environment.as_deref()), (tenant, expected));
        }
    }
}
