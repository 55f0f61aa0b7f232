//! Where traces go, as flags.

use clap::Args;
use interlock_core::time::Millis;
use interlock_engine::traces::{TraceEndpoint, TraceOptions};
use interlock_outbound::{Outbound, OutboundOptions, Range};
use interlock_server::private_file;

use crate::client::trust;

/// How long spans are gathered before they are sent.
const SEND_EVERY: Millis = Millis(1_000);

#[derive(Args)]
#[expect(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct TraceArgs {
    /// Where traces of runs are sent: an OTLP collector over HTTP, as in `http://localhost:4318`. Nowhere by default.
    #[arg(long, env = "INTERLOCK_TRACES_ENDPOINT", value_name = "URL")]
    traces_endpoint: Option<String>,
    /// A file with headers for the collector, one `NAME=VALUE` a line, as in `Authorization=Bearer …`.
    #[arg(long, env = "INTERLOCK_TRACES_HEADERS_FILE", value_name = "FILE")]
    traces_headers_file: Option<std::path::PathBuf>,
    /// Certificates (PEM) that the connection to the collector trusts beside this machine's own.
    #[arg(long, env = "INTERLOCK_TRACES_CA_FILE", value_name = "FILE")]
    traces_ca_file: Option<std::path::PathBuf>,
}

impl TraceArgs {
    /// None where traces go nowhere.
    pub fn options(&self) -> anyhow::Result<Option<TraceOptions>> {
        let Some(url) = &self.traces_endpoint else {
            let has_others = self.traces_headers_file.is_some() || self.traces_ca_file.is_some();
            anyhow::ensure!(!has_others, "traces go nowhere: name the collector with --traces-endpoint");
            return Ok(None);
        };
        let headers = match &self.traces_headers_file {
            None => Vec::new(),
            Some(path) => {
                let text = private_file::read(path);
                let text = text.map_err(|error| match error.kind() {
                    std::io::ErrorKind::InvalidData => anyhow::anyhow!("{} is not text", path.display()),
                    _ => anyhow::anyhow!("cannot read {}: {error}", path.display()),
                })?;
                text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
            }
        };
        let endpoint = TraceEndpoint::new(url, &headers)?;
        // The operator has named this one address, and a collector on a private address is the usual case.
        let open = vec![Range::v4([0, 0, 0, 0], 0), Range::v6(0, 0, 0, 0)];
        let roots_pem = self.traces_ca_file.iter().map(|path| trust::read(path)).collect::<anyhow::Result<_>>()?;
        let client = Outbound::new(OutboundOptions { open, roots_pem, ..OutboundOptions::default() })?;
        Ok(Some(TraceOptions { endpoint, client, send_every: SEND_EVERY }))
    }
}
