//! `interlock config init`: a file with every setting, commented out. What is not commented out later was chosen by the
//! operator.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, CommandFactory};

use super::known::{self, SettingSpec, Shape};
use super::{FILE, data_folder};
use crate::output::exit::{Exit, ExitError};
use crate::output::{Printer, say};

const OPENING: &str =
    "# Interlock's config file. Everything here can be left out: what is commented out shows the default, or nothing
# where there is none. A flag wins over a variable of the environment, a variable over this file.
#   interlock config check FILE    is it right?
#   interlock config show          what counts in the end, and where each value comes from
# Paths are relative to the folder of this file. Secrets are named by files, never written here.
";

#[derive(Args)]
pub struct InitArgs {
    /// Where it goes; `interlock.toml` in the data folder by default, `-` for stdout. A file that is there is kept.
    file: Option<PathBuf>,
    /// The data folder, made if it is not there.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
}

pub fn run(printer: Printer, args: InitArgs) -> anyhow::Result<()> {
    let text = text();
    let path = match args.file {
        Some(path) if path.as_os_str() == "-" => return say(&text),
        Some(path) => path,
        None => {
            data_folder::make(&args.data)?;
            args.data.join(FILE)
        }
    };
    // The address of a database may come to stand in it, with its password.
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let mut file = file.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            let what = format!("{} is there already; name another file, or `-` to print it", path.display());
            ExitError::saying(Exit::Config, what)
        }
        _ => ExitError::saying(Exit::Config, format!("{} cannot be written: {error}", path.display())),
    })?;
    file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    printer.note(&format!("{} is written. Nothing in it is set yet.", path.display()));
    Ok(())
}

/// The whole file.
pub fn text() -> String {
    let mut root = crate::Cli::command();
    root.build();
    let settings = known::all(&root);
    let mut text = OPENING.to_owned();
    for table in ["", "tls", "outbound", "traces", "oidc", "worker"] {
        if !table.is_empty() {
            // A table without settings changes nothing, and its lines can be uncommented one by one.
            let _ = writeln!(text, "\n[{table}]");
        }
        for known in settings.iter().filter(|known| known.table() == table) {
            entry(known, &mut text);
        }
    }
    text
}

fn entry(known: &SettingSpec, text: &mut String) {
    let help = known.arg.get_help().map(ToString::to_string).unwrap_or_default();
    text.push('\n');
    for line in folded(&help, 110) {
        let _ = writeln!(text, "# {line}");
    }
    let values = known.arg.get_possible_values();
    if !values.is_empty() && known.shape != Shape::Switch {
        let names: Vec<_> = values.iter().map(|value| format!("\"{}\"", value.get_name())).collect();
        let _ = writeln!(text, "# One of {}.", names.join(", "));
    }
    let _ = writeln!(text, "#{} = {}", known.name(), value(known));
}

/// The default as the file writes it, or something of the right kind where there is none.
fn value(known: &SettingSpec) -> String {
    let defaults: Vec<String> =
        known.arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    // A text of JSON is one of TOML, too.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let first = defaults.first().filter(|first| !first.is_empty());
    match known.shape {
        Shape::Switch => first.map_or("false", String::as_str).to_owned(),
        Shape::Number => first.map_or("0", String::as_str).to_owned(),
        Shape::Text | Shape::Path => quoted(first.map_or("", String::as_str)),
        Shape::List => {
            let items = first.into_iter().flat_map(|first| first.split(known.separator().unwrap_or(',')));
            format!("[{}]", items.map(quoted).collect::<Vec<_>>().join(", "))
        }
        Shape::Table => "{}".to_owned(),
    }
}

/// The text in lines of at most this many characters, broken between words.
fn folded(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
