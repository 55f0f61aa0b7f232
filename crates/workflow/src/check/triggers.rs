//! Triggers: schedules that can be read, and inputs that the workflow has.

use interlock_core::limits::WAIT_MAX;

use super::steps::duration;
use crate::cadence::{wrong_cron, wrong_zone};
use crate::definition::{Definition, Schedule};
use crate::diagnostic::{Code, Report};
use crate::limits::TRIGGERS_MAX;
use crate::shape::{Map, Template};
use interlock_core::nearest::hint;

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
    let mut names: Vec<&str> = Vec::new();
    for trigger in &on.schedule.0 {
        schedule(definition, trigger, report);
        if let Some(name) = &trigger.name {
            if names.contains(&&***name) {
                report.error(Code::InvalidValue, name.span, format!("there are two schedules `{}`", &***name));
            }
            names.push(name);
        }
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
    duration(trigger.catch_up, WAIT_MAX, report);
    duration(trigger.jitter, WAIT_MAX, report);
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
