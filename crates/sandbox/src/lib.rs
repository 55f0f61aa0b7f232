//! Runs one command in a sandbox under a named profile, streams its output, and kills it completely.
//!
//! A [`Sandbox`] is opened once by a worker; it proves which controls this host has. A command is judged by
//! [`CommandRules`], put into a [`Request`], and run: the [`Running`] command yields [`Chunk`]s of output and its
//! [`CommandResult`]. The program that uses this crate calls [`shim::main_if_shim`] first thing in `main`, because it
//! is started again inside the sandbox, as the process that confines the command.
//!
#![doc = concat!("```ignore\n", include_str!("../examples/command.rs"), "```")]

mod canary;
mod cgroup;
mod control;
mod egress;
mod error;
mod launch;
pub mod limits;
mod profile;
pub mod redact;
mod removal;
mod request;
mod rules;
mod running;
mod sandbox;
mod seccomp;
mod secret;
pub mod shim;
mod spec;
mod state_folder;
mod sys;
mod variables;
mod work_folder;

pub use control::{Control, Proof, ProofState, Proofs};
pub use egress::{EgressAttempt, InvalidTarget, Target};
pub use error::SandboxError;
pub use launch::Identity;
pub use profile::{Profile, UnknownProfile};
pub use request::{InvalidRequest, Request};
pub use rules::{CommandRule, CommandRules, InvalidTemplate, NotPermitted, PermittedCommand, Template};
pub use running::{Chunk, CommandResult, Outcome, OutputCount, Running, Stream};
pub use sandbox::{Sandbox, SandboxOptions, UNPRIVILEGED};
pub use secret::{SecretNotLocked, SecretValue};
pub use shim::{Attestation, LandlockStatus};
pub use spec::{
    CommandScope, Devices, EgressMode, LandlockMode, Limits, Namespace, Spec, Syscalls, SystemPaths, WorkDir,
};
pub use variables::{InvalidVariable, VariablePattern};
pub use work_folder::WorkFolder;
