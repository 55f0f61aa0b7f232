//! `interlock worker --transport redis`, as the operator who starts it sees it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use crate::harness::{Up, eventually};
use crate::redis_server::RedisServer;

pub struct KilledOnDrop(pub Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_worker_over_the_broker_does_the_work() {
    let redis = RedisServer::start().await;
    let up = Up::start(&["--no-demo", "--broker", &redis.url()]);
    let data = up.path("data").display().to_string();
    let (server, broker) = (up.server(), redis.url());
    // A worker that is declined makes requests for a minute.
    let ready = format!("until curl -s {server}/readyz | grep -q '\"ready\"'; do sleep 0.05; done");
    assert_eq!(up.shell(&ready).code, 0);
    let arguments = ["worker", "--server", &server, "--data", &data, "--task", "echo=cat", "--transport", "redis"];
    let worker = up.command().args(arguments).env("INTERLOCK_BROKER", &broker).stderr(Stdio::piped()).spawn();
    let mut worker = KilledOnDrop(worker.unwrap());
    let mut said = String::new();
    BufReader::new(worker.0.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains(&format!("connected to {server}; queues: default; tasks: echo")), "{said}");
    let file = up.file("e.yaml", "name: e\nsteps: [{ id: a, task: echo, with: { x: 1 } }]\n");
    assert_eq!(up.run(&["workflow", "apply", &file]).code, 0);
    let done = up.run(&["run", "start", "e", "--wait"]);
    assert_eq!(done.code, 0, "{done:?}");
    let key = up.key();
    let head = format!("authorization: Bearer {}", key.trim());
    let metrics = || up.shell(&format!("curl -s -H '{head}' {server}/metrics")).out;
    let handled = || {
        let name = "interlock_broker_messages_total{result=\"handled\"}";
        let line = metrics().lines().find(|line| line.contains(name)).map(str::to_owned)?;
        line.rsplit(' ').next()?.parse::<u32>().ok()
    };
    // Calls that the broker was too slow for were requests; the next ones go over it again.
    assert!(eventually(|| handled() >= Some(3)), "the calls went over the broker: {}", metrics());
}

#[tokio::test]
async fn a_broker_with_tls_is_trusted_by_the_authority_that_is_named() {
    let redis = RedisServer::start_with_tls().await;
    let authority = redis.authority().display().to_string();
    let up = Up::start(&["--no-demo", "--broker", &redis.url(), "--broker-ca", &authority]);
    let server = up.server();
    let ready = format!("until curl -s {server}/readyz | grep -q '\"ready\"'; do sleep 0.05; done");
    assert_eq!(up.shell(&ready).code, 0);
    // Without the authority nothing is said to the broker, and the server tells that it is not reached.
    let apart = Up::start(&["--no-demo", "--broker", &redis.url()]);
    let degraded = format!("until curl -s {}/readyz | grep -q '\"degraded\"'; do sleep 0.05; done", apart.server());
    assert_eq!(apart.shell(&degraded).code, 0);
    let (data, empty) = (up.path("unused").display().to_string(), up.file("not-a-certificate.pem", "nothing"));
    for (url, file, says) in [
        (redis.url(), &empty, "there is no certificate in it"),
        (redis.url().replace("rediss", "redis"), &authority, "rediss://HOST:PORT"),
    ] {
        let wrong = up.run(&["server", "--data", &data, "--broker", &url, "--broker-ca", file]);
        assert!(wrong.code == 78 && wrong.err.contains(says), "{wrong:?}");
    }
}

#[tokio::test]
async fn the_address_of_a_broker_is_asked_for_and_its_password_not_shown() {
    let up = Up::start(&["--no-demo"]);
    let missing = up.run(&["worker", "--task", "echo=cat", "--transport", "redis"]);
    assert!(missing.code == 2 && missing.err.contains("--broker redis://HOST:PORT"), "{missing:?}");
    for line in [&["worker", "--task", "echo=cat"][..], &["server"]] {
        let alone = up.run_with(&[("INTERLOCK_BROKER_CA", "ca.pem")], line);
        assert!(alone.code == 78 && alone.err.contains("name it with --broker"), "{alone:?}");
    }
    for line in [&["worker", "--task", "echo=cat", "--transport", "redis"][..], &["server"]] {
        let wrong = up.run_with(&[("INTERLOCK_BROKER", "http://:s3cret@broker")], line);
        assert!(wrong.code == 78 && wrong.err.contains("redis://HOST:PORT"), "{wrong:?}");
        assert!(!wrong.err.contains("s3cret") && !wrong.out.contains("s3cret"), "{wrong:?}");
    }
    for (url, shown) in [("redis://:s3cret@broker:1", "redis://broker:1"), ("s3cret", "not an address of a broker")] {
        let show = up.run_with(&[("INTERLOCK_BROKER", url)], &["config", "show", "server"]);
        assert!(show.code == 0 && show.out.contains(shown) && !show.out.contains("s3cret"), "{show:?}");
    }
    let help = up.run_with(&[("INTERLOCK_BROKER", "redis://:s3cret@broker:1")], &["worker", "--help"]);
    assert!(help.out.contains("INTERLOCK_BROKER") && !help.out.contains("s3cret"), "{help:?}");
}
