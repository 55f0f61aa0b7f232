//! Spans in OTLP's JSON form (`ExportTraceServiceRequest`): ids in hexadecimal, 64-bit numbers as texts.

use serde_json::{Value, json};

use super::spans::{Span, SpanLink, SpanStatus, SpanValue};

/// `SPAN_KIND_INTERNAL`: what happens inside of this server.
const INTERNAL: u8 = 1;

/// The body of one request to a collector.
pub fn request(instance: &str, spans: &[Span]) -> Vec<u8> {
    let resource = [
        ("service.name", SpanValue::Text("interlock".to_owned())),
        ("service.version", SpanValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
        ("service.instance.id", SpanValue::Text(instance.to_owned())),
    ];
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let body = json!({
        "resourceSpans": [{
            "resource": { "attributes": attributes(&resource) },
            "scopeSpans": [{
                "scope": { "name": "interlock", "version": env!("CARGO_PKG_VERSION") },
                "spans": spans,
            }],
        }],
    });
    body.to_string().into_bytes()
}

fn span(span: &Span) -> Value {
    let nanos = |at: interlock_core::time::Timestamp| (i128::from(at.0) * 1_000_000).to_string();
    let mut told = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(span.began_at),
        "endTimeUnixNano": nanos(span.ended_at),
        "attributes": attributes(&span.attributes),
        "status": status(&span.status),
    });
    if let Some(parent) = span.parent {
        told["parentSpanId"] = parent.to_string().into();
    }
    if !span.links.is_empty() {
        told["links"] = span.links.iter().map(link).collect();
    }
    told
}

fn link(link: &SpanLink) -> Value {
    json!({ "traceId": link.trace.to_string(), "spanId": link.span.to_string() })
}

fn status(status: &SpanStatus) -> Value {
    match status {
        SpanStatus::Unset => json!({}),
        SpanStatus::Ok => json!({ "code": 1 }),
        SpanStatus::Error(code) => json!({ "code": 2, "message": code }),
    }
}

fn attributes(attributes: &[(&'static str, SpanValue)]) -> Vec<Value> {
    let value = |value: &SpanValue| match value {
        SpanValue::Text(text) => json!({ "stringValue": text }),
        SpanValue::Number(number) => json!({ "intValue": number.to_string() }),
    };
    attributes.iter().map(|(key, of)| json!({ "key": key, "value": value(of) })).collect()
}
