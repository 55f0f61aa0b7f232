//! What the process says about itself on stderr: how much, and in which form.

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::Layered;

/// How much the process says about itself.
#[derive(Args)]
pub struct LogArgs {
    /// What is logged to stderr, as in `info` or `warn,interlock_engine=debug`.
    #[arg(long, env = "INTERLOCK_LOG", value_name = "FILTER", default_value = "warn", value_parser = filter)]
    log: String,
    /// How it is logged: lines for people, or one JSON document a line.
    #[arg(long, env = "INTERLOCK_LOG_FORMAT", value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

fn filter(text: &str) -> Result<String, String> {
    let parsed = EnvFilter::try_new(text);
    parsed.map(|_| text.to_owned()).map_err(|error| format!("{error}; write it as `info` or `warn,NAME=debug`"))
}

/// Begins to log, as the command line, the environment and the file say. Commands without these settings log what
/// INTERLOCK_LOG asks for, as text.
pub fn begin(layered: &Layered) {
    let leaf = layered.leaf();
    let filter = leaf.try_get_one::<String>("log").ok().flatten().and_then(|filter| EnvFilter::try_new(filter).ok());
    let filter = filter.or_else(|| EnvFilter::try_from_env("INTERLOCK_LOG").ok());
    let filter = filter.unwrap_or_else(|| EnvFilter::new("warn"));
    let format = leaf.try_get_one::<LogFormat>("log_format").ok().flatten().copied().unwrap_or_default();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
