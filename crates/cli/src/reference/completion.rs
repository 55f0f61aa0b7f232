//! `interlock completion`: a script that teaches a shell the commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::output;

#[derive(Args)]
#[command(after_help = "Examples:
  bash        source <(interlock completion bash)
  zsh         interlock completion zsh > \"${fpath[1]}/_interlock\"
  fish        interlock completion fish > ~/.config/fish/completions/interlock.fish
  elvish      eval (interlock completion elvish | slurp)
  powershell  interlock completion powershell | Out-String | Invoke-Expression")]
pub struct CompletionArgs {
    /// The shell to write it for.
    #[arg(value_enum)]
    shell: Shell,
}

pub fn run(args: CompletionArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "interlock", &mut script);
    output::say(&String::from_utf8(script)?)
}
