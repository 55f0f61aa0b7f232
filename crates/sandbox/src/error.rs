//! Why a command was not run. In every case it has not been started.

use crate::Profile;
use crate::control::Control;
use crate::request::InvalidRequest;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// This host lacks a control that the profile requires. Another worker may have it; this one runs nothing weaker.
    #[error("{profile} is refused on this host: the control `{control}` is not proven ({evidence})")]
    Refused { profile: Profile, control: Control, evidence: String },
    #[error(transparent)]
    Invalid(#[from] InvalidRequest),
    /// The command could not be executed in its sandbox.
    #[error("the command was not started: {0}")]
    NotStarted(String),
    /// There was no attestation: this host does not confine commands now.
    #[error("the command's confinement was not attested: {0}")]
    NotAttested(String),
    /// Memory that is not written to disk is short. That is no fault of the confinement.
    #[error("its secrets cannot be kept in locked memory: {0}")]
    SecretsNotLocked(String),
    /// Something of the host's is missing or closed to the worker.
    #[error("the sandbox cannot be set up: {0}")]
    Setup(String),
}
