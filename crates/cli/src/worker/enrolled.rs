//! A worker with a certificate: it enrols once by a token, keeps key and certificate in a folder, and renews the certificate
//! while it runs.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use interlock_core::time::{Millis, Timestamp};
use interlock_pki::{CertificateFacts, WorkerKey};
use interlock_protocol::enrolment::{Enrol, RenewCertificate, WorkerCertificate, path};
use interlock_server::private_file;
use interlock_worker::{HttpTransport, TransportOptions, WorkerCredential};
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use crate::output::causes::causes;
use crate::output::exit::{Exit, ExitError};
use crate::output::{say_aside, span};

const KEY: &str = "worker.key";
const CERTIFICATE: &str = "worker.pem";
const AUTHORITIES: &str = "ca.pem";
const NAME: &str = "worker.name";
/// How often it is looked whether the certificate is due; a renewal that failed is tried again as often. Of a short-lived
/// certificate four looks fall into the third of its time in which it is due.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(30);
const LOOKS_IN_A_LIFETIME: u32 = 12;

/// The folder that holds who a worker is.
pub struct IdentityFolder(PathBuf);

/// Where the server is, and how it is trusted before the folder says so.
pub struct ServerPlace {
    pub server: String,
    pub ca_pem: Option<Vec<u8>>,
}

impl IdentityFolder {
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    pub fn is_enrolled(&self) -> bool {
        self.0.join(CERTIFICATE).exists()
    }

    /// Uses the token, unless that has happened. The key is written before it is used: if the answer is lost, or the machine
    /// dies, the same key asks again with the same token.
    pub async fn enrol(&self, place: &ServerPlace, token: &str) -> anyhow::Result<()> {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&self.0)
            .with_context(|| format!("cannot make the folder {}", self.0.display()))?;
        let key = self.key()?;
        let credential = WorkerCredential::None;
        let transport = TransportOptions { server: place.server.clone(), credential, ca_pem: place.ca_pem.clone() };
        let body = Enrol { token: token.to_owned(), request: key.signing_request()? };
        let asked = HttpTransport::open(&transport)?.ask(path::ENROL, &body).await;
        let certificate: WorkerCertificate = asked.map_err(|error| {
            ExitError::saying(Exit::NotPermitted, format!("this worker could not enrol at {}: {error}", place.server))
        })?;
        self.keep(&certificate)?;
        say_aside(&format!(
            "interlock: enrolled as {}, until {}; its key and certificate are in {}",
            certificate.identity,
            span::instant(certificate.expires_at),
            self.0.display()
        ));
        Ok(())
    }

    /// How the worker reaches its server, with its certificate.
    pub fn transport(&self, place: &ServerPlace) -> anyhow::Result<TransportOptions> {
        let (key, certificate) = (self.read_key()?, self.read(CERTIFICATE)?);
        let facts = CertificateFacts::of_pem(&certificate).with_context(|| self.0.display().to_string())?;
        if facts.not_after <= span::now() {
            let what = format!(
                "the certificate in {} has ended at {}: enrol this worker anew (`interlock worker token create`, then \
                 --enrol-token-file with the folder removed)",
                self.0.display(),
                span::instant(facts.not_after)
            );
            return Err(ExitError::saying(Exit::NotPermitted, what));
        }
        let pem = Zeroizing::new(format!("{}{}", key.as_str(), certificate.as_str()));
        // Where an authority was named, its successors come with each certificate; else the machine's own ones count.
        let ca_pem = place.ca_pem.as_ref().map(|given| {
            let mut all = given.clone();
            all.push(b'\n');
            all.extend(self.read(AUTHORITIES).map(|text| text.as_bytes().to_vec()).unwrap_or_default());
            all
        });
        Ok(TransportOptions { server: place.server.clone(), credential: WorkerCredential::Certificate(pem), ca_pem })
    }

    /// Renews the certificate when a third of its time is left, until `stop`. The transport goes on with the new one.
    pub async fn keep_renewing(self, place: ServerPlace, transport: HttpTransport, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(self.look_every())).await.is_some() {
            match self.renew_if_due(&place, &transport).await {
                Ok(None) => {}
                Ok(Some(until)) => tracing::info!(until = %span::instant(until), "the worker's certificate is renewed"),
                Err(error) => {
                    tracing::warn!("the worker's certificate could not be renewed; tried again: {}", causes(&error));
                }
            }
        }
    }

    fn look_every(&self) -> Duration {
        let kept = self.read(CERTIFICATE).ok().and_then(|pem| CertificateFacts::of_pem(&pem).ok());
        kept.map_or(LOOK_EVERY_MAX, |facts| look_every(facts.lifetime()))
    }

    async fn renew_if_due(&self, place: &ServerPlace, transport: &HttpTransport) -> anyhow::Result<Option<Timestamp>> {
        let facts = CertificateFacts::of_pem(&self.read(CERTIFICATE)?)?;
        if facts.not_after.since(span::now()) > Millis(facts.lifetime().0 / 3) {
            return Ok(None);
        }
        let body = RenewCertificate { request: self.key()?.signing_request()? };
        let certificate: WorkerCertificate = transport.ask(path::RENEW, &body).await?;
        self.keep(&certificate)?;
        transport.renew(&self.transport(place)?)?;
        Ok(Some(certificate.expires_at))
    }

    fn key(&self) -> anyhow::Result<WorkerKey> {
        if self.0.join(KEY).exists() {
            return Ok(WorkerKey::of_pem(&self.read_key()?)?);
        }
        let key = WorkerKey::generate()?;
        self.write(KEY, &key.to_pem(), 0o600)?;
        Ok(key)
    }

    /// The name that the worker has enrolled under, where its server has told it.
    pub fn name(&self) -> Option<String> {
        let name = self.read(NAME).ok()?.trim().to_owned();
        (!name.is_empty()).then_some(name)
    }

    /// The certificate last: with it the worker has enrolled.
    fn keep(&self, certificate: &WorkerCertificate) -> anyhow::Result<()> {
        self.write(AUTHORITIES, &certificate.authorities, 0o644)?;
        if let Some(name) = &certificate.name {
            self.write(NAME, name, 0o644)?;
        }
        self.write(CERTIFICATE, &certificate.certificate, 0o644)
    }

    /// The worker has written it for itself alone.
    fn read_key(&self) -> anyhow::Result<Zeroizing<String>> {
        let path = self.0.join(KEY);
        let read = private_file::close_to_group(&path).and_then(|()| private_file::read(&path));
        Ok(Zeroizing::new(read.with_context(|| format!("cannot read {}", path.display()))?))
    }

    fn read(&self, file: &str) -> anyhow::Result<Zeroizing<String>> {
        let path = self.0.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Zeroizing::new(text))
    }

    fn write(&self, file: &str, text: &str, mode: u32) -> anyhow::Result<()> {
        let (path, fresh) = (self.0.join(file), self.0.join(format!(".{file}.{}", std::process::id())));
        let written = (|| {
            let mut out =
                std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&fresh)?;
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            std::fs::rename(&fresh, &path)
        })();
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

/// How often it is looked whether a certificate that was made for so long is due.
fn look_every(lifetime: Millis) -> Duration {
    (lifetime.as_duration() / LOOKS_IN_A_LIFETIME).clamp(Duration::from_secs(1), LOOK_EVERY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_protocol::enrolment::WorkerTerms;

    #[test]
    fn a_short_lived_certificate_is_looked_at_more_often() {
        for (lifetime, seconds) in [(Millis::from_hours(24), 30), (Millis::from_secs(60), 5), (Millis(0), 1)] {
            assert_eq!(look_every(lifetime), Duration::from_secs(seconds), "{lifetime:?}");
        }
    }

    #[test]
    fn a_worker_is_called_as_it_has_enrolled() {
        let folder = std::env::temp_dir().join(format!("interlock-enrolled-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let identity = IdentityFolder::new(&folder);
        let certificate = WorkerCertificate {
            identity: "wid_019a8c2e4b7a7f10a1b2c3d4e5f60001".parse().unwrap(),
            name: None,
            certificate: "c".to_owned(),
            authorities: "a".to_owned(),
            expires_at: Timestamp(0),
            terms: WorkerTerms::default(),
        };
        identity.keep(&certificate).unwrap();
        assert_eq!(identity.name(), None, "an earlier server does not tell it");
        identity.keep(&WorkerCertificate { name: Some("build-7".to_owned()), ..certificate }).unwrap();
        assert_eq!(identity.name().as_deref(), Some("build-7"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_workers_key_is_used_where_nobody_else_could_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("interlock-enrolled-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let identity = IdentityFolder::new(&folder);
        identity.key().unwrap();
        let made = identity.key().unwrap().to_pem();
        let path = folder.join(KEY);
        let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        // As a volume with an `fsGroup` gives it to the pod's group.
        set(0o660);
        assert_eq!(identity.key().unwrap().to_pem(), made);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        set(0o644);
        let refused = format!("{:#}", identity.key().err().unwrap());
        assert!(refused.contains("its mode is 644") && refused.contains("chmod 600"), "{refused}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
