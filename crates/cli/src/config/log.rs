//! What the process says about itself on stderr: how much, and in which form.

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;

use super::LayeredConfig;

/// What the programs of a worker write on standard error is told, unless the filter names it.
const PROGRAMS: &str = "interlock_worker::stderr=info";

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
pub fn begin(layered: &LayeredConfig) {
    let leaf = layered.leaf();
    let asked = leaf.try_get_one::<String>("log").ok().flatten().cloned();
    let asked = asked.or_else(|| std::env::var("INTERLOCK_LOG").ok());
    let asked = asked.filter(|filter| !filter.is_empty() && EnvFilter::try_new(filter).is_ok());
    let filter = EnvFilter::new(format!("{PROGRAMS},{}", asked.as_deref().unwrap_or("warn")));
    let format = leaf.try_get_one::<LogFormat>("log_format").ok().flatten().copied().unwrap_or_default();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
