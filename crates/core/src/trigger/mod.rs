//! Names of what starts runs from outside, and of what tells the outside about them.

pub mod cloudevent;
pub mod schedule;
pub mod webhook;

use std::fmt;
use std::str::FromStr;

use crate::state::{UnknownName, names};

names!(
    /// Who sends a webhook, and so how it is signed.
    Source, "source of webhooks", {
        GitHub = "github",
        Slack = "slack",
        ServiceNow = "servicenow",
        /// Any sender that can sign a body.
        Generic = "generic",
        /// Standard Webhooks.
        Standard = "standard",
    }
);

names!(
    /// Where a schedule comes from.
    Origin, "origin of a schedule", {
        Api = "api",
        /// It stands in the workflow's file and follows it.
        Workflow = "workflow",
    }
);

names!(
    /// Whether an outbound endpoint gets messages.
    EndpointState, "state of an endpoint", {
        Enabled = "enabled",
        Disabled = "disabled",
    }
);
