//! `interlock run start`.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use anyhow::Context as _;
use clap::Args;
use interlock_core::json::{Json, check_exact};
use interlock_core::limits::PAYLOAD_BYTES_MAX;
use interlock_core::plan::Plan;
use interlock_core::plan::rules::OnConflict;
use interlock_core::state::RunState;
use interlock_protocol::runs::{StartRun, Started, path};
use interlock_protocol::workflows;
use serde_json::{Map, Value};

use super::wait::{self, WaitArgs};
use crate::client::{Client, ClientError, fill};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};

/// What a run is given.
#[derive(Debug, Args)]
pub struct InputArgs {
    /// An input; the type that the workflow declares counts: a `string` is taken as it is written. Without one, a value that
    /// is JSON is taken as such, everything else as text. May be given several times.
    #[arg(long = "input", short = 'i', value_name = "NAME=VALUE")]
    input: Vec<String>,
    /// All inputs at once: JSON, `@FILE`, or `-` for stdin.
    #[arg(long, value_name = "JSON", conflicts_with = "input")]
    inputs: Option<String>,
}

#[derive(Debug, Args)]
pub struct StartArgs {
    /// The workflow's name.
    #[arg(value_name = "WORKFLOW", required_unless_present = "plan")]
    workflow: Option<String>,
    /// The workflow's version; the newest one where omitted.
    #[arg(long, value_name = "NUMBER", conflicts_with = "plan")]
    workflow_version: Option<u32>,
    /// A file with a plan instead of a workflow, as JSON; `-` for stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "workflow")]
    plan: Option<String>,
    #[command(flatten)]
    inputs: InputArgs,
    /// What the run is about; one active run per subject.
    #[arg(long)]
    subject: Option<String>,
    /// While another run holds the subject: `reject` this one, `queue` it, `signal` the other, or `cancel_previous`. By
    /// default as the workflow says, else `reject`.
    #[arg(long, value_name = "RULE")]
    on_conflict: Option<OnConflict>,
    /// A label; may be given several times.
    #[arg(long = "label", short = 'l', value_name = "NAME=VALUE")]
    labels: Vec<String>,
    /// The workspace that it belongs to: any name, `default` where omitted. A key may be bound to one.
    #[arg(long, value_name = "NAME", value_parser = crate::client::workspace::name)]
    workspace: Option<String>,
    /// Higher goes first; the workflow's own where omitted.
    #[arg(long)]
    priority: Option<i32>,
    /// Your own name for this request: the same one again makes no second run. By default each call has its own.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    wait: WaitArgs,
}

pub async fn run(client: &Client, printer: Printer, args: StartArgs) -> anyhow::Result<()> {
    let plan = args.plan.as_deref().map(plan).transpose()?;
    let inputs = match &args.workflow {
        Some(workflow) => inputs_of(client, workflow, args.workflow_version, &args.inputs).await?,
        None => inputs(&args.inputs)?,
    };
    let request = StartRun {
        workflow: args.workflow,
        version: args.workflow_version,
        plan,
        inputs,
        workspace: args.workspace,
        subject: args.subject,
        on_conflict: args.on_conflict,
        labels: pairs(&args.labels, LABEL_EXAMPLE)?.into_iter().collect::<BTreeMap<_, _>>(),
        priority: args.priority,
    };
    // With a key of its own, a request whose answer was lost can be sent again.
    let key = args.idempotency_key.unwrap_or_else(|| format!("cli-{:032x}", fastrand::u128(..)));
    let started = client.post(path::RUNS, &request).idempotency_key(&key).send::<Started>().await;
    let started = started.map_err(|error| not_started(error, &key))?;
    let run = started.run_id;
    if args.wait.wait {
        printer.note(&format!("{run} {}", started.admission));
        return wait::until(client, printer, run, args.wait, RunState::Succeeded).await;
    }
    printer.show(&started, |paint| {
        let next = paint.dim(format!("interlock run watch {run}   follows it"));
        format!("{run} {}\n{next}\n", started.admission)
    })
}

/// Why a start under a key failed; with the key, where it may have started a run all the same.
pub fn not_started(error: ClientError, key: &str) -> anyhow::Error {
    if !error.is_lost_answer() {
        return error.into();
    }
    let what = format!(
        "{error}\nIt was sent several times under one key, and may have started a run. The same command with \
         `--idempotency-key {key}` finds out, and starts no second one."
    );
    ExitError::saying(error.exit(), what)
}

fn plan(file: &str) -> anyhow::Result<Plan> {
    let text = json(&if file == "-" { file.to_owned() } else { format!("@{file}") })?;
    text.decode().map_err(|error| ExitError::saying(Exit::Usage, format!("{file}: {error}")))
}

pub fn inputs(args: &InputArgs) -> anyhow::Result<Json> {
    inputs_typed(args, &BTreeSet::new())
}

/// The inputs of a run of this workflow. The workflow is read only where a value could be meant in two ways. A user who
/// may not read it, or names one that is not there, gets that error from the start itself.
pub async fn inputs_of(
    client: &Client,
    workflow: &str,
    version: Option<u32>,
    args: &InputArgs,
) -> anyhow::Result<Json> {
    let could_be_json = |text: &String| {
        let value = text.split_once('=').map(|(_, value)| value).unwrap_or_default();
        serde_json::from_str::<Value>(value).is_ok()
    };
    if !args.input.iter().any(could_be_json) {
        return inputs(args);
    }
    let path = match &version {
        Some(version) => fill(workflows::path::VERSION, &[("workflow", &workflow), ("version", version)]),
        None => fill(workflows::path::WORKFLOW, &[("workflow", &workflow)]),
    };
    let stored = client.get(path).send::<workflows::VersionDetail>().await;
    let texts = stored.map(|stored| declared_texts(&stored.definition)).unwrap_or_default();
    inputs_typed(args, &texts)
}

/// The inputs of a run of a workflow with this definition.
pub fn inputs_for(definition: &Json, args: &InputArgs) -> anyhow::Result<Json> {
    inputs_typed(args, &declared_texts(definition))
}

/// The inputs that a definition declares as texts.
fn declared_texts(definition: &Json) -> BTreeSet<String> {
    let definition: Value = definition.decode().unwrap_or_default();
    let declared = definition["inputs"].as_object().into_iter().flatten();
    let is_text = |rule: &Value| rule.as_str().or(rule["type"].as_str()) == Some("string");
    declared.filter(|(_, rule)| is_text(rule)).map(|(name, _)| name.clone()).collect()
}

fn inputs_typed(args: &InputArgs, texts: &BTreeSet<String>) -> anyhow::Result<Json> {
    if let Some(inputs) = &args.inputs {
        return json(inputs);
    }
    let mut fields = Map::new();
    for (name, value) in pairs(&args.input, INPUT_EXAMPLE)? {
        let value = match serde_json::from_str(&value) {
            // In quotes it is the text inside of them, as it always was.
            Ok(quoted @ Value::String(_)) => quoted,
            Ok(other) if !texts.contains(&name) => {
                check_exact(&value)
                    .map_err(|what| ExitError::saying(Exit::Usage, format!("the input `{name}`: {what}")))?;
                other
            }
            _ => Value::String(value),
        };
        fields.insert(name, value);
    }
    Ok(Json::of(&fields)?)
}

/// How an input and how a label is written.
pub const INPUT_EXAMPLE: &str = "-i incident=INC-1";
pub const LABEL_EXAMPLE: &str = "-l team=payments";

/// The names and values of an option that may be given several times, with an example of it for a mistake.
pub fn pairs(texts: &[String], example: &str) -> anyhow::Result<Vec<(String, String)>> {
    let pair = |text: &String| {
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| ExitError::saying(Exit::Usage, format!("`{text}` is not NAME=VALUE, as in `{example}`")))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    let pairs: Vec<(String, String)> = texts.iter().map(pair).collect::<anyhow::Result<_>>()?;
    let names: BTreeSet<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    if names.len() < pairs.len() {
        let is_repeated = |name: &&&str| pairs.iter().filter(|(other, _)| other == **name).count() > 1;
        let name = names.iter().find(is_repeated).copied().unwrap_or_default();
        let what = format!("`{name}` is given twice; give each name once, as in `{example}`");
        return Err(ExitError::saying(Exit::Usage, what));
    }
    Ok(pairs)
}

/// JSON as a user gives it: the text itself, `@FILE`, or `-` for stdin.
pub fn json(given: &str) -> anyhow::Result<Json> {
    let text = match given.strip_prefix('@') {
        _ if given == "-" => {
            let mut text = String::new();
            std::io::stdin().lock().take(PAYLOAD_BYTES_MAX as u64 + 1).read_to_string(&mut text)?;
            text
        }
        Some(file) => std::fs::read_to_string(file).with_context(|| format!("cannot read {file}"))?,
        None => given.to_owned(),
    };
    Json::parse(&text, PAYLOAD_BYTES_MAX).map_err(|error| ExitError::saying(Exit::Usage, format!("`{given}`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_json_are_taken_as_such() {
        let args =
            |input: &[&str]| InputArgs { input: input.iter().map(|text| (*text).to_owned()).collect(), inputs: None };
        let json = inputs(&args(&["a=1", "b=text", "c={\"d\":true}", "e=x=y"])).unwrap();
        assert_eq!(json.as_str(), r#"{"a":1,"b":"text","c":{"d":true},"e":"x=y"}"#);
        assert!(inputs(&args(&["novalue"])).unwrap_err().to_string().contains(INPUT_EXAMPLE));
        assert!(pairs(&["bad".to_owned()], LABEL_EXAMPLE).unwrap_err().to_string().contains("`-l team=payments`"));
        let twice = inputs(&args(&["a=1", "b=2", "a=3"])).unwrap_err().to_string();
        assert!(twice.contains("`a` is given twice"), "{twice}");
        let declared =
            Json::trusted(r#"{"inputs":{"sha":{"type":"string","required":true},"count":{"type":"integer"}}}"#);
        let texts = declared_texts(&declared);
        let long = "123456789012345678901234567890";
        let rounded = inputs_typed(&args(&[&format!("count={long}")]), &texts).unwrap_err().to_string();
        assert!(rounded.contains("`count`") && rounded.contains(long), "{rounded}");
        let json = inputs_typed(&args(&[&format!("sha={long}")]), &texts).unwrap();
        assert_eq!(json.as_str(), format!(r#"{{"sha":"{long}"}}"#));
        let json = inputs_typed(&args(&["sha=1234567", "count=7", "other=1"]), &texts).unwrap();
        assert_eq!(json.as_str(), r#"{"count":7,"other":1,"sha":"1234567"}"#);
        let json = inputs_typed(&args(&["sha=\"12\""]), &texts).unwrap();
        assert_eq!(json.as_str(), r#"{"sha":"12"}"#);
    }
}
