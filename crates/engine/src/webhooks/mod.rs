//! Webhooks. [`inbound`] keeps the addresses at which a tenant takes them, [`receive`] judges and stores what comes and
//! [`process`](crate::commands::process) starts its runs. [`outbound`] keeps the addresses that are told of a tenant's
//! events, [`publish`] makes the messages and [`deliver`] brings them there.

pub mod deliver;
pub mod inbound;
pub mod outbound;
pub(crate) mod publish;
pub mod receive;

pub use crate::commands::process::{Outcome, SkippedRun, StartedRun};
pub use crate::missed::MissedTrigger;

use interlock_core::ids::TenantId;
use interlock_core::time::{Millis, Timestamp};
use interlock_store::Secrets;
use uuid::Uuid;

use crate::error::EngineError;
use crate::parts::Webhooks;
use crate::vault::SecretOf;

/// How long a secret that was replaced still counts.
pub const PREVIOUS_SECRET_KEPT: Millis = Millis::from_hours(24);
/// Endpoints of one kind that a tenant may have.
pub const ENDPOINTS_MAX: usize = 200;
pub const SECRET_BYTES_MIN: usize = 16;
pub const SECRET_BYTES_MAX: usize = 512;

impl Webhooks {
    /// 32 random bytes that cannot be guessed. Ids need not be secret; these do.
    fn secret_bytes() -> [u8; 32] {
        let mut bytes = [0; 32];
        aws_lc_rs::rand::fill(&mut bytes).expect("the system has a source of randomness");
        bytes
    }

    fn seal(&self, tenant: TenantId, of: Uuid, secret: &str) -> Result<String, EngineError> {
        let vault = self.0.0.options.vault.as_ref().ok_or(EngineError::SecretsClosed)?;
        Ok(vault.seal(SecretOf { tenant, of }, secret))
    }

    /// The secrets that count now, the current one first.
    fn open_secrets(
        &self,
        tenant: TenantId,
        of: Uuid,
        secrets: &Secrets,
        now: Timestamp,
    ) -> Result<Vec<String>, EngineError> {
        let vault = self.0.0.options.vault.as_ref().ok_or(EngineError::SecretsClosed)?;
        let previous = secrets.previous.as_ref().filter(|(_, until)| *until > now).map(|(sealed, _)| sealed);
        let sealed = std::iter::once(&secrets.current).chain(previous);
        sealed
            .map(|sealed| vault.open(SecretOf { tenant, of }, sealed).map_err(|_| EngineError::SecretsClosed))
            .collect()
    }

    /// A new secret beside the one it replaces.
    fn rotated(&self, tenant: TenantId, of: Uuid, secrets: &Secrets, new: &str) -> Result<Secrets, EngineError> {
        let until = self.0.now() + PREVIOUS_SECRET_KEPT;
        Ok(Secrets { current: self.seal(tenant, of, new)?, previous: Some((secrets.current.clone(), until)) })
    }
}
