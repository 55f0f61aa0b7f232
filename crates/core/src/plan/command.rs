//! Commands: a program and its arguments, as the vector that is executed. What a step's templates come to is judged,
//! shown to people and run as one document, `{"argv": […], "env": {…}}`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Plan, StepSpec, Undo, Work, is_template};
use crate::json::{Json, canonical};
use crate::limits;
use crate::plan::rules::{PROFILES, Requires};
use crate::state::StepKind;
use crate::time::Millis;

/// The capability of a worker that runs commands under a profile.
pub fn command_capability(profile: &str) -> String {
    format!("{}:{profile}", StepKind::Command)
}

const CONTROL: &str = "control:";

/// The capability of a worker on whose host a control of the sandbox was tried out and held.
pub fn control_capability(control: &str) -> String {
    format!("{CONTROL}{control}")
}

/// Whether a capability stands for a control of the sandbox.
pub fn is_control(capability: &str) -> bool {
    capability.starts_with(CONTROL)
}

/// The capability of a worker that keeps a directory for a run, and takes runs as a whole.
pub const WORKDIR: &str = "workdir";
/// The profiles whose commands can be given a directory that outlives them.
pub const WORKDIR_PROFILES: &[&str] = &["prod-standard", "dev-flex"];

const SEGMENT: &str = "segment:";

/// What a command needs that runs in a network segment. No worker can say it of itself: its certificate does.
pub fn segment_need(segment: &str) -> String {
    format!("{SEGMENT}{segment}")
}

/// The segment in such a need.
pub fn needed_segment(need: &str) -> Option<&str> {
    need.strip_prefix(SEGMENT)
}

const LABEL: &str = "label:";

/// What a command needs whose worker must have this label. No capability stands for it.
pub fn label_need(name: &str, value: &str) -> String {
    format!("{LABEL}{name}={value}")
}

/// The label in such a need, and its value.
pub fn needed_label(need: &str) -> Option<(&str, &str)> {
    need.strip_prefix(LABEL)?.split_once('=')
}

const LATENCY: &str = "max_latency_ms:";

/// What a command needs whose worker must be this near. No worker can say it of itself when it registers: it is measured.
pub fn latency_need(most: Millis) -> String {
    format!("{LATENCY}{}", most.0)
}

/// How far away the worker may be at most, in such a need.
pub fn needed_latency(need: &str) -> Option<Millis> {
    need.strip_prefix(LATENCY)?.parse().ok().map(Millis)
}

/// What a name begins with that cannot be a capability, and the field of `requires` that asks for what it stands for.
pub fn reserved_capability(name: &str) -> Option<(&'static str, &'static str)> {
    let reserved = [(SEGMENT, "network_segment"), (LABEL, "labels"), (LATENCY, "max_latency_ms")];
    reserved.into_iter().find(|(prefix, _)| name.starts_with(prefix))
}

impl Requires {
    /// What a worker must have or be, in the words by which it is matched.
    fn needs(&self) -> impl Iterator<Item = String> {
        let segment = self.network_segment.iter().map(|name| segment_need(name));
        let labels = self.labels.iter().map(|(name, value)| label_need(name, value));
        let near = self.max_latency.map(latency_need);
        self.capabilities.iter().cloned().chain(segment).chain(labels).chain(near)
    }
}

/// The profile in such a capability.
pub fn commanded_profile(capability: &str) -> Option<&str> {
    capability.strip_prefix(StepKind::Command.as_str())?.strip_prefix(':')
}

/// What [`environment_of`] says.
pub const ENVIRONMENTS: &[&str] = &["prod", "staging", "dev", "none", UNKNOWN_ENVIRONMENT];
/// The environment of profiles that this build does not know.
pub const UNKNOWN_ENVIRONMENT: &str = "unknown";

/// The environment of a profile, in the words of the policy.
pub fn environment_of(profile: Option<&str>) -> &'static str {
    match profile {
        None => "none",
        Some("prod-critical" | "prod-standard") => "prod",
        Some("staging-standard") => "staging",
        Some("dev-flex") => "dev",
        Some(_) => UNKNOWN_ENVIRONMENT,
    }
}

impl StepSpec {
    /// Whether a command carries the step out, forward or back.
    pub const fn is_command(&self) -> bool {
        matches!(self.work, Work::Command { .. } | Work::Rollback { by: Undo::Argv(_), .. })
    }

    /// What a task asks of its worker besides knowing it.
    pub fn task_needs(&self) -> BTreeSet<String> {
        let requires = self.rules.requires.as_ref().filter(|_| self.task_name().is_some());
        requires.into_iter().flat_map(Requires::needs).collect()
    }

    /// The command as a template.
    pub fn command_template(&self) -> Option<Json> {
        let Work::Command { argv, env } = &self.work else { return None };
        Some(Json::trusted(serde_json::json!({ "argv": argv, "env": env }).to_string()))
    }
}

/// The capability of a worker that asks before each effect and reports its outcome.
pub const EFFECTS: &str = "effects";

impl Plan {
    /// What a worker must have said of itself to be given the step, where a command carries it out.
    pub fn command_needs(&self, spec: &StepSpec) -> Option<BTreeSet<String>> {
        spec.is_command().then(|| {
            let profile = self.rules.profile.as_deref().unwrap_or_default();
            let required = spec.rules.requires.iter().flat_map(Requires::needs);
            let workdir = spec.rules.workdir.map(|_| WORKDIR.to_owned());
            let asks = spec.rules.dedupe_window().map(|_| EFFECTS.to_owned());
            required.chain(workdir).chain(asks).chain([command_capability(profile)]).collect()
        })
    }

    /// The environment in which its runs act.
    pub fn environment(&self) -> &'static str {
        environment_of(self.rules.profile.as_deref())
    }

    /// A command runs in the sandbox that the workflow's profile names, and never without one.
    pub(super) fn check_command(&self, step: &StepSpec) -> Result<(), String> {
        let undone_by_command = step.rollback.as_ref().is_some_and(|rollback| {
            let verify = rollback.verify.as_ref();
            [Some(&rollback.by), verify].into_iter().flatten().any(|by| matches!(by, Undo::Argv(_)))
        });
        if step.rules.workdir.is_some() && !step.is_command() {
            return Err("`workdir` is for commands".into());
        }
        if !step.is_command() && !undone_by_command {
            return Ok(());
        }
        let names = PROFILES.join(", ");
        match self.rules.profile.as_deref() {
            None => Err(format!("a command needs a profile, which says how it is confined: one of {names}")),
            Some(profile) if !PROFILES.contains(&profile) => Err(format!(
                "a command cannot run under the profile `{profile}`, which has no sandbox; there are {names}"
            )),
            Some(profile) if step.rules.workdir.is_some() && !WORKDIR_PROFILES.contains(&profile) => Err(format!(
                "`workdir` needs a profile whose sandbox has a place for it: {}; each command of `{profile}` begins with \
                 nothing",
                WORKDIR_PROFILES.join(", ")
            )),
            Some(_) => Ok(()),
        }
    }
}

/// A command whose arguments may hold expressions. Its program may not: which programs a workflow starts can be seen
/// before it runs.
pub(super) fn check_template(argv: &[String], env: &BTreeMap<String, String>) -> Result<(), String> {
    check(argv, env)?;
    if argv.first().is_some_and(|program| is_template(program)) {
        return Err("the program of a command is fixed: expressions are for its arguments".into());
    }
    check_program(argv)
}

/// What undoes something is fixed, so that it cannot fail on an expression.
pub(super) fn check_undo(argv: &[String]) -> Result<(), String> {
    check(argv, &BTreeMap::new())?;
    if argv.iter().any(|argument| is_template(argument)) {
        return Err("a command that rolls a step back is fixed: it may not hold expressions".into());
    }
    check_program(argv)
}

fn check_program(argv: &[String]) -> Result<(), String> {
    match argv.first() {
        Some(program) if program.starts_with('/') => Ok(()),
        Some(program) => {
            let shown: String = program.chars().take(80).collect();
            Err(format!("`{shown}` is not an absolute path: commands are named by their file, without a search"))
        }
        None => Err("the command is empty: it has at least the absolute path of a program".into()),
    }
}

fn check(argv: &[String], env: &BTreeMap<String, String>) -> Result<(), String> {
    if argv.is_empty() {
        return Err("the command is empty: it has at least the absolute path of a program".into());
    }
    if argv.len() > limits::ARGUMENTS_MAX || env.len() > limits::VARIABLES_MAX {
        let (arguments, variables) = (limits::ARGUMENTS_MAX, limits::VARIABLES_MAX);
        return Err(format!("a command has at most {arguments} arguments and {variables} variables"));
    }
    let bytes = |texts: &mut dyn Iterator<Item = &String>| texts.map(String::len).sum::<usize>();
    let all = bytes(&mut argv.iter()) + bytes(&mut env.keys()) + bytes(&mut env.values());
    if all > limits::COMMAND_BYTES_MAX {
        return Err(format!("the command is {all} bytes long, the limit is {}", limits::COMMAND_BYTES_MAX));
    }
    if argv.iter().chain(env.values()).any(|text| text.contains('\0')) {
        return Err("an argument or a variable of the command holds a zero byte".into());
    }
    for name in env.keys() {
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(format!("`{}` cannot be a variable's name", name.escape_debug()));
        }
        if name.starts_with("LD_") {
            return Err(format!("the variable `{name}` would change which code runs"));
        }
        if name.starts_with("INTERLOCK_") {
            return Err(format!("the variable `{name}` is set by the worker"));
        }
    }
    Ok(())
}

/// A command with everything filled in, checked and in canonical form. Numbers and truth values become text; everything
/// else that is no text is refused.
pub fn bound_command(rendered: Value) -> Result<Json, String> {
    let Value::Object(mut fields) = rendered else { return Err("a command is an object".into()) };
    let text = |at: String, value: Value| match value {
        Value::String(text) => Ok(text),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(truth) => Ok(truth.to_string()),
        Value::Object(object) if object.contains_key(SECRET_MARK) => Err(format!(
            "{at} is a secret, which a command is never given there: list it under `credentials`, and the command finds it in \
             the file /run/secrets/NAME"
        )),
        Value::Null => Err(format!("{at} came to nothing")),
        Value::Array(_) | Value::Object(_) => Err(format!("{at} came to a list or an object, and must be one text")),
    };
    let Some(Value::Array(argv)) = fields.remove("argv") else { return Err("a command has a list `argv`".into()) };
    let Some(Value::Object(env)) = fields.remove("env") else { return Err("a command has an object `env`".into()) };
    let argv = argv.into_iter().enumerate().map(|(at, value)| text(format!("argument {at} of the command"), value));
    let argv: Vec<String> = argv.collect::<Result<_, _>>()?;
    let env = env.into_iter().map(|(name, value)| Ok((name.clone(), text(format!("the variable `{name}`"), value)?)));
    let env: BTreeMap<String, String> = env.collect::<Result<_, String>>()?;
    check(&argv, &env)?;
    check_program(&argv)?;
    let bytes = canonical(&serde_json::json!({ "argv": argv, "env": env })).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map(Json::trusted).map_err(|error| error.to_string())
}

/// How a reference to a secret is marked in what a template comes to.
const SECRET_MARK: &str = "$secret";

/// A command's arguments and variables, as a bound step has them.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BoundCommand {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(argv: &[&str], env: &[(&str, &str)]) -> StepSpec {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        StepSpec::new("c", Work::Command { argv: argv.iter().map(|word| (*word).to_owned()).collect(), env })
    }

    fn says(profile: Option<&str>, step: StepSpec) -> Option<String> {
        let mut plan = Plan::new("demo", vec![step]);
        plan.rules.profile = profile.map(str::to_owned);
        plan.validate().err().map(|error| error.to_string())
    }

    #[test]
    fn a_command_is_a_fixed_program_under_a_profile_with_a_sandbox() {
        let dev = Some("dev-flex");
        assert_eq!(says(dev, step(&["/usr/bin/id", "${{ inputs.user }}"], &[("LANG", "C")])), None);
        for (profile, step, why) in [
            (None, step(&["/usr/bin/id"], &[]), "needs a profile"),
            (Some("lab"), step(&["/usr/bin/id"], &[]), "has no sandbox"),
            (dev, step(&[], &[]), "is empty"),
            (dev, step(&["id"], &[]), "not an absolute path"),
            (dev, step(&["${{ inputs.program }}"], &[]), "the program of a command is fixed"),
            (dev, step(&["/usr/bin/id", "a\0b"], &[]), "zero byte"),
            (dev, step(&["/usr/bin/id"], &[("LD_PRELOAD", "/x.so")]), "which code runs"),
            (dev, step(&["/usr/bin/id"], &[("A B", "")]), "variable's name"),
            (dev, step(&["/usr/bin/id"], &[("INTERLOCK_RUN_ID", "")]), "set by the worker"),
            (dev, step(&vec!["/usr/bin/id"; limits::ARGUMENTS_MAX + 1], &[]), "at most"),
        ] {
            let said = says(profile, step).unwrap_or_default();
            assert!(said.contains(why), "{why}: {said}");
        }
    }

    #[test]
    fn what_undoes_is_fixed_and_needs_a_profile_too() {
        let undone = |argv: &[&str]| {
            let by = Undo::Argv(argv.iter().map(|word| (*word).to_owned()).collect());
            let rollback = Some(super::super::RollbackSpec::by(by));
            StepSpec { rollback, ..StepSpec::task("a", "t") }
        };
        let verified = |by: Undo| {
            let rollback = super::super::RollbackSpec::by(Undo::Handler("u".into()));
            let rollback = Some(super::super::RollbackSpec { verify: Some(by), ..rollback });
            StepSpec { rollback, ..StepSpec::task("a", "t") }
        };
        assert!(says(None, verified(Undo::Argv(vec!["/bin/true".into()]))).unwrap().contains("needs a profile"));
        assert!(says(Some("dev-flex"), verified(Undo::Argv(vec!["true".into()]))).unwrap().contains("absolute"));
        assert!(says(None, verified(Undo::Operation("http.request".into()))).unwrap().contains("not by a connector"));
        assert_eq!(says(Some("dev-flex"), undone(&["/usr/bin/rm", "/tmp/x"])), None);
        assert!(says(None, undone(&["/usr/bin/rm"])).unwrap().contains("needs a profile"));
        assert!(says(Some("dev-flex"), undone(&["/usr/bin/rm", "${{ 1 }}"])).unwrap().contains("is fixed"));
    }

    #[test]
    fn a_bound_command_is_texts_and_nothing_else() {
        let bound = |value| bound_command(value).map(|json| json.as_str().to_owned());
        let whole = bound(json!({ "env": { "N": true }, "argv": ["/bin/x", 5, "a b"] }));
        assert_eq!(whole.as_deref(), Ok(r#"{"argv":["/bin/x","5","a b"],"env":{"N":"true"}}"#));
        for (argument, why) in [
            (json!(["a"]), "must be one text"),
            (json!(null), "came to nothing"),
            (json!({ "$secret": "DB" }), "/run/secrets"),
            (json!("a\u{0}b"), "zero byte"),
        ] {
            let said = bound(json!({ "argv": ["/bin/x", argument], "env": {} })).unwrap_err();
            assert!(said.contains(why), "{why}: {said}");
        }
        assert!(bound(json!({ "argv": ["x"], "env": {} })).unwrap_err().contains("absolute"));
        assert!(bound(json!({ "argv": ["/x"] })).is_err());
    }

    #[test]
    fn a_command_asks_for_its_profile_and_for_what_its_step_requires() {
        let mut spec = step(&["/usr/bin/id"], &[]);
        spec.rules.requires =
            Some(crate::plan::rules::Requires { capabilities: vec!["gpu".into()], ..Default::default() });
        let near = crate::plan::rules::Requires {
            max_latency: Some(Millis(50)),
            labels: BTreeMap::from([("rack".to_owned(), "a=b".to_owned())]),
            ..Default::default()
        };
        let mut plan = Plan::new("demo", vec![spec]);
        plan.rules.profile = Some("prod-critical".into());
        let needs: Vec<String> = plan.command_needs(&plan.steps[0]).unwrap().into_iter().collect();
        assert_eq!(needs, ["command:prod-critical", "gpu"]);
        plan.steps[0].rules.requires = Some(near);
        let needs: Vec<String> = plan.command_needs(&plan.steps[0]).unwrap().into_iter().collect();
        assert_eq!(needs, ["command:prod-critical", "label:rack=a=b", "max_latency_ms:50"]);
        assert_eq!((needed_label(&needs[1]), needed_latency(&needs[2])), (Some(("rack", "a=b")), Some(Millis(50))));
        assert_eq!((needed_label("gpu"), needed_latency("max_latency_ms:soon")), (None, None));
        assert_eq!(plan.command_needs(&StepSpec::task("a", "t")), None);
        assert!(plan.steps[0].task_needs().is_empty(), "it is no task");
        let mut task = StepSpec::task("a", "t");
        task.rules.requires.clone_from(&plan.steps[0].rules.requires);
        assert_eq!(task.task_needs().into_iter().collect::<Vec<_>>(), ["label:rack=a=b", "max_latency_ms:50"]);
    }

    #[test]
    fn what_stands_for_another_need_is_no_capability() {
        for (need, field) in [
            (segment_need("vpc-a"), "network_segment"),
            (label_need("rack", "a"), "labels"),
            (latency_need(Millis(5)), "max_latency_ms"),
        ] {
            assert_eq!(reserved_capability(&need).map(|(_, field)| field), Some(field));
        }
        for name in ["gpu", "labels", "command:dev-flex", "control:seccomp", WORKDIR, EFFECTS] {
            assert_eq!(reserved_capability(name), None);
        }
    }
}
