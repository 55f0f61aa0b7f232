//! `interlock tenant`: the boundaries that own everything.

use clap::{Args, Subcommand};
use interlock_core::ids::TenantId;
use interlock_core::text::nearest::hint;
use interlock_protocol::identity::{ChangeTenant, CreateTenant, CreatedTenant, TenantList, TenantView, path};
use reqwest::Method;

use crate::client::{Client, ClientArgs, fill};
use crate::output::Printer;
use crate::output::exit::{Exit, ExitError};
use crate::output::layouts;
use crate::output::paint::Tone;
use crate::output::table::{Cell, Table};

#[derive(Args)]
pub struct TenantArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: TenantVerb,
}

#[derive(Subcommand)]
enum TenantVerb {
    /// Make a tenant. The key of its first admin is printed once, on stdout.
    Create {
        /// What the tenant is called.
        name: String,
        #[command(flatten)]
        with: Limits,
    },
    /// List the tenants that you may see.
    List,
    /// Show a tenant, by its name or id.
    Show {
        /// The tenant's name or id.
        tenant: String,
    },
    /// Change a tenant's limits or settings.
    Update {
        /// The tenant's name or id.
        tenant: String,
        #[command(flatten)]
        with: Limits,
        /// Refuse all of its credentials; what is running goes on.
        #[arg(long, conflicts_with = "enable")]
        disable: bool,
        /// Enable the tenant again.
        #[arg(long)]
        enable: bool,
    },
}

/// A limit of 0 takes the limit away.
#[derive(Args)]
struct Limits {
    /// Steps that run at the same time.
    #[arg(long, value_name = "COUNT")]
    max_concurrency: Option<u32>,
    /// Runs that start in a minute; what is over is delayed.
    #[arg(long, value_name = "COUNT")]
    max_runs_per_min: Option<u32>,
    /// Starts past this many pending runs are refused.
    #[arg(long, value_name = "COUNT")]
    pending_runs_max: Option<u32>,
    /// The share of capacity beside other tenants.
    #[arg(long, value_name = "SHARE")]
    weight: Option<u32>,
    /// Whether people may approve what they started, where one vote is enough.
    #[arg(long, value_name = "BOOL")]
    self_approval: Option<bool>,
    /// Whether `X-Request-ID` counts as an idempotency key.
    #[arg(long, value_name = "BOOL")]
    request_id_is_key: Option<bool>,
    /// Whether a second admin must agree before a policy is put in force.
    #[arg(long, value_name = "BOOL")]
    two_keys_for_policy: Option<bool>,
    /// Whether a second admin must agree before people, roles, keys or these settings are changed.
    #[arg(long, value_name = "BOOL")]
    two_keys_for_access: Option<bool>,
    /// Whether every run gets an evidence bundle at its end, also one without decisions, approvals and effects.
    #[arg(long, value_name = "BOOL")]
    evidence_always: Option<bool>,
}

impl Limits {
    fn change(&self, disabled: Option<bool>) -> ChangeTenant {
        ChangeTenant {
            max_concurrency: self.max_concurrency,
            max_runs_per_min: self.max_runs_per_min,
            pending_runs_max: self.pending_runs_max,
            weight: self.weight,
            self_approval: self.self_approval,
            request_id_is_key: self.request_id_is_key,
            two_keys_for_policy: self.two_keys_for_policy,
            two_keys_for_access: self.two_keys_for_access,
            task_workspace: None,
            worker_orchestration: None,
            worker_channel: None,
            worker_broker: None,
            evidence_always: self.evidence_always,
            disabled,
        }
    }
}

pub async fn run(args: TenantArgs) -> anyhow::Result<()> {
    let (client, printer) = args.client.open()?;
    match args.verb {
        TenantVerb::Create { name, with } => {
            let body = CreateTenant { name, with: with.change(None) };
            let created: CreatedTenant = client.post(path::TENANTS, &body).send().await?;
            let TenantView { tenant, name, .. } = &created.tenant;
            printer.note(&format!("Made `{name}`, {tenant}. The key of its first admin, shown this once:"));
            printer.show(&created, |_| format!("{}\n", created.admin_key))
        }
        TenantVerb::List => {
            let tenants = all(&client).await?;
            printer.list(&tenants, |_| table(&tenants), "There are no tenants.")
        }
        TenantVerb::Show { tenant } => show(printer, &find(&client, &tenant).await?),
        TenantVerb::Update { tenant, with, disable, enable } => {
            let found = find(&client, &tenant).await?;
            let disabled = (disable || enable).then_some(disable);
            let path = fill(path::TENANT, &[("tenant", &found.tenant)]);
            let changed: TenantView = client.call(Method::PATCH, path).body(&with.change(disabled)).send().await?;
            show(printer, &changed)
        }
    }
}

async fn all(client: &Client) -> anyhow::Result<Vec<TenantView>> {
    let list: TenantList = client.get(path::TENANTS).send().await?;
    Ok(list.tenants)
}

async fn find(client: &Client, named: &str) -> anyhow::Result<TenantView> {
    if let Ok(id) = named.parse::<TenantId>() {
        return Ok(client.get(fill(path::TENANT, &[("tenant", &id)])).send().await?);
    }
    let mut tenants = all(client).await?;
    if let Some(found) = tenants.iter().position(|tenant| tenant.name == named) {
        return Ok(tenants.swap_remove(found));
    }
    let hint = hint(named, tenants.iter().map(|tenant| tenant.name.as_str()));
    Err(ExitError::saying(Exit::NotFound, format!("there is no tenant `{named}`; {hint}")))
}

fn table(tenants: &[TenantView]) -> Table {
    let count = |limit: Option<u32>| Cell::or_dash(limit.map(|limit| limit.to_string()));
    let mut table = Table::of(&layouts::TENANTS);
    for tenant in tenants {
        let state = match tenant.disabled_at {
            Some(_) => Cell::toned(Tone::Bad, "disabled"),
            None => Cell::toned(Tone::Good, "enabled"),
        };
        table.row([
            Cell::new(tenant.tenant.to_string()),
            Cell::new(&tenant.name),
            count(tenant.max_concurrency),
            count(tenant.max_runs_per_min),
            Cell::new(tenant.weight.to_string()),
            state,
        ]);
    }
    table
}

fn show(printer: Printer, tenant: &TenantView) -> anyhow::Result<()> {
    let limit = |limit: Option<u32>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    printer.show(tenant, |paint| {
        format!(
            "{}  {}\nconcurrency    {}\nruns a minute  {}\npending runs   {}\nweight         {}\nself-approval  {}\nrequest id     {}\ntwo keys       {}\nevidence       {}\nstate          {}\n",
            paint.bold(&tenant.name),
            paint.dim(tenant.tenant),
            limit(tenant.max_concurrency),
            limit(tenant.max_runs_per_min),
            limit(tenant.pending_runs_max),
            tenant.weight,
            if tenant.settings.self_approval { "allowed" } else { "denied" },
            if tenant.settings.request_id_is_key { "an idempotency key" } else { "no idempotency key" },
            match (tenant.settings.two_keys_for_policy, tenant.settings.two_keys_for_access) {
                (true, true) => "for policy and access",
                (true, false) => "for policy",
                (false, true) => "for access",
                (false, false) => "for no change",
            },
            if tenant.settings.evidence_always { "of every run" } else { "of governed runs" },
            if tenant.disabled_at.is_some() { "disabled" } else { "enabled" },
        )
    })
}
