//! Names to addresses, filtered by the rules. What this hands out is what is connected to: the connector asks once.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns;

use crate::limits;
use crate::rules::{Forbidden, Rules};

/// Looks a name up.
pub trait Resolve: Send + Sync + 'static {
    fn resolve(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

/// The machine's own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Which of the rules a look-up obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    AnyPort,
    /// This server listens on the port.
    OwnPort,
}

/// The resolver inside the HTTP client.
pub(crate) struct Guarded {
    pub rules: Arc<Rules>,
    pub resolver: Arc<dyn Resolve>,
    pub lookup: Lookup,
}

impl dns::Resolve for Guarded {
    fn resolve(&self, name: dns::Name) -> dns::Resolving {
        let (rules, lookup) = (Arc::clone(&self.rules), self.lookup);
        let found = self.resolver.resolve(name.as_str().to_owned());
        Box::pin(async move {
            let mut open = Vec::new();
            let mut closed: Option<Forbidden> = None;
            for address in found.await?.into_iter().take(limits::ADDRESSES_MAX) {
                let judged = match lookup {
                    Lookup::AnyPort => rules.check(address),
                    Lookup::OwnPort => rules.check_own_port(address),
                };
                match judged {
                    Ok(()) => open.push(SocketAddr::new(address, 0)),
                    Err(forbidden) => closed = closed.or(Some(forbidden)),
                }
            }
            match closed {
                Some(forbidden) if open.is_empty() => Err(forbidden.into()),
                _ => Ok(Box::new(open.into_iter()) as dns::Addrs),
            }
        })
    }
}
