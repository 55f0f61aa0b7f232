//! `interlock context`: the servers that a person works with, by name.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::client::contexts::{self, Context, Contexts};
use crate::client::local;
use crate::client::target::{TargetArgs, address};
use crate::output::confirm::ConfirmArgs;
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{OutputArgs, Printer};

#[derive(Args)]
pub struct ContextArgs {
    #[command(flatten)]
    output: OutputArgs,
    #[command(subcommand)]
    verb: ContextVerb,
}

#[derive(Subcommand)]
enum ContextVerb {
    /// List the contexts; the current one is marked. `local` is the server that runs on this machine.
    List,
    /// Make a context the current one.
    Use {
        /// The context's name.
        name: String,
    },
    /// Add a context, or change the server of one. `interlock login --context NAME` stores its key.
    Add {
        /// The context's name.
        name: String,
        /// The server's address.
        #[arg(long, value_name = "URL")]
        server: String,
        /// The authority (PEM) that has signed the server's certificate, if it is none of this machine's.
        #[arg(long, value_name = "FILE")]
        ca: Option<std::path::PathBuf>,
        /// Make it the current one as well.
        #[arg(long = "use")]
        switch: bool,
    },
    /// Remove a context with its key.
    Remove {
        /// The context's name.
        name: String,
        #[command(flatten)]
        sure: ConfirmArgs,
    },
    /// Show which server a command would talk to now, and how that was found out.
    Show {
        #[command(flatten)]
        server: TargetArgs,
    },
}

/// A context as it is shown: the key itself stays in the file.
#[derive(Debug, Serialize)]
struct ShownContext {
    name: String,
    current: bool,
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
}

pub fn run(args: ContextArgs) -> anyhow::Result<()> {
    let printer = args.output.printer();
    match args.verb {
        ContextVerb::List => list(printer),
        ContextVerb::Use { name } => {
            let mut contexts = Contexts::load()?;
            if contexts.means_local(&name) {
                contexts.current = None;
                contexts.save()?;
                printer.note("Commands now talk to the server on this machine.");
                return Ok(());
            }
            let server = contexts.named(&name)?.server.clone();
            contexts.current = Some(name.clone());
            contexts.save()?;
            printer.note(&format!("Commands now talk to `{name}`, {server}."));
            Ok(())
        }
        ContextVerb::Add { name, server, ca, switch } => {
            let ca = ca.map(|path| kept_path(&path)).transpose()?;
            add(printer, &name, Context { server: address(&server)?, credential: None, ca }, switch)
        }
        ContextVerb::Remove { name, sure } => remove(printer, &name, sure),
        ContextVerb::Show { server } => show(printer, &server),
    }
}

fn list(printer: Printer) -> anyhow::Result<()> {
    let contexts = Contexts::load()?;
    let mut shown: Vec<ShownContext> = contexts
        .contexts
        .iter()
        .map(|(name, context)| ShownContext {
            name: name.clone(),
            current: contexts.current.as_ref() == Some(name),
            server: context.server.clone(),
            credential: context.credential.as_ref().map(crate::client::Secret::hint),
        })
        .collect();
    if contexts.means_local(contexts::LOCAL) {
        shown.extend(local::find().map(|found| ShownContext {
            name: contexts::LOCAL.to_owned(),
            current: contexts.current.is_none(),
            server: found.server,
            credential: found.api_key.as_ref().map(crate::client::Secret::hint),
        }));
    }
    let table = |_| {
        let mut table = Table::of(&layouts::CONTEXTS);
        for context in &shown {
            let mark = if context.current { Cell::toned(Tone::Good, "*") } else { Cell::new("") };
            table.row([
                mark,
                Cell::new(&context.name),
                Cell::new(&context.server),
                Cell::or_dash(context.credential.as_ref()),
            ]);
        }
        table
    };
    let if_empty = "There are no contexts, and no server runs on this machine: `interlock up` starts one.\n\
                    `interlock context add NAME --server URL` adds one elsewhere.";
    printer.list(&shown, table, if_empty)
}

/// A path that is good wherever a command is started, of a file that can be read.
pub fn kept_path(path: &std::path::Path) -> anyhow::Result<std::path::PathBuf> {
    super::trust::read(path)?;
    Ok(std::path::absolute(path)?)
}

fn add(printer: Printer, name: &str, context: Context, switch: bool) -> anyhow::Result<()> {
    let mut contexts = Contexts::load()?;
    let server = context.server.clone();
    // A key, and an authority, belong to the server they were stored for.
    let kept = contexts.contexts.get(name).filter(|known| known.server == server).cloned();
    let (credential, ca) = kept.map_or((None, None), |known| (known.credential, known.ca));
    contexts.put(name, Context { credential, ca: context.ca.or(ca), ..context })?;
    if switch {
        contexts.current = Some(name.to_owned());
    }
    contexts.save()?;
    let current = contexts.current.as_deref() == Some(name);
    let next = if current { "" } else { "; `interlock context use NAME` switches to it" };
    printer.note(&format!("Added `{name}`, {server}{}.", next.replace("NAME", name)));
    Ok(())
}

fn remove(printer: Printer, name: &str, sure: ConfirmArgs) -> anyhow::Result<()> {
    let mut contexts = Contexts::load()?;
    let server = &contexts.named(name)?.server;
    sure.ask(&format!("Remove `{name}`, {server}, with its key?"))?;
    contexts.contexts.remove(name);
    if contexts.current.as_deref() == Some(name) {
        contexts.current = None;
        printer.note(&format!("`{name}` was the current context; commands talk to the server on this machine now."));
    }
    contexts.save()?;
    printer.note(&format!("Removed `{name}`."));
    Ok(())
}

#[derive(Serialize)]
struct ResolvedTarget {
    server: String,
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<String>,
    file: String,
}

fn show(printer: Printer, server: &TargetArgs) -> anyhow::Result<()> {
    let target = server.target()?;
    let on_this_machine = local::find().is_some_and(|local| local.server == target.server);
    let found = (on_this_machine && server.server.is_none()).then(|| contexts::LOCAL.to_owned());
    let meant = ResolvedTarget {
        server: target.server,
        from: target.from,
        context: server.context.clone().or(Contexts::load()?.current).or(found),
        credential: target.credential.as_ref().map(crate::client::Secret::hint),
        file: contexts::path()?.display().to_string(),
    };
    printer.show(&meant, |paint| {
        format!(
            "server      {} {}\ncontext     {}\ncredential  {}\nfile        {}\n",
            meant.server,
            paint.dim(format!("({})", meant.from)),
            meant.context.as_deref().unwrap_or("-"),
            meant.credential.as_deref().unwrap_or("none"),
            meant.file
        )
    })
}
