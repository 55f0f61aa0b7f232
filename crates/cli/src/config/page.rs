//! `docs/reference/config.md`, written from the settings themselves, so that it cannot say anything else.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::known::{self, SettingSpec};

const OPENING: &str = "# Configuration

Written from the commands themselves; a test keeps it fresh.

Nothing has to be configured. Everything can be said by a flag, by a variable of the environment, or in a config file;
the flag wins over the variable, the variable over the file, the file over the default. `interlock config show` prints
what counts in the end, and where each value comes from: `interlock config show worker --slots 4` for another command.
`interlock config init` writes a file with every setting, its meaning and its default, commented out; `interlock config check`
says what a server or a worker would say about a file, and starts nothing.

The file is named by `--config FILE` or `INTERLOCK_CONFIG`; without either, `interlock.toml` in the data folder is read if
it is there. `server`, `up`, `worker`, `db` and `doctor` read it. The whole file is checked, whichever command reads it: an
unknown setting or a value of the wrong kind ends the command with code 78 and says where it stands.

```toml
listen = \"0.0.0.0:8420\"
store = \"postgres://interlock@db.example.org/interlock\"
public_url = \"https://interlock.example.org\"
retention_days = 90

[tls]
cert = \"/etc/interlock/tls/fullchain.pem\"
key = \"/etc/interlock/tls/privkey.pem\"

[outbound]
open = [\"10.20.0.0/16\"]

[oidc]
issuer = \"https://login.example.org\"
client_id = \"interlock\"
client_secret_file = \"/run/secrets/oidc\"
role = { sre = [\"operator\", \"approver\"], platform = \"admin\" }

[worker]
server = \"https://interlock.example.org\"
api_key_file = \"/run/secrets/worker.key\"
task = { resize = \"/opt/tasks/resize\" }
```

Paths of files and folders are relative to the folder of the config file. Secrets are named by files, never by values:
arguments and environments can be read by others, and a file that others can read [is refused](security.md#files-with-secrets).
A PostgreSQL address may hold a password; keep such a file to yourself (mode 0600).

";

/// The whole page.
pub fn page() -> String {
    let mut root = crate::Cli::command();
    root.build();
    let settings = known::all(&root);
    let mut page = OPENING.to_owned();
    let tables = ["", "tls", "outbound", "traces", "oidc", "worker"];
    for table in tables {
        let title = if table.is_empty() { "The server".to_owned() } else { format!("`[{table}]`") };
        // Writing to a string cannot fail.
        let _ = writeln!(
            page,
            "## {title}\n\n| setting | flag | variable | default | what it says |\n|---|---|---|---|---|"
        );
        for known in settings.iter().filter(|known| known.table() == table) {
            let _ = writeln!(page, "{}", line(known));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn line(known: &SettingSpec) -> String {
    let arg = &known.arg;
    let default: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = match default.join(",") {
        none if none.is_empty() => "–".to_owned(),
        some => format!("`{some}`"),
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
    let flag = arg.get_long().unwrap_or_default();
    let name = known.name();
    format!("| `{name}` | `--{flag}` | `{}` | {default} | {help} |", known.variable)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_reference_page_of_settings_is_fresh() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
        let fresh = super::page();
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            std::fs::write(&path, &fresh).unwrap();
        }
        let copy = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(copy == fresh, "docs/reference/config.md is stale: run the test with UPDATE_REFERENCE=1 and commit it");
    }

    /// A flag of the server, of `up` or of a worker without a variable would be no setting.
    #[test]
    fn every_flag_is_a_variable_and_a_setting() {
        use clap::CommandFactory as _;
        let root = crate::Cli::command();
        let settings = super::known::all(&root);
        for name in ["server", "up", "worker"] {
            for arg in root.find_subcommand(name).unwrap().get_arguments() {
                let Some(flag) = arg.get_long().filter(|flag| !["help", "version", "config"].contains(flag)) else {
                    continue;
                };
                assert!(settings.iter().any(|known| known.is(arg)), "{name} --{flag} has no variable, so no setting");
            }
        }
        let mut keys: Vec<_> = settings.iter().map(|known| &known.key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), settings.len(), "two settings have the same name");
    }
}
