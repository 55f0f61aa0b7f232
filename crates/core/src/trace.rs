//! The W3C trace context of a request, kept with the run that it starts and handed to the workers of its steps.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::{TRACEPARENT, TRACESTATE};

/// Which trace something belongs to, and what the tracing systems on the way have added. The latter means nothing
/// without the former.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceContext {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl TraceContext {
    /// As a run keeps it, among its labels.
    pub fn into_labels(self) -> impl Iterator<Item = (String, String)> {
        let state = self.state.filter(|_| self.parent.is_some());
        let parent = self.parent.map(|parent| (TRACEPARENT.to_owned(), parent));
        parent.into_iter().chain(state.map(|state| (TRACESTATE.to_owned(), state)))
    }

    /// As a run has kept it.
    pub fn of_labels(labels: &BTreeMap<String, String>) -> Self {
        Self { parent: labels.get(TRACEPARENT).cloned(), state: labels.get(TRACESTATE).cloned() }
    }
}
