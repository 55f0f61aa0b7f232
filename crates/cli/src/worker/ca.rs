//! `interlock worker ca`: the private certificate authority of an installation, in the data folder. It signs the server's
//! certificate, and those of the workers that enrol.

use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use interlock_core::time::{Millis, Timestamp};
use interlock_pki::{Authority, CertificateFacts};
use interlock_protocol::enrolment::{WorkerIdentityState, WorkerIdentityView};
use interlock_server::private_file;
use serde::Serialize;

use super::token;
use crate::client::ClientArgs;
use crate::config::data_folder;
use crate::output::exit::{Exit, ExitError};
use crate::output::{Printer, say_aside, span};
use crate::server::tls::{AUTHORITY, AUTHORITY_KEY, CERTIFICATE, FOLDER, KEY};

/// Within this a running server signs with a new authority: it looks at its files every two seconds.
const TAKEN_WITHIN: Millis = Millis::from_secs(5);
/// Workers that are named in a refusal.
const NAMED_MAX: usize = 20;

#[derive(Args)]
pub struct CaArgs {
    #[command(flatten)]
    client: ClientArgs,
    #[command(subcommand)]
    verb: CaVerb,
}

#[derive(Subcommand)]
enum CaVerb {
    /// Make an authority, and a certificate for the server, in the folder `tls` of the data folder. A server that is started
    /// on that data folder speaks HTTPS, and workers can enrol.
    Init(NamedArgs),
    /// Sign a new certificate for the server: it has other names now, or the old one ends soon. A running server takes it
    /// within seconds.
    Server(NamedArgs),
    /// Make the next authority. Certificates of the one before stay good; new ones of workers come from the new one, and a
    /// running server takes it within seconds. Once each worker has renewed its certificate (within a day, or the server's
    /// --tls-worker-cert-seconds), it trusts the new one: then run `ca server`, and `ca retire`.
    Rotate(AuthorityArgs),
    /// Stop trusting the authorities before the current one. Refused while the server shows a certificate of theirs, or a worker of
    /// the tenant may have one, which the server is asked for.
    Retire(RetireArgs),
    /// Show the authorities, and the server's certificate.
    Show(AuthorityArgs),
}

#[derive(Args)]
struct AuthorityArgs {
    /// The data folder of the server.
    #[arg(long, env = "INTERLOCK_DATA", default_value = "interlock-data")]
    data: PathBuf,
}

#[derive(Args)]
struct NamedArgs {
    #[command(flatten)]
    place: AuthorityArgs,
    /// A name or an address by which the server is reached, as in `interlock.example.org`; may be given several times. This
    /// machine's name and `localhost` are added.
    #[arg(long = "name", value_name = "HOST", value_delimiter = ',')]
    names: Vec<String>,
}

#[derive(Args)]
struct RetireArgs {
    #[command(flatten)]
    place: AuthorityArgs,
    /// Do it although such certificates are in use, or nobody can say so: workers that have one must enrol anew.
    #[arg(long)]
    force: bool,
}

/// The four files.
struct CaFolder(PathBuf);

/// One certificate, as it is shown.
#[derive(Serialize)]
struct ShownCertificate {
    file: String,
    subject: String,
    /// The authority that has signed it.
    issuer: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    serial: String,
    expires_at: Timestamp,
}

pub async fn run(args: CaArgs) -> anyhow::Result<()> {
    let CaArgs { client, verb } = args;
    let printer = client.output.printer();
    match verb {
        CaVerb::Init(named) => init(printer, &named),
        CaVerb::Server(named) => {
            let folder = CaFolder::of(&named.place);
            let authority = folder.authority()?;
            let before = folder.issuer_of_server();
            folder.sign_server(&authority, &named.names)?;
            folder.warn_of_new_issuer(before.as_deref());
            printer.note(&format!(
                "Wrote {}; a running server takes it within seconds.",
                folder.path(CERTIFICATE).display()
            ));
            Ok(())
        }
        CaVerb::Rotate(place) => rotate(printer, &CaFolder::of(&place)),
        CaVerb::Retire(retired) => retire(&client, printer, &retired).await,
        CaVerb::Show(place) => show(printer, &CaFolder::of(&place)),
    }
}

fn init(printer: Printer, named: &NamedArgs) -> anyhow::Result<()> {
    let folder = CaFolder::of(&named.place);
    if folder.path(AUTHORITY).exists() || folder.path(AUTHORITY_KEY).exists() {
        let what = format!(
            "there is an authority in {} already: `interlock worker ca server` signs a new certificate for the server, \
             `interlock worker ca rotate` makes the next authority",
            folder.0.display()
        );
        return Err(ExitError::saying(Exit::Refused, what));
    }
    data_folder::make(&named.place.data)?;
    std::fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(&folder.0)
        .with_context(|| format!("cannot make the folder {}", folder.0.display()))?;
    let made = Authority::create(&authority_name(), span::now())?;
    folder.sign_server(&Authority::load(&made.certificate, &made.key)?, &named.names)?;
    folder.write(AUTHORITY_KEY, &made.key, 0o600)?;
    // The last file that makes it an authority: what is cut off before can be done again.
    folder.write(AUTHORITY, &made.certificate, 0o644)?;
    printer.note(&format!(
        "Made an authority and a certificate for the server in {}.\n\
         Start the server: interlock server --data {} --listen 0.0.0.0:8420\n\
         Others trust it by {}: copy that file (no other one), and give it with --ca or INTERLOCK_CA.",
        folder.0.display(),
        named.place.data.display(),
        folder.path(AUTHORITY).display()
    ));
    Ok(())
}

fn rotate(printer: Printer, folder: &CaFolder) -> anyhow::Result<()> {
    folder.authority()?;
    let before = folder.read(AUTHORITY)?;
    let made = Authority::create(&authority_name(), span::now())?;
    // Trusted first, and used only once its key is there.
    folder.write(AUTHORITY, &format!("{}{before}", made.certificate), 0o644)?;
    folder.write(AUTHORITY_KEY, &made.key, 0o600)?;
    printer.note(&format!(
        "Made the next authority. Workers get it with their next certificate, within a day (or the server's \
         --tls-worker-cert-seconds). Clients that trust the server by a copy of {} need a fresh copy before `interlock worker \
         ca server` is run.",
        folder.path(AUTHORITY).display()
    ));
    Ok(())
}

async fn retire(client: &ClientArgs, printer: Printer, retired: &RetireArgs) -> anyhow::Result<()> {
    let folder = CaFolder::of(&retired.place);
    folder.authority()?;
    let trusted = folder.read(AUTHORITY)?;
    let named = || folder.path(AUTHORITY).display().to_string();
    let current = CertificateFacts::of_pem(&trusted).with_context(named)?;
    let mut earlier = Vec::new();
    for pem in certificates(&trusted).iter().skip(1) {
        earlier.push(CertificateFacts::of_pem(pem).with_context(named)?);
    }
    if !earlier.is_empty() && !retired.force {
        folder.check_server(&earlier)?;
        check_workers(client, &current, &earlier).await?;
    }
    folder.write(AUTHORITY, &first_certificate(&trusted), 0o644)?;
    printer.note("Only the current authority is trusted now.");
    Ok(())
}

/// Refuses if a worker may have a certificate by an earlier authority: it would be refused from now on, and have to enrol anew.
async fn check_workers(
    client: &ClientArgs,
    current: &CertificateFacts,
    earlier: &[CertificateFacts],
) -> anyhow::Result<()> {
    let refused = |what: String| ExitError::saying(Exit::Refused, what);
    let asked = async {
        let (client, _) = client.open()?;
        Ok::<_, anyhow::Error>((token::all(&client).await?, client.target().server.clone()))
    };
    let (workers, server) = asked.await.map_err(|error| {
        refused(format!(
            "the server cannot be asked which workers have a certificate by an earlier authority: {error:#}\n\
             Name the server (--server) and an admin's key. With --force nobody is asked, and workers that have one must enrol \
             anew."
        ))
    })?;
    if let Some(serial) = &workers.authority
        && earlier.iter().any(|authority| authority.serial == *serial)
    {
        return Err(refused(format!(
            "the server at {server} still signs by an earlier authority: it takes the current one within seconds, where the \
             files of this data folder are its own. Try again then."
        )));
    }
    // Another installation's workers say nothing of this one's.
    if workers.authority.as_deref() != Some(current.serial.as_str()) {
        let signs = workers.authority.map_or_else(
            || "does not say that it signs certificates of workers".to_owned(),
            |serial| format!("signs by the authority with the serial number {serial}"),
        );
        return Err(refused(format!(
            "the server at {server} is not the one of this data folder: it {signs}, and the current authority here is {}.\n\
             Name the server that uses this folder, by its HTTPS address (--server). With --force nobody is asked, and workers \
             that have a certificate by an earlier authority must enrol anew.",
            current.serial
        )));
    }
    let signed_by_it_from = current.made_at() + TAKEN_WITHIN;
    let may_be_earlier = |worker: &&WorkerIdentityView| {
        let got_at = worker.renewed_at.or(worker.enrolled_at);
        worker.state == WorkerIdentityState::Enrolled && got_at.is_none_or(|at| at < signed_by_it_from)
    };
    let found: Vec<&WorkerIdentityView> = workers.identities.iter().filter(may_be_earlier).collect();
    if found.is_empty() {
        return Ok(());
    }
    let named = found.iter().take(NAMED_MAX).map(|worker| format!("`{}` ({})", worker.name, worker.identity));
    let mut named: Vec<String> = named.collect();
    if found.len() > NAMED_MAX {
        named.push(format!("{} more", found.len() - NAMED_MAX));
    }
    Err(refused(format!(
        "these workers may have a certificate by an earlier authority, and would have to enrol anew: {}.\n\
         A worker that runs renews its certificate when a third of its time is left, and one that does not run loses it in \
         the end: try again then. `interlock worker token revoke` takes out one that is gone; --force retires the authority \
         now.",
        named.join(", ")
    )))
}

fn show(printer: Printer, folder: &CaFolder) -> anyhow::Result<()> {
    let mut shown = Vec::new();
    for file in [AUTHORITY, CERTIFICATE] {
        let text = folder.read(file)?;
        for pem in certificates(&text) {
            let facts = CertificateFacts::of_pem(&pem).with_context(|| folder.path(file).display().to_string())?;
            shown.push(ShownCertificate {
                file: folder.path(file).display().to_string(),
                subject: facts.subject,
                issuer: facts.issuer,
                names: facts.dns_names,
                serial: facts.serial,
                expires_at: facts.not_after,
            });
        }
    }
    printer.show(&shown, |_| {
        let mut text = String::new();
        for certificate in &shown {
            let names = if certificate.names.is_empty() {
                String::new()
            } else {
                format!(", for {}", certificate.names.join(", "))
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{}\n  {}{names}\n  signed by {}\n  until {}, serial {}",
                certificate.file,
                certificate.subject,
                certificate.issuer,
                span::instant(certificate.expires_at),
                certificate.serial
            );
        }
        text
    })
}

impl CaFolder {
    fn of(place: &AuthorityArgs) -> Self {
        Self(place.data.join(FOLDER))
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = self.path(file);
        std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))
    }

    fn authority(&self) -> anyhow::Result<Authority> {
        let certificates = self.read(AUTHORITY)?;
        let path = self.path(AUTHORITY_KEY);
        let key = private_file::read(&path).map_err(|error| unreadable(&path, &error))?;
        let key = zeroize::Zeroizing::new(key);
        Authority::load(&certificates, &key).with_context(|| self.0.display().to_string())
    }

    fn sign_server(&self, authority: &Authority, names: &[String]) -> anyhow::Result<()> {
        let mut all = names.to_vec();
        all.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        all.extend(machine_name());
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|name| seen.insert(name.clone()));
        let issued = authority
            .issue_server(&all, span::now())
            .map_err(|error| ExitError::saying(Exit::Usage, error.to_string()))?;
        self.write(KEY, &issued.key, 0o600)?;
        self.write(CERTIFICATE, &issued.certificate, 0o644)
    }

    /// The authority that has signed the server's certificate, where there is one.
    fn issuer_of_server(&self) -> Option<String> {
        Some(CertificateFacts::of_pem(&self.read(CERTIFICATE).ok()?).ok()?.issuer)
    }

    /// Tells who must trust another authority from now on: nobody here knows who has a copy of the file of before.
    fn warn_of_new_issuer(&self, before: Option<&str>) {
        let now = self.issuer_of_server();
        if let (Some(before), Some(now)) = (before, &now)
            && before != now
        {
            say_aside(&format!(
                "interlock: the server's certificate is signed by another authority now ({now}; it was {before}). Whoever trusts the \
                 server by a copy of {} that was made before `interlock worker ca rotate` (--ca, INTERLOCK_CA, --identity of a \
                 worker that has not renewed its certificate since) cannot connect until that copy is replaced: do that now.",
                self.path(AUTHORITY).display()
            ));
        }
    }

    /// Refuses while the server shows a certificate by one of the authorities: what trusts the current one alone could not reach it.
    fn check_server(&self, earlier: &[CertificateFacts]) -> anyhow::Result<()> {
        let path = self.path(CERTIFICATE);
        if !path.exists() {
            return Ok(());
        }
        let shown = CertificateFacts::of_pem(&self.read(CERTIFICATE)?).with_context(|| path.display().to_string())?;
        if earlier.iter().all(|authority| authority.subject != shown.issuer) {
            return Ok(());
        }
        let what = format!(
            "the server's certificate in {} is signed by an earlier authority ({}), and nothing would trust it any more: run \
             `interlock worker ca server` first, or give --force",
            path.display(),
            shown.issuer
        );
        Err(ExitError::saying(Exit::Refused, what))
    }

    /// Whole or not at all: a server may read it right now.
    fn write(&self, file: &str, text: &str, mode: u32) -> anyhow::Result<()> {
        let (path, fresh) = (self.path(file), self.path(&format!(".{file}.{}", std::process::id())));
        let written = (|| {
            let mut out =
                std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&fresh)?;
            out.write_all(text.as_bytes())?;
            out.sync_all()?;
            std::fs::rename(&fresh, &path)
        })();
        if written.is_err() {
            // A half-written file is of no use.
            let _ = std::fs::remove_file(&fresh);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        std::io::ErrorKind::NotFound => "; `interlock worker ca init` makes an authority",
        _ => "",
    };
    ExitError::saying(Exit::Config, format!("cannot read {}: {error}{hint}", path.display()))
}

/// Two authorities of one installation have different names, so that a certificate says whose it is.
fn authority_name() -> String {
    format!("Interlock private CA {:08x}", fastrand::u32(..))
}

fn machine_name() -> Option<String> {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_str().ok()?.to_ascii_lowercase();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    (!name.is_empty() && name.bytes().all(plain) && name.split('.').all(|label| !label.is_empty())).then_some(name)
}

/// Each certificate of a file, in PEM.
fn certificates(text: &str) -> Vec<String> {
    const END: &str = "-----END CERTIFICATE-----\n";
    text.split_inclusive(END).filter(|pem| pem.contains("BEGIN CERTIFICATE")).map(str::to_owned).collect()
}

fn first_certificate(text: &str) -> String {
    certificates(text).into_iter().next().unwrap_or_default()
}
