//! W3C trace context: who asked may follow its request through us to the workers.

use axum::http::HeaderMap;
use interlock_core::limits::TRACESTATE_BYTES_MAX;
use interlock_core::trace::TraceContext;

/// The request's `traceparent`, if it has a valid one. An invalid one is dropped, as the standard says.
pub fn parent(headers: &HeaderMap) -> Option<String> {
    let text = headers.get("traceparent")?.to_str().ok()?.trim();
    is_valid(text).then(|| text.to_owned())
}

/// The request's trace context: its `traceparent`, and beside a valid one its `tracestate`.
pub fn context(headers: &HeaderMap) -> TraceContext {
    let parent = parent(headers);
    let state = parent.as_ref().and_then(|_| state(headers));
    TraceContext { parent, state }
}

/// All of the request's `tracestate`, whose entries may come in several headers; none where it is no text of the
/// standard's length.
fn state(headers: &HeaderMap) -> Option<String> {
    let given: Option<Vec<&str>> = headers.get_all("tracestate").iter().map(|value| value.to_str().ok()).collect();
    let entries =
        given?.into_iter().flat_map(|value| value.split(',')).map(str::trim).filter(|entry| !entry.is_empty());
    let state = entries.collect::<Vec<_>>().join(",");
    (!state.is_empty() && state.len() <= TRACESTATE_BYTES_MAX).then_some(state)
}

/// `00-<32 hex>-<16 hex>-<2 hex>`, neither id all zeros. A later version may have more behind.
fn is_valid(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut hex = |digits: usize| {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        parts.next().filter(|part| part.len() == digits && part.bytes().all(is_hex))
    };
    let (Some(version), Some(trace), Some(span), Some(_)) = (hex(2), hex(32), hex(16), hex(2)) else { return false };
    let zeros = |id: &str| id.bytes().all(|byte| byte == b'0');
    version != "ff" && !zeros(trace) && !zeros(span) && (version != "00" || parts.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_kept_beside_a_valid_parent() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let of = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.append(*name, value.parse().unwrap());
            }
            context(&headers).state
        };
        let two = [("traceparent", parent), ("tracestate", "a=1, b=2"), ("tracestate", "c=3")];
        assert_eq!(of(&two).as_deref(), Some("a=1,b=2,c=3"));
        assert_eq!(of(&[("tracestate", "a=1")]), None);
        assert_eq!(of(&[("traceparent", "nonsense"), ("tracestate", "a=1")]), None);
        let long = format!("a={}", "x".repeat(TRACESTATE_BYTES_MAX));
        assert_eq!(of(&[("traceparent", parent), ("tracestate", &long)]), None);
    }

    #[test]
    fn only_what_the_standard_allows_is_carried_on() {
        assert!(is_valid("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"));
        assert!(is_valid("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later"));
        for text in [
            "",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        ] {
            assert!(!is_valid(text), "{text}");
        }
    }
}
