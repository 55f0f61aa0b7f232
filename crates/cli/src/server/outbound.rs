//! The rules for calls to the outside, as flags.

use std::path::PathBuf;

use clap::Args;
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
    #[arg(long, env = "INTERLOCK_OUTBOUND_OPEN", value_name = "RANGE", value_delimiter = ',')]
    outbound_open: Vec<Range>,
}

impl OutboundArgs {
    /// The one client for all calls to the outside.
    pub fn client(&self) -> anyhow::Result<Outbound> {
        let roots = self.outbound_ca_file.iter().map(|path| trust::read(path));
        Ok(Outbound::new(OutboundOptions {
            open: self.outbound_open.clone(),
            closed: self.outbound_deny.clone(),
            roots_pem: roots.collect::<anyhow::Result<_>>()?,
            ..OutboundOptions::default()
        })?)
    }
}
