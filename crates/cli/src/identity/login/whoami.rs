//! `interlock whoami`: whom the server takes the caller for.

use clap::Args;
use interlock_core::text::visible::visible;
use interlock_protocol::identity::{Me, path};

use crate::client::ClientArgs;

#[derive(Args)]
pub struct WhoamiArgs {
    #[command(flatten)]
    client: ClientArgs,
}

pub async fn run(args: WhoamiArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    let mut me: Me = client.get(path::ME).send().await?;
    // It is for pages, and a secret of theirs.
    me.csrf = None;
    let server = &client.target().server;
    printer.show(&me, |paint| {
        let who = match (&me.person, &me.key) {
            (Some(person), _) => format!("{}, a person", paint.bold(visible(person))),
            (None, Some(key)) => format!("the key {} ({})", paint.bold(visible(key)), visible(&me.client)),
            (None, None) => paint.bold(visible(&me.client)),
        };
        let groups = if me.groups.is_empty() { "none".to_owned() } else { me.groups.join(", ") };
        let vote = match &me.person {
            Some(_) => String::new(),
            None => "\nA key cannot vote; `interlock login --user NAME` signs you in as yourself.".to_owned(),
        };
        let workspace =
            me.workspace.as_ref().map_or_else(String::new, |name| format!("\nworkspace  {}", visible(name)));
        format!(
            "{who}\nserver     {server}\ntenant     {}{workspace}\nroles      {}\ngroups     {}{vote}\n",
            visible(&me.tenant_name),
            me.roles,
            visible(&groups)
        )
    })
}
