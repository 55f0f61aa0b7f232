//! `interlock workflow disable` and `enable`.

use clap::Args;
use interlock_protocol::runs::Nothing;
use interlock_protocol::workflows::{WorkflowView, path};

use crate::client::{Client, fill};
use crate::output::Printer;

#[derive(Debug, Args)]
pub struct RestArgs {
    /// The workflow's name.
    #[arg(value_name = "NAME")]
    name: String,
}

pub async fn run(client: &Client, printer: Printer, args: RestArgs, disabled: bool) -> anyhow::Result<()> {
    let path = if disabled { path::DISABLE } else { path::ENABLE };
    let view: WorkflowView = client.post(fill(path, &[("workflow", &args.name)]), &Nothing {}).send().await?;
    printer.show(&view, |paint| {
        let what = if view.disabled { "takes no starts; runs that are active go on" } else { "takes starts" };
        format!("{} {what}\n", paint.bold(&view.workflow))
    })
}
