//! Codes that a worker has to recognise. The whole list stands in `docs/reference/errors.md`.

/// The attempt is over: another one has begun, or the run has ended. Drop the result.
pub const STEP_STALE_ATTEMPT: &str = "STEP_STALE_ATTEMPT";
/// The session is not known any more. Register again; what was held is lost.
pub const SESSION_GONE: &str = "SESSION_GONE";
/// The credential is missing, wrong, expired or revoked.
pub const UNAUTHORIZED: &str = "UNAUTHORIZED";
/// The run is being canceled: nothing further starts. End the attempt.
pub const RUN_CANCELING: &str = "RUN_CANCELING";
/// The claim was made before the store was restored from a backup. Drop the result.
pub const STORE_EPOCH_STALE: &str = "STORE_EPOCH_STALE";
