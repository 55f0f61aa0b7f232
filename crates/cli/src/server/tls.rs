//! HTTPS on the listener, as flags: which certificate, and where plain HTTP is enough.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use interlock_core::time::Millis;
use interlock_pki::WORKER_LIFETIME;
use interlock_server::tls::{TlsOptions, WorkerCaFiles};

use crate::output::exit::{Exit, ExitError};

/// In the data folder: what `interlock worker ca init` makes, and a server takes by itself.
pub const FOLDER: &str = "tls";
pub const CERTIFICATE: &str = "server.pem";
pub const KEY: &str = "server.key";
pub const AUTHORITY: &str = "ca.pem";
pub const AUTHORITY_KEY: &str = "ca.key";

#[derive(Args)]
pub struct TlsArgs {
    /// The server's certificate (PEM), with those between it and its authority: the server then speaks HTTPS. Read again
    /// when it changes. By default `tls/server.pem` in the data folder, if `interlock worker ca init` has made it.
    #[arg(long, env = "INTERLOCK_TLS_CERT", value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM).
    #[arg(long, env = "INTERLOCK_TLS_KEY", value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// The authority (PEM) that signs the certificates of workers; by default `tls/ca.pem` in the data folder, if it is there.
    #[arg(long, env = "INTERLOCK_TLS_WORKER_CA", value_name = "FILE")]
    tls_worker_ca: Option<PathBuf>,
    /// The authority's private key (PEM).
    #[arg(long, env = "INTERLOCK_TLS_WORKER_CA_KEY", value_name = "FILE")]
    tls_worker_ca_key: Option<PathBuf>,
    /// How long the certificate of a worker is good, in seconds; the worker renews it when a third of that is left. A worker that
    /// was stopped for longer enrols anew, and so does one whose clock differs from the server's by more than that third.
    #[arg(long, env = "INTERLOCK_TLS_WORKER_CERT_SECONDS", value_name = "SECONDS", default_value_t = WORKER_LIFETIME.0 / 1_000, value_parser = clap::value_parser!(u64).range(15..=2_592_000))]
    tls_worker_cert_seconds: u64,
    /// Speak plain HTTP also where other machines can reach it, because a proxy in front speaks HTTPS. Naming
    /// --trusted-proxies says the same.
    #[arg(long, env = "INTERLOCK_BEHIND_PROXY")]
    behind_proxy: bool,
}

impl TlsArgs {
    /// The files, if the server is to speak HTTPS.
    pub fn files(&self, data: &Path) -> anyhow::Result<Option<TlsOptions>> {
        let folder = data.join(FOLDER);
        let given = pair(("--tls-cert", &self.tls_cert), ("--tls-key", &self.tls_key))?;
        let found =
            || Some((folder.join(CERTIFICATE), folder.join(KEY))).filter(|(certificate, _)| certificate.exists());
        let files = match given {
            None if self.behind_proxy => None,
            given => given.or_else(found),
        };
        let ca_given =
            pair(("--tls-worker-ca", &self.tls_worker_ca), ("--tls-worker-ca-key", &self.tls_worker_ca_key))?;
        let Some((certificate, key)) = files else {
            if ca_given.is_some() {
                let what = "--tls-worker-ca needs HTTPS: workers show their certificates in its handshake; give --tls-cert \
                            and --tls-key as well";
                return Err(ExitError::saying(Exit::Config, what));
            }
            return Ok(None);
        };
        let found = || {
            Some((folder.join(AUTHORITY), folder.join(AUTHORITY_KEY))).filter(|(ca, key)| ca.exists() && key.exists())
        };
        let worker_ca = ca_given.or_else(found).map(|(certificates, key)| WorkerCaFiles { certificates, key });
        let worker_lifetime = Millis::from_secs(self.tls_worker_cert_seconds);
        Ok(Some(TlsOptions { certificate, key, worker_ca, worker_lifetime }))
    }

    /// What clients on this machine trust the server by: the private authority, where that has signed the certificate.
    pub fn local_authority(&self, data: &Path) -> Option<PathBuf> {
        let authority = data.join(FOLDER).join(AUTHORITY);
        (self.tls_cert.is_none() && authority.exists()).then(|| std::path::absolute(&authority).unwrap_or(authority))
    }

    /// Refuses to be reached from other machines without encryption, unless a flag says that a proxy does that.
    pub fn check(&self, listen: SocketAddr, data: &Path, proxies: usize) -> anyhow::Result<()> {
        if listen.ip().is_loopback() || self.behind_proxy || proxies > 0 || self.files(data)?.is_some() {
            return Ok(());
        }
        let what = format!(
            "--listen is {listen}: other machines could reach it, and passwords and keys would cross the network in the \
             clear. Give it a certificate (`interlock worker ca init --name HOST` makes one, or --tls-cert and --tls-key \
             name yours), say --behind-proxy where a proxy speaks HTTPS in front of it, or listen on 127.0.0.1:{}",
            listen.port()
        );
        Err(ExitError::saying(Exit::Config, what))
    }
}

type NamedPath<'a> = (&'static str, &'a Option<PathBuf>);

/// Two files that belong together.
fn pair((flag, one): NamedPath<'_>, (other_flag, other): NamedPath<'_>) -> anyhow::Result<Option<(PathBuf, PathBuf)>> {
    match (one, other) {
        (Some(one), Some(other)) => Ok(Some((one.clone(), other.clone()))),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(ExitError::saying(Exit::Config, format!("{flag} needs {other_flag}: they belong together")))
        }
        (None, Some(_)) => {
            Err(ExitError::saying(Exit::Config, format!("{other_flag} needs {flag}: they belong together")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> TlsArgs {
        let none = || None;
        TlsArgs {
            tls_cert: none(),
            tls_key: none(),
            tls_worker_ca: none(),
            tls_worker_ca_key: none(),
            tls_worker_cert_seconds: 86_400,
            behind_proxy: false,
        }
    }

    #[test]
    fn plain_http_is_for_loopback_and_behind_a_proxy() {
        let nowhere = Path::new("/nonexistent");
        let check = |args: &TlsArgs, listen: &str, proxies| args.check(listen.parse().unwrap(), nowhere, proxies);
        for listen in ["0.0.0.0:8420", "[::]:8420", "10.0.0.7:1"] {
            let error = check(&args(), listen, 0).unwrap_err().to_string();
            assert!(error.contains("--behind-proxy") && error.contains("worker ca init"), "{error}");
            assert!(check(&TlsArgs { behind_proxy: true, ..args() }, listen, 0).is_ok());
            assert!(check(&args(), listen, 1).is_ok(), "a trusted proxy is a proxy");
            let named = TlsArgs { tls_cert: Some("a".into()), tls_key: Some("b".into()), ..args() };
            assert!(check(&named, listen, 0).is_ok());
        }
        for listen in ["127.0.0.1:8420", "[::1]:8420"] {
            assert!(check(&args(), listen, 0).is_ok(), "{listen}");
        }
    }

    #[test]
    fn files_that_belong_together_are_named_together() {
        let nowhere = Path::new("/nonexistent");
        assert_eq!(args().files(nowhere).unwrap(), None);
        let half = TlsArgs { tls_cert: Some("a".into()), ..args() };
        assert!(half.files(nowhere).unwrap_err().to_string().contains("--tls-cert needs --tls-key"));
        let authority_alone =
            TlsArgs { tls_worker_ca: Some("a".into()), tls_worker_ca_key: Some("b".into()), ..args() };
        assert!(authority_alone.files(nowhere).unwrap_err().to_string().contains("needs HTTPS"));
    }
}
