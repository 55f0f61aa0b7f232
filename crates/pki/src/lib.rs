//! Certificates of Interlock's own.
//!
//! An [`Authority`] is a private certificate authority in two files. It signs certificates of servers, and those of
//! workers: a worker makes a [`WorkerKey`] and a signing request, which the server checks as a [`SigningRequest`], and the
//! certificate that it gets says in a [`WorkerIdentity`] who it is and what it may do. [`CertificateFacts`] reads what is in a
//! certificate. Nothing here reads a clock, a file or a socket.

mod authority;
mod error;
mod facts;
mod identity;
mod request;

pub use authority::{Authority, IssuedServer, NewAuthority, SERVER_LIFETIME, WORKER_LIFETIME};
pub use error::PkiError;
pub use facts::CertificateFacts;
pub use identity::WorkerIdentity;
pub use request::{REQUEST_BYTES_MAX, SigningRequest, WorkerKey};
