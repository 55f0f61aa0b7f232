//! The W3C trace context of a request, kept with the run that it starts and handed to the workers of its steps; and
//! [`RunTrace`], the ids of a run's own spans. They are computed from the run, not stored.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{ApprovalId, RunId};
use crate::json::Hash;
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

/// The id of a trace: 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The id of a span: 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a span of a run tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanOf {
    Created,
    /// From when a step could be claimed until this attempt of it was.
    Assigned {
        step: u32,
        attempt: u32,
    },
    /// One attempt at a step, or at undoing one.
    Executed {
        step: u32,
        attempt: u32,
    },
    /// One credential of an attempt.
    Fetched {
        step: u32,
        attempt: u32,
        number: u32,
    },
    Waited {
        approval: ApprovalId,
    },
}

/// The trace of one run: the one that its request brought, else one with the run's own id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunTrace {
    run: RunId,
    pub trace: TraceId,
    /// The caller's span, if the request brought one.
    pub caller: Option<SpanId>,
    flags: u8,
}

impl RunTrace {
    const SAMPLED: u8 = 1;

    pub fn of(run: RunId, context: &TraceContext) -> Self {
        let own = Self { run, trace: TraceId(*run.as_bytes()), caller: None, flags: Self::SAMPLED };
        let brought = context.parent.as_deref().and_then(read);
        brought.map_or(own, |(trace, caller, flags)| Self { trace, caller: Some(caller), flags, ..own })
    }

    /// Whether spans of it are wanted: as the caller has said, where there is a caller.
    pub const fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }

    pub fn span(&self, of: SpanOf) -> SpanId {
        let mut text = Vec::with_capacity(48);
        text.extend_from_slice(self.run.as_bytes());
        let mut numbers = |kind: u8, numbers: &[u32]| {
            text.push(kind);
            for number in numbers {
                text.extend_from_slice(&number.to_be_bytes());
            }
        };
        match of {
            SpanOf::Created => numbers(0, &[]),
            SpanOf::Assigned { step, attempt } => numbers(1, &[step, attempt]),
            SpanOf::Executed { step, attempt } => numbers(2, &[step, attempt]),
            SpanOf::Fetched { step, attempt, number } => numbers(3, &[step, attempt, number]),
            SpanOf::Waited { approval } => {
                numbers(4, &[]);
                text.extend_from_slice(approval.as_bytes());
            }
        }
        let mut id = [0; 8];
        id.copy_from_slice(&Hash::of(&text).0[..8]);
        // All zeros would mean none.
        id[7] |= u8::from(id == [0; 8]);
        SpanId(id)
    }

    /// A wait for people may last for days: it is a trace of its own, to which the run's spans are linked.
    pub fn trace_of_wait(approval: ApprovalId) -> TraceId {
        TraceId(*approval.as_bytes())
    }

    /// The `traceparent` of what happens within a span.
    pub fn parent(&self, of: SpanOf) -> String {
        format!("00-{}-{}-{:02x}", self.trace, self.span(of), self.flags)
    }
}

/// The trace, the span and the flags of a valid `traceparent`.
fn read(text: &str) -> Option<(TraceId, SpanId, u8)> {
    let mut parts = text.split('-').skip(1);
    let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
    Some((TraceId(bytes(trace)?), SpanId(bytes(span)?), bytes::<1>(flags)?[0]))
}

fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let read = |(at, byte): (usize, &mut u8)| {
        let pair = hex.get(2 * at..2 * at + 2)?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
        Some(())
    };
    (hex.len() == 2 * N).then_some(())?;
    bytes.iter_mut().enumerate().map(read).collect::<Option<()>>()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId::from_bytes([7; 16]);

    #[test]
    fn a_run_without_a_caller_is_found_by_its_own_id() {
        let trace = RunTrace::of(RUN, &TraceContext::default());
        assert_eq!(trace.trace.to_string(), "07070707070707070707070707070707");
        assert_eq!((trace.caller, trace.is_sampled()), (None, true));
        let of = SpanOf::Executed { step: 0, attempt: 1 };
        assert_eq!(trace.parent(of), format!("00-{}-{}-01", trace.trace, trace.span(of)));
        assert_eq!(RunTrace::of(RUN, &TraceContext::default()).span(of), trace.span(of), "computed, not drawn");
        let others = [
            SpanOf::Created,
            SpanOf::Assigned { step: 0, attempt: 1 },
            SpanOf::Executed { step: 1, attempt: 1 },
            SpanOf::Executed { step: 0, attempt: 2 },
        ];
        assert!(others.into_iter().all(|other| trace.span(other) != trace.span(of)));
    }

    #[test]
    fn a_run_goes_on_in_its_callers_trace_and_heeds_its_wish() {
        let parent = |flags: &str| format!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}");
        let of = |flags: &str| RunTrace::of(RUN, &TraceContext { parent: Some(parent(flags)), state: None });
        let trace = of("01");
        assert_eq!(trace.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(trace.caller.unwrap().to_string(), "00f067aa0ba902b7");
        assert!(trace.is_sampled());
        assert!(!of("00").is_sampled());
        assert!(of("00").parent(SpanOf::Created).ends_with("-00"));
    }
}
