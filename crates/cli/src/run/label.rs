//! `interlock run label`: labels of a run that has ended.

use std::collections::BTreeMap;

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_protocol::runs::{ChangeRunLabels, RunLabels, path};
use reqwest::Method;

use super::{RunArg, find};
use crate::client::{Client, fill};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};

#[derive(Debug, Args)]
pub struct LabelArgs {
    #[command(flatten)]
    run: RunArg,
    /// `NAME=VALUE` sets a label, `NAME-` removes it; others stay.
    #[arg(value_name = "NAME=VALUE|NAME-", required = true)]
    labels: Vec<String>,
}

pub async fn run(client: &Client, printer: Printer, args: LabelArgs) -> anyhow::Result<()> {
    let labels = args.labels.iter().map(|text| change(text)).collect::<anyhow::Result<BTreeMap<_, _>>>()?;
    let run = find::run(client, &args.run.run).await?;
    let call = client.call(Method::PATCH, fill(path::LABELS, &[("run", &run)])).body(&ChangeRunLabels { labels });
    let now: RunLabels = call.send().await?;
    printer.show(&now, |_| {
        let labels: Vec<String> = now.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if labels.is_empty() {
            format!("{run} has no labels\n")
        } else {
            format!("{run} has the labels {}\n", visible(&labels.join(" ")))
        }
    })
}

fn change(text: &str) -> anyhow::Result<(String, Option<String>)> {
    let pair = match (text.split_once('='), text.strip_suffix('-')) {
        (Some((name, value)), _) => (name, Some(value.to_owned())),
        (None, Some(name)) => (name, None),
        (None, None) => ("", None),
    };
    match pair {
        ("", _) => {
            let what = format!("`{text}` is neither NAME=VALUE, which sets a label, nor NAME-, which removes one");
            Err(ExitError::saying(Exit::Usage, what))
        }
        (name, value) => Ok((name.to_owned(), value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_sets_and_a_dash_removes() {
        assert_eq!(change("env=prod-").unwrap(), ("env".into(), Some("prod-".into())));
        assert_eq!(change("env=").unwrap(), ("env".into(), Some(String::new())));
        assert_eq!(change("env-").unwrap(), ("env".into(), None));
        for wrong in ["env", "=prod", "-", ""] {
            change(wrong).unwrap_err();
        }
    }
}
