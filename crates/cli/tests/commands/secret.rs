//! Secrets in an encrypted file: stored from standard input, used by a worker, and shown by no command.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use crate::harness::Up;

const VALUE: &str = "s3cr3t-0123456789";

/// A worker that ends with its test.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answers one request, and gives its head back.
fn target() -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        while !head.ends_with("\r\n\r\n") {
            assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").unwrap();
        head
    });
    (url, answering)
}

#[test]
fn a_worker_takes_secrets_from_an_encrypted_file() {
    let up = Up::start(&["--no-demo"]);
    let [file, key, data] = ["s.age", "s.key", "data"].map(|name| up.path(name).display().to_string());
    let secret = |verb: &[&str], input: &str| {
        up.run_fed(&[&["secret"], verb, &["--file", &file, "--identity-file", &key]].concat(), input)
    };
    assert_eq!(secret(&["list"], "").code, 66, "there is no file yet");
    assert_eq!(secret(&["init"], "").code, 0);
    assert_eq!(secret(&["init"], "").code, 78, "nothing is overwritten");
    let stored = secret(&["set", "SHOP_TOKEN"], &format!("{VALUE}\n"));
    assert!(stored.code == 0 && stored.out.contains("SHOP_TOKEN is stored"), "{stored:?}");
    assert_eq!(secret(&["set", "EMPTY"], "\n").code, 2);
    assert_eq!(secret(&["set", "../x"], VALUE).code, 2);
    let short = secret(&["set", "OTHER"], "abc\n");
    assert!(short.code == 2 && short.err.contains("fewer than 4 bytes"), "{short:?}");
    assert_eq!(secret(&["set", "OTHER"], "abcd").code, 0);
    assert_eq!(secret(&["remove", "OTHER"], "").code, 0);
    assert_eq!(secret(&["remove", "OTHER"], "").code, 66);
    let listed = secret(&["list", "-o", "json"], "");
    assert_eq!(listed.json(), serde_json::json!([{ "name": "SHOP_TOKEN" }]));

    let (url, answering) = target();
    let connectors =
        up.file("connectors.toml", &format!("[connection.shop]\nurl = \"{url}\"\nsecret = \"SHOP_TOKEN\"\n"));
    let credentials =
        up.file("credentials.toml", "[provider.small]\nkind = \"age\"\nfile = \"s.age\"\nidentity_file = \"s.key\"\n");
    let doctor = up.run(&["doctor", "--credentials", &credentials]);
    assert!(doctor.out.contains("small (age,") && doctor.out.contains("1 secrets"), "{doctor:?}");

    let server = up.server();
    let arguments =
        ["worker", "--server", &server, "--data", &data, "--connectors", &connectors, "--credentials", &credentials];
    let mut command = up.command();
    command.args(arguments).args(["--outbound-open", "127.0.0.1/32", "--log", "debug"]).stderr(Stdio::piped());
    let mut worker = KilledOnDrop(command.spawn().unwrap());
    let mut told = BufReader::new(worker.0.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("connected to") {
        assert!(told.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(said.contains("secrets from small (age,"), "{said}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", worker.0.id())).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");

    let workflow = "name: shop\nsteps: [{ id: a, uses: http.request, with: { url: /x, connection: shop } }]\n";
    assert_eq!(up.run(&["workflow", "apply", &up.file("shop.yaml", workflow)]).code, 0);
    let done = up.run(&["run", "start", "shop", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let head = answering.join().unwrap();
    assert!(head.to_lowercase().contains(&format!("authorization: bearer {VALUE}")), "{head}");

    worker.0.kill().unwrap();
    told.read_to_string(&mut said).unwrap();
    let shown = [said, done.out, doctor.out, listed.out].concat();
    assert!(!shown.contains(VALUE), "{shown}");
}
