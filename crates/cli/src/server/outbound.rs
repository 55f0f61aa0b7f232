//! The rules for calls to the outside, as flags.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use interlock_core::ids::TenantId;
use interlock_outbound::{Outbound, OutboundOptions, Range};

use crate::client::trust;

#[derive(Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct OutboundArgs {
    /// A range that calls to the outside may not reach, whatever is allowed. May be given several times.
    #[arg(long, env = "INTERLOCK_OUTBOUND_DENY", value_name = "RANGE", value_delimiter = ',')]
    outbound_deny: Vec<Range>,
    /// Certificates (PEM) that calls to the outside trust beside this machine's own.
    #[arg(long, env = "INTERLOCK_OUTBOUND_CA_FILE", value_name = "FILE")]
    outbound_ca_file: Option<PathBuf>,
    /// Private ranges that the server may call, as in `10.1.0.0/16`: an identity provider inside, for instance.
    /// `TENANT=RANGE`, with the tenant's id, opens a range to that tenant's connector and model steps alone.
    #[arg(long, env = "INTERLOCK_OUTBOUND_OPEN", value_name = "RANGE", value_delimiter = ',')]
    outbound_open: Vec<OpenRange>,
}

/// A range that may be called: for all tenants, or for one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenRange {
    tenant: Option<TenantId>,
    range: Range,
}

impl FromStr for OpenRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (tenant, range) = match text.split_once('=') {
            Some((tenant, range)) => (Some(tenant.trim()), range),
            None => (None, text),
        };
        let tenant = tenant.map(str::parse::<TenantId>).transpose().map_err(|error| error.to_string())?;
        let range = range.parse::<Range>().map_err(|error| error.to_string())?;
        Ok(Self { tenant, range })
    }
}

impl OutboundArgs {
    /// The one client for all calls to the outside.
    pub fn client(&self) -> anyhow::Result<Outbound> {
        let roots = self.outbound_ca_file.iter().map(|path| trust::read(path));
        let mut open = Vec::new();
        let mut open_for: BTreeMap<String, Vec<Range>> = BTreeMap::new();
        for OpenRange { tenant, range } in &self.outbound_open {
            match tenant {
                Some(tenant) => open_for.entry(tenant.to_string()).or_default().push(*range),
                None => open.push(*range),
            }
        }
        Ok(Outbound::new(OutboundOptions {
            open,
            open_for,
            closed: self.outbound_deny.clone(),
            roots_pem: roots.collect::<anyhow::Result<_>>()?,
            ..OutboundOptions::default()
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_open_to_all_or_to_one_tenant() {
        let parsed = |text: &str| text.parse::<OpenRange>();
        assert_eq!(parsed("10.0.0.0/8").unwrap().tenant, None);
        let tenant = TenantId::from_bytes([7; 16]);
        let one = parsed(&format!("{tenant}=10.1.0.0/16")).unwrap();
        assert_eq!((one.tenant, one.range.to_string()), (Some(tenant), "10.1.0.0/16".to_owned()));
        assert!(parsed("acme=10.1.0.0/16").unwrap_err().contains("`acme` is not the id of a tenant"));
        assert!(parsed(&format!("{tenant}=10.1.2.3/8")).unwrap_err().contains("bits set behind the length"));
    }
}
