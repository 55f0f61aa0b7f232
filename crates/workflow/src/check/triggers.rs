//! Triggers: schedules that can be read, and inputs that the workflow has.

use interlock_core::time::Millis;
use interlock_core::trigger::schedule::{CATCH_UP_MAX, Cadence, DstPolicy, JITTER_MAX, TimeZone, wrong_name};

use crate::cadence::{wrong_cron, wrong_zone};
use crate::definition::{Definition, Schedule};
use crate::diagnostic::{Code, Report};
use crate::limits::TRIGGERS_MAX;
use crate::shape::{At, Map, Template};
use interlock_core::text::nearest::hint;

pub fn check(definition: &Definition, report: &mut Report) {
    let Some(on) = &definition.on else { return };
    let all: Vec<&Map<Template>> = (on.webhook.0.iter().map(|trigger| &trigger.inputs))
        .chain(on.github.0.iter().map(|trigger| &trigger.inputs))
        .chain(on.slack.0.iter().map(|trigger| &trigger.inputs))
        .chain(on.servicenow.0.iter().map(|trigger| &trigger.inputs))
        .chain(on.schedule.0.iter().map(|trigger| &trigger.inputs))
        .chain(on.ticket.0.iter().map(|trigger| &trigger.inputs))
        .chain(on.signal.0.iter().map(|trigger| &trigger.inputs))
        .collect();
    if all.len() > TRIGGERS_MAX {
        report.error(Code::TooLarge, on.span, format!("there are {} triggers, the limit is {TRIGGERS_MAX}", all.len()));
    }
    for (key, _) in all.iter().flat_map(|inputs| &inputs.0) {
        if definition.inputs.get(&key.name).is_none() {
            report
                .error(Code::UndeclaredInput, key.span, format!("the input `{}` is not declared", key.name))
                .help(hint(&key.name, definition.inputs.names()));
        }
    }
    let mut names: Vec<String> = Vec::new();
    for (index, trigger) in on.schedule.0.iter().enumerate() {
        schedule(definition, trigger, report);
        let span = trigger.name.as_ref().map_or(trigger.span, |name| name.span);
        let name = trigger.name_at(&definition.name, index);
        if let Some(wrong) = wrong_name(&name) {
            report.error(Code::InvalidName, span, wrong).help("give the schedule a `name`");
        }
        if names.contains(&name) {
            report
                .error(Code::InvalidValue, span, format!("there are two schedules `{name}`"))
                .help("a schedule without a `name` is named after the workflow, from the second on with its number");
        }
        names.push(name);
    }
}

/// A schedule whose time the clocks of its zone leave out, each time.
fn comes(trigger: &Schedule, report: &mut Report) {
    let zone = trigger.timezone.as_ref().map_or("UTC", |zone| zone.value.as_str());
    let (Ok(cron), Ok(zone)) = (trigger.cron.parse(), TimeZone::get(zone)) else { return };
    let dst = trigger.dst.unwrap_or(DstPolicy::Once);
    let cadence = Cadence { cron, zone, dst, jitter: Millis::ZERO, catch_up: Millis::ZERO, seed: [0; 16] };
    if !cadence.ever_comes() {
        let message = "the schedule would never run: the clocks of its zone leave that time out, and `dst` is skip";
        report.error(Code::InvalidSchedule, trigger.cron.span, message).help("write `dst: once`, or another time");
    }
}

fn at_most(given: Option<At<Millis>>, max: Millis, what: &str, report: &mut Report) {
    if let Some(given) = given.filter(|given| given.value > max) {
        let message = format!("the {what} is longer than {}", crate::duration::show(max));
        report.error(Code::InvalidValue, given.span, message);
    }
}

fn schedule(definition: &Definition, trigger: &Schedule, report: &mut Report) {
    if let Some(wrong) = wrong_cron(&trigger.cron) {
        report
            .error(Code::InvalidSchedule, trigger.cron.span, wrong)
            .help("minute, hour, day of month, month, day of week: `0 3 * * 1` is Mondays at 3:00");
    }
    if let Some(zone) = &trigger.timezone
        && let Some(wrong) = wrong_zone(zone)
    {
        report.error(Code::InvalidSchedule, zone.span, wrong);
    }
    comes(trigger, report);
    at_most(trigger.catch_up, CATCH_UP_MAX, "catch-up window", report);
    at_most(trigger.jitter, JITTER_MAX, "jitter", report);
    for (key, input) in &definition.inputs.0 {
        if input.is_required() && input.default.is_none() && trigger.inputs.get(&key.name).is_none() {
            let message = format!("the input `{}` is required, and this schedule does not give it", key.name);
            report.warning(Code::Ineffective, trigger.span, message).help(format!(
                "its runs would be refused: add `inputs: {{ {}: … }}` to the schedule, or a default to the input",
                key.name
            ));
        }
    }
}
