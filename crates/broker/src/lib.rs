//! Workers' calls over Redis Streams, as both sides need it.
//!
//! [`message`] is what is written: a [`CallMessage`](message::CallMessage) from a worker, an
//! [`AnswerMessage`](message::AnswerMessage) from a server. Both are sealed by a [`Sealer`] whose key the worker was given by a
//! request of its own, so the broker's operator can neither read nor write one. [`Connection`] has the commands; what
//! it reads at once is bounded. Nothing that comes from a broker is believed because it came: the server and the worker
//! decide that.

mod address;
mod commands;
mod connection;
mod entry;
pub mod message;
mod sealing;

pub use address::{BrokerAddress, InvalidAuthority, InvalidBroker};
pub use commands::{AnswerStream, CallStream, answer_stream, call_stream};
pub use connection::{BrokerError, Connection};
pub use entry::StreamEntry;
pub use sealing::{KEY_BYTES, SealedAs, Sealer, Unopened, fresh_key, fresh_name, key_of_text, text_of_key};

/// Bounds of what goes over a broker.
pub mod limits {
    use std::time::Duration;

    /// The longest sealed call. A longer one goes by a request.
    pub const CALL_BYTES_MAX: usize = 256 << 10;
    /// The longest sealed answer. Where one would be longer, the worker is told to make a request instead.
    pub const ANSWER_BYTES_MAX: usize = 1 << 20;
    /// The longest ticket.
    pub const TICKET_BYTES_MAX: usize = 16 << 10;
    /// Entries that are read at once.
    pub const READ_COUNT_MAX: usize = 32;
    /// What the broker may send for one command: as many entries of the greatest length, and no more.
    pub const REPLY_BYTES_MAX: usize = 2 * READ_COUNT_MAX * ANSWER_BYTES_MAX;
    /// Calls that wait in the stream for a server; beyond that the oldest go.
    pub const CALLS_WAITING_MAX: usize = 10_000;
    /// Answers that wait for one worker; beyond that the oldest go.
    pub const ANSWERS_WAITING_MAX: usize = 1_024;
    /// After so long without an answer to it the stream of a worker goes.
    pub const ANSWERS_KEPT: Duration = Duration::from_mins(2);
    /// How old a call may be when a server reads it. Nothing older is believed, and so it is not kept either.
    pub const CALL_AGE_MAX: Duration = Duration::from_secs(30);
    /// How long a read waits for entries.
    pub const READ_WAIT: Duration = Duration::from_secs(1);
    /// How long a connection may take to come up, and a command to be answered.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
    pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

    const _: () = assert!(COMMAND_TIMEOUT.as_millis() > 2 * READ_WAIT.as_millis());
    const _: () = assert!(CALL_BYTES_MAX + TICKET_BYTES_MAX < ANSWER_BYTES_MAX);
}
