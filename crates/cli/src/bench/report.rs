//! What a workload answers: the same fields for every one, and what only it has.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::output::say_on;

#[derive(Debug, Serialize)]
pub struct Report {
    pub workload: &'static str,
    pub store: String,
    pub runs: u64,
    pub steps: u64,
    pub in_flight: usize,
    pub runs_per_s: f64,
    pub steps_per_s: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub rss_mib: f64,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Report {
    pub fn print(&self, json: bool) -> anyhow::Result<()> {
        let value = serde_json::to_value(self)?;
        if json {
            say_on(&value.to_string());
            return Ok(());
        }
        let Value::Object(fields) = value else { anyhow::bail!("a report is an object") };
        say_on("");
        for (name, value) in &fields {
            match value {
                Value::Array(rows) => table(name, rows),
                value => say_on(&format!("  {name:<26} {:>20}", text(value))),
            }
        }
        Ok(())
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), grouped),
        other => other.to_string(),
    }
}

/// Objects of the same fields, one a line under their names.
fn table(name: &str, rows: &[Value]) {
    say_on(&format!("  {name}"));
    let Some(Value::Object(first)) = rows.first() else { return };
    let head: Vec<String> = first.keys().map(|field| format!("{field:>14}")).collect();
    say_on(&format!("    {}", head.join(" ")));
    for row in rows.iter().filter_map(Value::as_object) {
        let cells: Vec<String> = row.values().map(|value| format!("{:>14}", text(value))).collect();
        say_on(&format!("    {}", cells.join(" ")));
    }
}

/// 1234567.8 as `1 234 568`, small numbers with their decimals.
fn grouped(number: f64) -> String {
    if number.fract() != 0.0 && number.abs() < 1_000.0 {
        return format!("{number:.3}");
    }
    let digits = format!("{:.0}", number.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    if number < 0.0 { format!("-{text}") } else { text }
}

/// The latency that `share` of the samples stay under, in milliseconds. Sorts the samples.
pub fn percentile(samples: &mut [u64], share: f64) -> f64 {
    if samples.is_empty() {
        return 0.0;
    }
    samples.sort_unstable();
    let index = ((samples.len() - 1) as f64 * share).round() as usize;
    samples[index] as f64 / 1_000.0
}

/// The middle one. Sorts the values.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// The memory that this process holds now.
pub fn rss_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kib: f64 = line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0.0);
    kib / 1024.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_numbers_read_right() {
        assert!((median(&mut [3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        let mut samples: Vec<u64> = (1..=100).map(|n| n * 1_000).collect();
        assert!((percentile(&mut samples, 0.99) - 99.0).abs() < 1.1);
        assert!((percentile(&mut samples, 0.5) - 50.0).abs() < 1.1);
        assert_eq!(grouped(1_234_567.8), "1 234 568");
        assert_eq!(grouped(0.1234), "0.123");
        assert_eq!(grouped(12.0), "12");
    }
}
