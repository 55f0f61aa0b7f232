//! `interlock user`: people of the tenant.

use clap::{Args, Subcommand};
use interlock_core::ids::UserId;
use interlock_core::tenant::identity::Roles;
use interlock_core::text::nearest::hint;
use interlock_protocol::identity::{ChangeUser, CreateUser, Invite, SetPassword, UserList, UserView, limits, path};
use interlock_protocol::runs::Nothing;
use reqwest::Method;

use crate::client::{Client, ClientArgs, fill};
use crate::identity::login;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};
use crate::output::{Printer, span};

#[derive(Args)]
pub struct UserArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: UserVerb,
}

#[derive(Subcommand)]
enum UserVerb {
    /// Make an account, and a link by which the person chooses a password.
    Create {
        /// What the person is called in votes and histories; it never changes.
        name: String,
        /// viewer, operator, approver, admin; several with commas.
        #[arg(long, value_name = "ROLES")]
        role: Roles,
        /// Groups, which approval rules name; several with commas.
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        group: Vec<String>,
        /// The person's name as lists show it.
        #[arg(long)]
        display_name: Option<String>,
        /// The person's mail address.
        #[arg(long)]
        email: Option<String>,
        /// Make no link: the person comes by the identity provider.
        #[arg(long)]
        no_invite: bool,
    },
    /// List people, newest first.
    List,
    /// Change a person's roles or groups.
    #[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["role", "group"]))]
    Roles {
        /// The person's name or id.
        user: String,
        /// All roles from now on: viewer, operator, approver, admin; several with commas.
        #[arg(long, value_name = "ROLES")]
        role: Option<Roles>,
        /// All groups from now on, which approval rules name; several with commas.
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        group: Option<Vec<String>>,
    },
    /// Disable a person: their sessions end, and they cannot sign in any more.
    Disable {
        /// The person's name or id.
        user: String,
    },
    /// Let a disabled person in again.
    Enable {
        /// The person's name or id.
        user: String,
    },
    /// Make a link by which the person chooses a new password.
    Invite {
        /// The person's name or id.
        user: String,
    },
    /// Set a person's password, asked for or read from stdin.
    SetPassword {
        /// The person's name or id.
        user: String,
    },
}

pub async fn run(args: UserArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        UserVerb::Create { name, role, group, display_name, email, no_invite } => {
            let body = CreateUser { name, roles: role, groups: group, display_name, email, password: None };
            let user: UserView = client.post(path::USERS, &body).send().await?;
            printer.note(&format!("Made an account for `{}`, {}.", user.name, user.user));
            if no_invite { printer.show(&user, words(&user)) } else { invite(&client, printer, &user).await }
        }
        UserVerb::List => {
            let users = all(&client).await?;
            printer.list(&users, |_| table(&users), "There are no people yet.")
        }
        UserVerb::Roles { user, role, group } => {
            change(&client, printer, &user, ChangeUser { roles: role, groups: group, ..ChangeUser::default() }).await
        }
        UserVerb::Disable { user } => {
            change(&client, printer, &user, ChangeUser { disabled: Some(true), ..ChangeUser::default() }).await
        }
        UserVerb::Enable { user } => {
            change(&client, printer, &user, ChangeUser { disabled: Some(false), ..ChangeUser::default() }).await
        }
        UserVerb::Invite { user } => {
            let user = find(&client, &user).await?;
            invite(&client, printer, &user).await
        }
        UserVerb::SetPassword { user } => {
            let user = find(&client, &user).await?;
            let text = login::ask(&format!("New password for {}", user.name))?;
            let password = text.trim_end_matches(['\r', '\n']).to_owned();
            let body = SetPassword { password, old_password: None };
            client.post(fill(path::USER_PASSWORD, &[("user", &user.user)]), &body).done().await?;
            printer.note(&format!("`{}` has a new password; earlier visits are over.", user.name));
            Ok(())
        }
    }
}

async fn invite(client: &Client, printer: Printer, user: &UserView) -> anyhow::Result<()> {
    let path = fill(path::USER_INVITE, &[("user", &user.user)]);
    let invite: Invite = client.post(path, &Nothing {}).send().await?;
    let until = span::instant(invite.expires_at);
    printer.note(&format!("Send `{}` this link; it works once, until {until}:", user.name));
    printer.show(&invite, |_| format!("{}\n", invite.link))
}

async fn change(client: &Client, printer: Printer, named: &str, change: ChangeUser) -> anyhow::Result<()> {
    let user = find(client, named).await?;
    let path = fill(path::USER, &[("user", &user.user)]);
    let changed: UserView = client.call(Method::PATCH, path).body(&change).send().await?;
    printer.show(&changed, words(&changed))
}

async fn all(client: &Client) -> anyhow::Result<Vec<UserView>> {
    let mut users = Vec::new();
    let mut after = None;
    loop {
        let call = client.get(path::USERS).query("limit", Some(limits::PAGE_MAX)).query("after", after);
        let page: UserList = call.send().await?;
        users.extend(page.users);
        after = page.next_after;
        if after.is_none() {
            return Ok(users);
        }
    }
}

async fn find(client: &Client, named: &str) -> anyhow::Result<UserView> {
    if let Ok(id) = named.parse::<UserId>() {
        return Ok(client.get(fill(path::USER, &[("user", &id)])).send().await?);
    }
    let mut users = all(client).await?;
    if let Some(found) = users.iter().position(|user| user.name == named) {
        return Ok(users.swap_remove(found));
    }
    let hint = hint(named, users.iter().map(|user| user.name.as_str()));
    Err(ExitError::saying(Exit::NotFound, format!("there is no person called `{named}`; {hint}")))
}

fn words(user: &UserView) -> impl FnOnce(crate::output::paint::Paint) -> String {
    let state = if user.disabled_at.is_some() { "disabled" } else { "enabled" };
    let groups = if user.groups.is_empty() { "-".to_owned() } else { user.groups.join(", ") };
    let (name, id, roles) = (user.name.clone(), user.user, user.roles);
    move |paint| {
        format!("{}  {}\nroles   {roles}\ngroups  {groups}\nstate   {state}\n", paint.bold(name), paint.dim(id))
    }
}

fn table(users: &[UserView]) -> Table {
    let now = span::now();
    let mut table = Table::of(&layouts::USERS);
    for user in users {
        let state = match user.disabled_at {
            Some(_) => Cell::toned(Tone::Bad, "disabled"),
            None => Cell::toned(Tone::Good, "enabled"),
        };
        table.row([
            Cell::new(user.user.to_string()),
            Cell::new(&user.name),
            Cell::new(user.roles.to_string()),
            Cell::or_dash(Some(user.groups.join(", ")).filter(|groups| !groups.is_empty())),
            state,
            Cell::or_dash(user.last_login_at.map(|at| span::away(at, now))),
        ]);
    }
    table
}
