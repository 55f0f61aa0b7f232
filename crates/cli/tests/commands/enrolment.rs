//! A worker that enrols, on an installation with an authority of its own: from `worker ca init` until it is revoked. In
//! between the authority is replaced, and neither the server nor the worker is restarted for it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use interlock_pki::CertificateFacts;

use crate::broker::KilledOnDrop;
use crate::harness::{Output, Up, eventually};

/// How long a worker's certificate is good here: it is renewed after two thirds of that.
const LIFETIME_SECONDS: &str = "20";
const WORKFLOW: &str = "name: e\nsteps: [{ id: a, task: echo, with: { x: 1 } }]\n";
const SLOW_WORKFLOW: &str = "name: s\nsteps: [{ id: a, task: slow }]\n";

/// Where things are, on the server's machine and on the worker's.
struct Harness {
    up: Up,
    data: String,
    /// The worker's copy of the authority's certificate, as it was in the beginning.
    trusted: String,
    token: String,
}

impl Harness {
    fn start() -> Self {
        let folder = Up::new_folder();
        let path = |name: &str| folder.join(name).display().to_string();
        let (data, trusted, token) = (path("data"), path("copied.pem"), path("build-7.token"));
        let made = Up::run_in(&folder, &["worker", "ca", "init", "--data", &data]);
        assert_eq!(made.code, 0, "{made:?}");
        std::fs::copy(folder.join("data/tls/ca.pem"), &trusted).unwrap();
        // The server finds what it needs for HTTPS in its data folder.
        let up = Up::start_in(folder, &["--no-demo", "--tls-worker-cert-seconds", LIFETIME_SECONDS]);
        assert!(up.server().starts_with("https://127.0.0.1:"), "{}", up.server());
        Self { up, data, trusted, token }
    }

    fn ca(&self, verb: &str) -> Output {
        let done = self.up.run(&["worker", "ca", verb, "--data", &self.data, "-o", "json"]);
        assert_eq!(done.code, 0, "{verb}: {done:?}");
        done
    }

    /// The certificates in a file of the server, or of the worker's identity.
    fn certificates(&self, file: &str) -> Vec<String> {
        const END: &str = "-----END CERTIFICATE-----\n";
        let text = std::fs::read_to_string(self.up.path(file)).unwrap();
        text.split_inclusive(END).filter(|pem| pem.contains("BEGIN CERTIFICATE")).map(str::to_owned).collect()
    }

    fn facts(&self, file: &str) -> CertificateFacts {
        CertificateFacts::of_pem(&self.certificates(file)[0]).unwrap()
    }

    /// The arguments of a worker that keeps its identity in this folder.
    fn worker(&self, identity: &str, more: &[&str]) -> Vec<String> {
        let (server, identity) = (self.up.server(), self.up.path(identity).display().to_string());
        let all = ["worker", "--server", &server, "--ca", &self.trusted, "--identity", &identity, "--task", "echo=cat"];
        [&all, more].concat().into_iter().map(str::to_owned).collect()
    }

    fn run_worker(&self, identity: &str, more: &[&str]) -> Output {
        let arguments = self.worker(identity, more);
        self.up.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A one-time token, in its file.
    fn invite(&self) {
        let created =
            self.up.run(&["worker", "token", "create", "build-7", "--environment", "none", "--file", &self.token]);
        assert_eq!(created.code, 0, "{created:?}");
    }

    /// A worker that has connected, and the file with what it says.
    fn started(&self, more: &[&str], log: &str) -> (KilledOnDrop, PathBuf) {
        let log = self.up.path(log);
        let mut command = self.up.command();
        command.args(self.worker("identity", more)).stdout(Stdio::null());
        let worker = KilledOnDrop(command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap());
        assert!(eventually(|| said(&log).contains("connected to https://")), "{}", said(&log));
        (worker, log)
    }

    /// The worker does a step.
    fn works(&self, log: &Path) {
        let done = self.up.run(&["run", "start", "e", "--wait"]);
        assert_eq!(done.code, 0, "{done:?} {}", said(log));
    }
}

fn said(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap()
}

#[test]
fn an_enrolled_worker_goes_on_while_the_authority_is_replaced_until_it_is_revoked() {
    let harness = Harness::start();
    let up = &harness.up;
    assert_eq!(up.run(&["workflow", "apply", &up.file("e.yaml", WORKFLOW)]).code, 0);
    harness.invite();
    let token = harness.token.as_str();
    let (mut worker, log) = harness.started(&["--enrol-token-file", token], "worker.log");
    assert!(said(&log).contains("enrolled as wid_"), "{}", said(&log));
    harness.works(&log);
    let first = harness.facts("data/tls/ca.pem").subject;
    assert_eq!(harness.facts("identity/worker.pem").issuer, first);

    // The next authority: the server signs with it, and the worker gets it with its next certificate.
    harness.ca("rotate");
    let next = harness.facts("data/tls/ca.pem").subject;
    assert_ne!(next, first);
    let renewed = || harness.facts("identity/worker.pem").issuer == next;
    assert!(eventually(renewed), "{}", said(&log));
    assert_eq!(harness.certificates("identity/ca.pem").len(), 2, "it trusts both");
    harness.works(&log);

    // The first one is in use as long as the server shows a certificate by it.
    let retire = |more: &[&str]| up.run(&[&["worker", "ca", "retire", "--data", &harness.data], more].concat());
    let refused = retire(&[]);
    assert!(refused.code == 65 && refused.err.contains("run `interlock worker ca server` first"), "{refused:?}");

    // The server shows a certificate of the next authority, and nothing trusts the first one any more.
    let signed = harness.ca("server");
    assert!(signed.err.contains(&next) && signed.err.contains("cannot connect until"), "{signed:?}");
    assert!(!harness.ca("server").err.contains("cannot connect until"), "the authority is the same");
    let only_next = up.file("next.pem", &harness.certificates("data/tls/ca.pem")[0]);
    let asks = format!("curl -s --cacert {only_next} {}/healthz", up.server());
    assert!(eventually(|| up.shell(&asks).code == 0), "the server goes on with its old certificate");
    // Where nobody says who has a certificate of before, it stays.
    let refused = retire(&["--server", "https://127.0.0.1:1"]);
    assert!(refused.code == 65 && refused.err.contains("--force"), "{refused:?}");
    // Just after the change the worker's own could still be by the first one; the next renewal cannot.
    assert!(eventually(|| retire(&[]).code == 0), "{:?}", retire(&[]));
    let shown = harness.ca("show").json();
    let of = |field: &str| shown.as_array().unwrap().iter().map(|one| one[field].clone()).collect::<Vec<_>>();
    assert_eq!(of("issuer"), [next.clone(), next.clone()], "{shown}");
    let trusts_one = || harness.certificates("identity/ca.pem").len() == 1;
    assert!(eventually(trusts_one), "{}", said(&log));
    harness.works(&log);

    // What the folder holds is enough for a start, also by the next authority alone.
    assert_eq!(up.shell(&format!("kill {}", worker.0.id())).code, 0);
    assert!(worker.0.wait().unwrap().success(), "{}", said(&log));
    let (_worker, log) = harness.started(&[], "again.log");
    harness.works(&log);

    let revoked = up.run(&["worker", "token", "revoke", "build-7", "--yes"]);
    assert_eq!(revoked.code, 0, "{revoked:?}");
    let again = up.run(&["worker", "token", "revoke", "build-7", "--yes"]);
    assert!(again.code == 66 && again.err.contains("`build-7` is revoked already"), "{again:?}");
    let refused = harness.run_worker("identity", &[]);
    assert!(refused.code == 77 && refused.err.contains("`interlock worker token list` says so"), "{refused:?}");
    assert!(up.run(&["worker", "token", "list"]).out.contains("revoked"));
    assert!(eventually(|| said(&log).contains("the server refuses to give work")), "{}", said(&log));
    let spent = harness.run_worker("another", &["--enrol-token-file", token]);
    assert!(spent.code == 77 && spent.err.contains("could not enrol"), "{spent:?}");
}

#[test]
fn an_authority_is_not_retired_while_a_worker_has_a_certificate_by_it() {
    let harness = Harness::start();
    let up = &harness.up;
    harness.invite();
    let (mut worker, log) = harness.started(&["--enrol-token-file", &harness.token], "worker.log");
    // It is stopped before it can get another certificate, and the one that it has is good for a while yet.
    assert_eq!(up.shell(&format!("kill -9 {}", worker.0.id())).code, 0);
    assert!(!worker.0.wait().unwrap().success(), "{}", said(&log));
    harness.ca("rotate");
    harness.ca("server");
    let retire = |more: &[&str]| up.run(&[&["worker", "ca", "retire", "--data", &harness.data], more].concat());
    // Until the server has taken the next authority it cannot be asked.
    let names_it = || matches!(retire(&[]), refused if refused.code == 65 && refused.err.contains("`build-7` (wid_"));
    assert!(eventually(names_it), "{:?}", retire(&[]));
    // What another installation says of its workers is no answer.
    let other = Up::start(&["--no-demo"]);
    let key = other.path("data/local.key").display().to_string();
    let refused = retire(&["--server", &other.server(), "--api-key-file", &key]);
    assert!(refused.code == 65 && refused.err.contains("is not the one of this data folder"), "{refused:?}");
    assert_eq!(harness.certificates("data/tls/ca.pem").len(), 2);
    assert_eq!(retire(&["--force"]).code, 0);
    assert_eq!(harness.certificates("data/tls/ca.pem").len(), 1);
}

#[test]
fn a_worker_that_drains_goes_on_renewing_its_certificate() {
    let harness = Harness::start();
    let up = &harness.up;
    assert_eq!(up.run(&["workflow", "apply", &up.file("s.yaml", SLOW_WORKFLOW)]).code, 0);
    harness.invite();
    let (begun, enough) = (up.path("begun"), up.path("enough"));
    let waits = format!("touch {}\nwhile [ ! -e {} ]; do sleep 0.1; done\n", begun.display(), enough.display());
    let slow = up.file("slow", &format!("#!/bin/sh\n{waits}echo '{{}}'\n"));
    assert_eq!(up.shell(&format!("chmod +x {slow}")).code, 0);
    let task = format!("slow={slow}");
    let (mut worker, log) = harness.started(&["--enrol-token-file", &harness.token, "--task", &task], "worker.log");
    let started = up.run(&["run", "start", "s"]);
    assert_eq!(started.code, 0, "{started:?}");
    assert!(eventually(|| begun.exists()), "{}", said(&log));

    assert_eq!(up.shell(&format!("kill {}", worker.0.id())).code, 0);
    assert!(eventually(|| said(&log).contains("draining")), "{}", said(&log));
    let before = harness.facts("identity/worker.pem").serial;
    assert!(eventually(|| harness.facts("identity/worker.pem").serial != before), "{}", said(&log));
    std::fs::write(&enough, "").unwrap();
    assert!(worker.0.wait().unwrap().success(), "{}", said(&log));
    let state = || up.run(&["run", "show", "latest", "-o", "json"]).json()["state"].clone();
    assert!(eventually(|| state() == "succeeded"), "{} {}", state(), said(&log));
}
