//! `interlock secret`: a file with secrets for a small installation. Values come from standard input, never from the
//! command line, which others on the machine can read.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use interlock_core::ids::TenantId;
use interlock_core::secret_name::is_secret_name;
use interlock_credentials::providers::age_file::{AgeFile, AgeFileError};
use interlock_credentials::{SecretBuf, harden_process, read_secret};
use interlock_sandbox::limits::SECRET_BYTES_MIN;
use serde::Serialize;

use crate::identity::login;
use crate::output::exit::{Exit, ExitError};
use crate::output::table::{Cell, Table};
use crate::output::{OutputArgs, layouts, say_on};

#[derive(Args)]
pub struct SecretArgs {
    #[command(flatten)]
    output: OutputArgs,
    /// The encrypted file.
    #[arg(long, global = true, env = "INTERLOCK_SECRETS_FILE", value_name = "FILE", default_value = "secrets.age")]
    file: PathBuf,
    /// The file with the private key that opens the encrypted file. Keep the two apart.
    #[arg(
        long,
        global = true,
        env = "INTERLOCK_SECRETS_IDENTITY_FILE",
        value_name = "FILE",
        default_value = "secrets.key"
    )]
    identity_file: PathBuf,
    #[command(subcommand)]
    verb: SecretVerb,
}

#[derive(Subcommand)]
enum SecretVerb {
    /// Make an empty file and the key to it.
    Init,
    /// Store a secret; its value is read from standard input.
    Set(SecretName),
    /// List the names of the secrets.
    List,
    /// Remove a secret.
    Remove(SecretName),
}

#[derive(Args)]
struct SecretName {
    /// Letters, digits and `_`, as workflows and connections name it.
    name: String,
    /// The id of the tenant whose secret it is, for `interlock up`, which serves all of them.
    #[arg(long, value_name = "TENANT")]
    tenant: Option<TenantId>,
}

impl SecretName {
    /// The name in the file.
    fn entry(&self) -> anyhow::Result<String> {
        if !is_secret_name(&self.name) {
            let what = format!("`{}` is not a name: letters, digits and `_`, not beginning with a digit", self.name);
            return Err(ExitError::saying(Exit::Usage, what));
        }
        Ok(match self.tenant {
            Some(tenant) => format!("{tenant}/{}", self.name),
            None => self.name.clone(),
        })
    }
}

#[derive(Serialize)]
struct ListedSecret {
    name: String,
}

pub fn run(args: SecretArgs) -> anyhow::Result<()> {
    harden_process()?;
    let file = AgeFile { file: args.file, identity: args.identity_file };
    let printer = args.output.printer();
    match args.verb {
        SecretVerb::Init => {
            let public = file.init().map_err(unusable)?;
            say_on(&format!("Made {} and its key {} ({public}).", file.file.display(), file.identity.display()));
            say_on("Anyone with the key can read every secret: keep it out of backups and version control.");
        }
        SecretVerb::Set(name) => {
            let entry = name.entry()?;
            let replaced = file.set(&entry, &value(&entry)?).map_err(unusable)?;
            say_on(&format!("{entry} is {}.", if replaced { "replaced" } else { "stored" }));
        }
        SecretVerb::List => {
            let names = file.names().map_err(unusable)?;
            let listed: Vec<_> = names.into_iter().map(|name| ListedSecret { name }).collect();
            let table = |_| {
                let mut table = Table::of(&layouts::SECRETS);
                for secret in &listed {
                    table.row([Cell::new(&secret.name)]);
                }
                table
            };
            printer.list(&listed, table, "There are no secrets in it.")?;
        }
        SecretVerb::Remove(name) => {
            let entry = name.entry()?;
            if !file.remove(&entry).map_err(unusable)? {
                let what =
                    format!("there is no `{entry}` in {}; `interlock secret list` has the names", file.file.display());
                return Err(ExitError::saying(Exit::NotFound, what));
            }
            say_on(&format!("{entry} is removed."));
        }
    }
    Ok(())
}

fn value(name: &str) -> anyhow::Result<SecretBuf> {
    let refused = |why: String| ExitError::saying(Exit::Usage, format!("the value of {name}: {why}"));
    let read = if io::stdin().is_terminal() {
        read_secret(login::ask(&format!("Value of {name}"))?.as_bytes())
    } else {
        read_secret(io::stdin().lock())
    };
    let value = read.map_err(|cause| refused(cause.to_string()))?;
    if value.reveal().len() < SECRET_BYTES_MIN {
        return Err(refused(format!("it has fewer than {SECRET_BYTES_MIN} bytes, and no command could be given it")));
    }
    Ok(value)
}

fn unusable(error: AgeFileError) -> anyhow::Error {
    let exit = match error {
        AgeFileError::Missing(_) => Exit::NotFound,
        _ => Exit::Config,
    };
    ExitError::saying(exit, error.to_string())
}
