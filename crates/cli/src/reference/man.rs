//! `interlock man`: manual pages, written from the commands as the reference is.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory};

#[derive(Args)]
#[command(after_help = "Example:
  interlock man ~/.local/share/man/man1 && man interlock-run-start")]
pub struct ManArgs {
    /// Where the pages go, one file for each command; made if it is not there.
    folder: PathBuf,
}

pub fn run(args: ManArgs) -> anyhow::Result<()> {
    let cannot = || format!("cannot write manual pages into {}", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(cannot)?;
    clap_mangen::generate_to(crate::Cli::command(), &args.folder).with_context(cannot)
}
