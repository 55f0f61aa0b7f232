//! `GET /stats`: runs over time, in equal spans.

use axum::Json;
use axum::extract::State;
use interlock_core::state::RunState;
use interlock_core::time::{Millis, Timestamp};
use interlock_protocol::operations::{StatsSpan, StatsView, limits, path};
use interlock_protocol::runs::RunQuery;
use interlock_store::{RunStats, StatsEnd, StatsGroup, StatsSpans};
use utoipa::IntoParams;

use super::{filter, searchable};
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::query::{Pairs, parsed};
use crate::state::AppState;

/// The time range where the query gives none.
const RANGE_DEFAULT: Millis = Millis::from_hours(24);
/// Lengths of a span, and how many spans there are where the query gives no length.
const LENGTHS: [Millis; 12] = [
    Millis::from_secs(10),
    Millis::from_secs(30),
    Millis::from_mins(1),
    Millis::from_mins(2),
    Millis::from_mins(5),
    Millis::from_mins(10),
    Millis::from_mins(30),
    Millis::from_hours(1),
    Millis::from_hours(3),
    Millis::from_hours(6),
    Millis::from_hours(24),
    Millis::from_hours(7 * 24),
];
const SPANS_DEFAULT: u64 = 40;

/// What the query string may hold. `label` and `input` may come up to three times together.
#[derive(Default, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct StatsParams {
    /// Unix milliseconds; by default a day before `before`. The first span begins at a whole multiple of its length.
    from: Option<Timestamp>,
    /// By default now, which is the latest.
    before: Option<Timestamp>,
    /// How long each span is, from a second on, so that there are at most 200; by default the shortest of 10 s, 30 s, 1, 2, 5, 10,
    /// 30 minutes, 1, 3, 6 hours, a day and a week of which there are at most 40.
    span_ms: Option<Millis>,
    workflow: Option<String>,
    subject: Option<String>,
    /// What caused the run: `api`, `schedule`, `webhook` …
    trigger: Option<String>,
    workspace: Option<String>,
    /// `name:value`.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    label: Vec<(String, String)>,
    /// `name:value` of an input that the workflow declares searchable.
    #[param(value_type = Option<Vec<String>>, style = Form, explode)]
    input: Vec<(String, String)>,
}

/// Count runs over time
///
/// How many runs started, succeeded, failed and were canceled in each span, and how many runs and approvals were open at its
/// end. At most the newest 50,000 runs are counted: where there are more, `whole` is false, and the spans begin later. A run
/// that began more than a day before `from` is counted as open while it lives, and not at its end.
#[utoipa::path(
    get,
    path = path::STATS,
    tag = "operations",
    params(StatsParams),
    responses((status = 200, description = "Runs over time.", body = StatsView)),
)]
pub async fn stats(State(state): State<AppState>, caller: Caller, pairs: Pairs) -> Result<Json<StatsView>, ApiError> {
    let params = read(&pairs)?;
    let now = state.now();
    let spans = spans_of(&params, now)?;
    let query = RunQuery {
        workflow: params.workflow,
        subject: params.subject,
        trigger: params.trigger,
        workspace: params.workspace,
        labels: params.label.into_iter().collect(),
        inputs: params.input.into_iter().collect(),
        ..RunQuery::default()
    };
    searchable::check(&state, caller.tenant, &query).await?;
    let filter = filter::checked(query, &caller)?;
    let found = state.for_tenant(caller.tenant).run_stats(&filter, spans).await?;
    Ok(Json(view(&found, spans, now)))
}

fn read(pairs: &Pairs) -> Result<StatsParams, ApiError> {
    let mut params = StatsParams::default();
    for (name, value) in pairs.iter() {
        match name {
            "from" => params.from = Some(Timestamp(parsed(name, value)?)),
            "before" => params.before = Some(Timestamp(parsed(name, value)?)),
            "span_ms" => params.span_ms = Some(Millis(parsed(name, value)?)),
            "workflow" => params.workflow = Some(value.to_owned()),
            "subject" => params.subject = Some(value.to_owned()),
            "trigger" => params.trigger = Some(value.to_owned()),
            "workspace" => params.workspace = Some(value.to_owned()),
            "label" => params.label.push(filter::pair(value, name)?),
            _ => params.input.push(filter::pair(value, name)?),
        }
    }
    Ok(params)
}

/// The spans that are asked for: the first begins at a whole multiple of its length, the last ends at `before` or later.
fn spans_of(params: &StatsParams, now: Timestamp) -> Result<StatsSpans, ApiError> {
    let before = params.before.map_or(now, |before| before.min(now));
    let from = params.from.unwrap_or(before - RANGE_DEFAULT).max(Timestamp(0));
    if from >= before {
        return Err(ApiError::invalid(
            "`from` is not earlier than `before` and than now: there is nothing between them",
        ));
    }
    let range = before.since(from);
    let number = |length: Millis| range.0.div_ceil(length.0) + 1;
    let shortest = LENGTHS.into_iter().find(|length| number(*length) <= SPANS_DEFAULT);
    let longest = Millis(range.0.div_ceil(SPANS_DEFAULT - 1));
    if let Some(length) = params.span_ms.filter(|length| *length > limits::SPAN_MAX) {
        let detail = format!("`span_ms` is {}, and has {} at most, which is a year", length.0, limits::SPAN_MAX.0);
        return Err(ApiError::malformed(detail));
    }
    let length = params.span_ms.or(shortest).unwrap_or(longest);
    if length < limits::SPAN_MIN || number(length) > limits::SPANS_MAX + 1 {
        let detail = format!(
            "`span_ms` has {} at least, and divides the time from `from` to `before` into {} spans at most: here it is {} or more",
            limits::SPAN_MIN.0,
            limits::SPANS_MAX,
            range.0.div_ceil(limits::SPANS_MAX).max(limits::SPAN_MIN.0)
        );
        return Err(ApiError::invalid(detail));
    }
    let step = i64::try_from(length.0).unwrap_or(i64::MAX);
    Ok(StatsSpans { from: Timestamp(from.0 / step * step), length, before })
}

fn view(found: &RunStats, spans: StatsSpans, now: Timestamp) -> StatsView {
    let count = spans.before.since(spans.from).0.div_ceil(spans.length.0);
    let begins = |number: u64| spans.from + Millis(number * spans.length.0);
    let mut list: Vec<_> =
        (0..count).map(|number| StatsSpan { from: begins(number), ..StatsSpan::default() }).collect();
    for group in &found.runs {
        if let Some(span) = group.begun.and_then(|begun| list.get_mut(begun)) {
            span.started += group.number;
        }
        if let StatsEnd::In(ended) = group.ended
            && let Some(span) = list.get_mut(ended)
        {
            match group.state {
                Some(RunState::Succeeded) => span.succeeded += group.number,
                Some(RunState::Failed) => span.failed += group.number,
                Some(RunState::Canceled) => span.canceled += group.number,
                _ => {}
            }
        }
    }
    for (span, open) in list.iter_mut().zip(open_at_end(&found.runs, count as usize)) {
        span.open = open;
    }
    for (span, open) in list.iter_mut().zip(open_at_end(&found.approvals, count as usize)) {
        span.approvals_open = open;
    }
    let whole = found.cut_at.is_none();
    list.retain(|span| found.cut_at.is_none_or(|cut_at| span.from >= cut_at));
    let from = list.first().map_or(spans.before, |span| span.from);
    StatsView { at: now, from, before: spans.before, span_ms: spans.length, whole, spans: list }
}

/// How many had begun and not ended when each span was over.
fn open_at_end(groups: &[StatsGroup], count: usize) -> Vec<u64> {
    // What is added at a span and taken away at another, summed up from the left.
    let mut changes = vec![0i64; count + 1];
    for group in groups {
        let begun = group.begun.unwrap_or(0).min(count);
        let ended = match group.ended {
            StatsEnd::NotYet => count,
            StatsEnd::Before => begun,
            StatsEnd::In(ended) => ended.clamp(begun, count),
        };
        let number = i64::try_from(group.number).unwrap_or(i64::MAX);
        changes[begun] += number;
        changes[ended] -= number;
    }
    let sum = |open: &mut i64, change: &i64| {
        *open += change;
        Some(u64::try_from(*open).unwrap_or(0))
    };
    changes[..count].iter().scan(0, sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn group(begun: Option<usize>, ended: StatsEnd, state: Option<RunState>, number: u64) -> StatsGroup {
        StatsGroup { begun, ended, state, number }
    }

    #[test]
    fn spans_begin_at_whole_multiples_and_are_not_too_many() {
        let now = Timestamp(100 * 24 * 60 * MINUTE + 12_345);
        let asked = |from, before, span_ms: Option<u64>| StatsParams {
            from: Some(Timestamp(from)),
            before: Some(Timestamp(before)),
            span_ms: span_ms.map(Millis),
            ..StatsParams::default()
        };
        let spans = spans_of(&StatsParams::default(), now).unwrap();
        assert_eq!((spans.before, spans.length), (now, Millis::from_hours(1)));
        assert_eq!(spans.from.0 % (60 * MINUTE), 0);
        assert!(spans.from <= now - RANGE_DEFAULT);
        assert_eq!(spans_of(&asked(0, 10 * MINUTE, None), now).unwrap().length, Millis::from_secs(30));
        // The future has no runs.
        assert_eq!(spans_of(&asked(0, i64::MAX, Some(24 * 3_600_000)), now).unwrap().before, now);
        for (from, before, span) in [
            (5, 5, None),
            (i64::MAX, 9, None),
            (0, 10 * MINUTE, Some(0)),
            (0, 10 * MINUTE, Some(999)),
            (0, 201_000, Some(1_000)),
        ] {
            spans_of(&asked(from, before, span), now).unwrap_err();
        }
        let most = spans_of(&asked(0, 200_000, Some(1_000)), now).unwrap();
        assert_eq!(view(&RunStats::default(), most, now).spans.len(), 200);
        // Whatever the range, there is a length.
        assert!(spans_of(&asked(0, i64::MAX, None), Timestamp(i64::MAX)).is_ok());
    }

    #[test]
    fn what_is_open_at_the_end_of_a_span_has_begun_and_not_ended() {
        let spans = StatsSpans { from: Timestamp(0), length: Millis::from_mins(1), before: Timestamp(3 * MINUTE) };
        let runs = vec![
            group(None, StatsEnd::Before, Some(RunState::Succeeded), 9),
            group(None, StatsEnd::NotYet, None, 4),
            group(None, StatsEnd::In(1), Some(RunState::Failed), 2),
            group(Some(0), StatsEnd::In(0), Some(RunState::Succeeded), 5),
            group(Some(1), StatsEnd::NotYet, None, 1),
            group(Some(2), StatsEnd::In(7), Some(RunState::Canceled), 3),
            group(Some(7), StatsEnd::NotYet, None, 8),
        ];
        let approvals = vec![group(Some(0), StatsEnd::In(2), None, 6)];
        let found = RunStats { runs, approvals, cut_at: None };
        let seen = view(&found, spans, Timestamp(3 * MINUTE));
        let told: Vec<_> = seen
            .spans
            .iter()
            .map(|s| (s.started, s.succeeded, s.failed, s.canceled, s.open, s.approvals_open))
            .collect();
        assert_eq!(told, [(5, 5, 0, 0, 6, 6), (1, 0, 2, 0, 5, 6), (3, 0, 0, 0, 8, 0)]);
        assert!(seen.whole);
        let cut = view(&RunStats { cut_at: Some(Timestamp(MINUTE + 1)), ..found }, spans, Timestamp(3 * MINUTE));
        assert_eq!((cut.whole, cut.from, cut.spans.len()), (false, Timestamp(2 * MINUTE), 1));
    }
}
