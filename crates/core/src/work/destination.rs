//! Where a task's message goes: `webhook:ENDPOINT` to one of the tenant's webhook endpoints, `signal:RUN/TYPE` to a run.

use std::fmt;
use std::str::FromStr;

use crate::ids::{OutboundId, RunId};
use crate::limits;

/// A destination that the engine itself can bring a message to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A webhook endpoint of the tenant, by its id.
    Webhook(OutboundId),
    /// One by its name, until the report is taken: what is stored names the endpoint by its id.
    WebhookNamed(String),
    /// A signal for a run of the tenant, as `POST /runs/{run}/signals` sends one.
    Signal { run: RunId, signal: String },
}

/// The text is no destination of a message. The error says what one can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{shown}` is no destination of a message: {what}; write `webhook:NAME` or `webhook:ENDPOINT_ID` for a webhook endpoint of this tenant, or `signal:RUN_ID/TYPE` for a signal to a run"
)]
pub struct UnknownDestination {
    shown: String,
    what: &'static str,
}

impl UnknownDestination {
    fn new(text: &str, what: &'static str) -> Self {
        Self { shown: crate::text::visible::visible(&text.chars().take(80).collect::<String>()).into_owned(), what }
    }
}

impl FromStr for Destination {
    type Err = UnknownDestination;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = |what| UnknownDestination::new(text, what);
        match text.split_once(':') {
            Some(("webhook", named)) => match named.parse() {
                Ok(id) => Ok(Self::Webhook(id)),
                Err(_) if named.is_empty() || named.len() > limits::NAME_BYTES_MAX => {
                    Err(unknown("the endpoint's name is empty or too long"))
                }
                Err(_) => Ok(Self::WebhookNamed(named.to_owned())),
            },
            Some(("signal", rest)) => {
                let (run, signal) = rest.split_once('/').ok_or_else(|| unknown("it has no type behind the run"))?;
                let run = run.parse().map_err(|_| unknown("it does not name a run by its id"))?;
                if signal.is_empty() || signal.len() > limits::NAME_BYTES_MAX {
                    return Err(unknown("the signal's type is empty or too long"));
                }
                Ok(Self::Signal { run, signal: signal.to_owned() })
            }
            _ => Err(unknown("nothing here takes messages under that name")),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Webhook(endpoint) => write!(f, "webhook:{endpoint}"),
            Self::WebhookNamed(name) => write!(f, "webhook:{name}"),
            Self::Signal { run, signal } => write!(f, "signal:{run}/{signal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_destination_is_read_as_it_is_written() {
        let (endpoint, run) = (OutboundId(Uuid::from_u128(7)), RunId(Uuid::from_u128(8)));
        for destination in [
            Destination::Webhook(endpoint),
            Destination::WebhookNamed("desk".to_owned()),
            Destination::Signal { run, signal: "order/paid:now".to_owned() },
        ] {
            assert_eq!(destination.to_string().parse(), Ok(destination));
        }
    }

    #[test]
    fn what_is_no_destination_is_refused_with_what_is_one() {
        let run = RunId(Uuid::from_u128(8));
        for text in ["", "log", "desk", "webhook:", "signal:", "signal:me/go", "Signal:x/y"] {
            let error = text.parse::<Destination>().unwrap_err().to_string();
            assert!(error.contains("webhook:NAME") && error.contains("signal:RUN_ID/TYPE"), "{error}");
        }
        for text in [format!("signal:{run}"), format!("signal:{run}/")] {
            assert!(text.parse::<Destination>().is_err(), "{text}");
        }
    }
}
