//! A submission server that speaks TLS and checks the conversation.

use std::sync::{Arc, Mutex};

use interlock_connectors::send::Caller;
use interlock_connectors::{Connection, Connections, Fields, Sent, find};
use interlock_outbound::{Outbound, OutboundOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::harness::{TOKEN, credentials, facts, perform, with_connections};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Tls,
    StartTls,
    /// It offers no encryption.
    Plain,
    /// It takes the message, and says nothing.
    Silent,
    /// It hangs up before the message.
    HangsUp,
    RefusesRecipient,
    RefusesLogin,
    /// It repeats the command that it does not know.
    RepeatsLogin,
}

struct Server {
    url: String,
    certificate: Vec<u8>,
    heard: Arc<Mutex<Vec<String>>>,
}

async fn server(manner: Manner) -> Server {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let starts_plain = matches!(manner, Manner::StartTls | Manner::Plain);
    let scheme = if starts_plain { "smtp" } else { "smtps" };
    let url = format!("{scheme}://{}", listener.local_addr().unwrap());
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let hears = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            if starts_plain {
                let offers: &[u8] =
                    if manner == Manner::Plain { b"250 SIZE\r\n" } else { b"250-SIZE\r\n250 STARTTLS\r\n" };
                stream.write_all(b"220 stand-in\r\n").await.unwrap();
                let mut plain = BufReader::new(&mut stream);
                hear(&mut plain, &hears).await;
                plain.write_all(offers).await.unwrap();
                if hear(&mut plain, &hears).await != "STARTTLS" {
                    continue;
                }
                plain.write_all(b"220 go ahead\r\n").await.unwrap();
            }
            let Ok(secured) = acceptor.accept(stream).await else { continue };
            talk(secured, manner, &hears).await;
        }
    });
    Server { url, certificate: made.cert.pem().into_bytes(), heard }
}

async fn hear(from: &mut (impl AsyncWrite + Unpin + tokio::io::AsyncBufRead), heard: &Mutex<Vec<String>>) -> String {
    let mut line = String::new();
    from.read_line(&mut line).await.unwrap_or_default();
    let line = line.trim_end_matches("\r\n").to_owned();
    heard.lock().unwrap().push(line.clone());
    line
}

async fn talk(stream: impl AsyncRead + AsyncWrite + Unpin, manner: Manner, heard: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    if manner != Manner::StartTls {
        stream.write_all(b"220 stand-in\r\n").await.unwrap();
    }
    let mut in_message = false;
    loop {
        let line = hear(&mut stream, heard).await;
        let repeated = format!("500 5.5.2 unknown command: {line} (password {TOKEN})\r\n");
        let answer: &[u8] = match line.split([' ', ':']).next().unwrap_or_default() {
            "." if in_message && manner == Manner::Silent => return,
            "." if in_message => {
                in_message = false;
                b"250 2.0.0 queued as 42\r\n"
            }
            _ if in_message => continue,
            "EHLO" => b"250-stand-in\r\n250 AUTH PLAIN\r\n",
            "AUTH" if manner == Manner::RefusesLogin => b"535 5.7.8 wrong\r\n",
            "AUTH" if manner == Manner::RepeatsLogin => repeated.as_bytes(),
            "AUTH" => b"235 ok\r\n",
            "RCPT" if manner == Manner::RefusesRecipient => b"550 5.1.1 no such user\r\n",
            "MAIL" | "RCPT" => b"250 ok\r\n",
            "DATA" if manner == Manner::HangsUp => return,
            "DATA" => {
                in_message = true;
                b"354 go\r\n"
            }
            "QUIT" => b"221 bye\r\n",
            "" => return,
            other => panic!("no such command: {other}"),
        };
        if stream.write_all(answer).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

fn caller(server: &Server) -> Caller {
    let options = OutboundOptions {
        open: vec!["127.0.0.1".parse().unwrap()],
        roots_pem: vec![server.certificate.clone()],
        ..OutboundOptions::default()
    };
    let connection = Connection {
        from: Some("Interlock <interlock@example.org>".to_owned()),
        ..Connection::new("email", &server.url).with_user("robot").with_secret("TOKEN")
    };
    Caller::new(Outbound::new(options).unwrap(), Connections::default().with(connection), credentials())
}

fn mail() -> Value {
    json!({ "to": ["Ops <ops@example.org>"], "cc": ["b@example.org"], "subject": "Grüße", "text": "One\n.two\n" })
}

#[tokio::test]
async fn a_mail_is_handed_over_encrypted_either_way() {
    for manner in [Manner::Tls, Manner::StartTls] {
        let server = server(manner).await;
        let output = perform(&caller(&server), "email.send", mail()).await.unwrap();
        assert_eq!(output, json!({ "message_id": facts().mark(), "answer": "2.0.0 queued as 42" }));
        let heard = server.heard.lock().unwrap().clone();
        let commands: Vec<_> = heard.iter().map(String::as_str).collect();
        // NUL robot NUL and the token.
        assert!(commands.contains(&"AUTH PLAIN AHJvYm90AHRvay0wMTIzNDU2Nzg5"), "{commands:?}");
        assert!(commands.contains(&"MAIL FROM:<interlock@example.org>"));
        assert!(commands.contains(&"RCPT TO:<ops@example.org>") && commands.contains(&"RCPT TO:<b@example.org>"));
        assert!(commands.contains(&format!("Message-ID: <{}@example.org>", facts().mark()).as_str()));
        assert!(commands.iter().any(|line| line.starts_with("Subject: =?utf-8?")), "{commands:?}");
        assert!(commands.contains(&"..two"), "a dot at the beginning of a line is doubled: {commands:?}");
        let clear = commands.iter().position(|line| *line == "STARTTLS").map_or(0, |at| at + 1);
        assert_eq!(clear, if manner == Manner::StartTls { 2 } else { 0 }, "nothing but the greeting goes in the clear");
    }
}

#[tokio::test]
async fn only_a_message_that_was_handed_over_may_have_been_taken() {
    for (manner, sent, retried) in [
        (Manner::Plain, Sent::CertainlyNot, false),
        (Manner::HangsUp, Sent::CertainlyNot, true),
        (Manner::RefusesRecipient, Sent::CertainlyNot, false),
        (Manner::RefusesLogin, Sent::CertainlyNot, false),
        (Manner::RepeatsLogin, Sent::CertainlyNot, false),
        (Manner::Silent, Sent::Unknown, true),
    ] {
        let server = server(manner).await;
        let failure = perform(&caller(&server), "email.send", mail()).await.unwrap_err();
        assert_eq!((failure.sent, failure.class.is_retryable()), (sent, retried), "{failure}");
        assert!(!failure.to_string().contains(TOKEN));
        assert!(!failure.to_string().contains("AHJvYm90AHRvay0wMTIzNDU2Nzg5"), "nor as it was sent: {failure}");
        if manner == Manner::Plain {
            assert!(!server.heard.lock().unwrap().iter().any(|line| line.starts_with("AUTH")));
        }
    }
}

#[tokio::test]
async fn a_message_ends_where_its_text_does() {
    let server = server(Manner::Tls).await;
    let mut smuggling = mail();
    smuggling["text"] = json!("One\r.\rMAIL FROM:<evil@example.org>\r\n.\r\nRCPT TO:<x@example.org>\n.\nthe end");
    perform(&caller(&server), "email.send", smuggling).await.unwrap();
    let heard = server.heard.lock().unwrap().clone();
    assert!(heard.iter().all(|line| !line.contains('\r')), "a carriage return by itself: {heard:?}");
    let end = heard.iter().position(|line| line == ".").unwrap();
    let after: Vec<_> = heard[end + 1..].iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(after, ["QUIT"], "{heard:?}");
    assert!(heard[..end].iter().any(|line| line == "the end"), "{heard:?}");
}

#[test]
fn no_address_begins_another_header() {
    let send = find("email.send").unwrap();
    for (field, value) in [
        ("to", json!(["Ops\r\nBcc: evil@example.org <ops@example.org>"])),
        ("to", json!(["\"Ops\r\n Bcc: evil@example.org\" <ops@example.org>"])),
        ("cc", json!(["ops@example.org\nBcc: evil@example.org"])),
        ("reply_to", json!("ops@example.org>\r\nRCPT TO:<evil@example.org")),
        ("subject", json!("Hello\r\nBcc: evil@example.org")),
    ] {
        let mut fields = mail();
        fields[field] = value;
        let fields = Fields::check(send.declaration(), fields).unwrap();
        assert!(send.check(&fields).is_err(), "{field}");
    }
}

#[tokio::test]
async fn half_a_login_is_no_login() {
    let server = server(Manner::Tls).await;
    let connection = Connection {
        from: Some("interlock@example.org".to_owned()),
        ..Connection::new("email", &server.url).with_secret("TOKEN")
    };
    let caller = with_connections(Connections::default().with(connection));
    let failure = perform(&caller, "email.send", mail()).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.sent), ("CONNECTION_UNUSABLE", Sent::CertainlyNot), "{failure}");
    assert!(server.heard.lock().unwrap().is_empty());
}

/// Where mail goes is judged as every other call.
#[tokio::test]
async fn a_mail_server_inside_is_closed_unless_it_is_opened() {
    for url in ["smtps://127.0.0.2:1", "smtp://10.1.2.3", "smtps://2130706434", "smtps://169.254.169.254"] {
        let connection = Connection { from: Some("interlock@example.org".to_owned()), ..Connection::new("email", url) };
        let caller = with_connections(Connections::default().with(connection));
        let failure = perform(&caller, "email.send", mail()).await.unwrap_err();
        assert_eq!((failure.code.as_str(), failure.sent), ("ADDRESS_CLOSED", Sent::CertainlyNot), "{url}: {failure}");
    }
}

#[tokio::test]
async fn a_server_whose_certificate_is_not_trusted_hears_nothing() {
    let (server, other) = (server(Manner::Tls).await, server(Manner::Tls).await);
    let stranger = Server { url: server.url.clone(), certificate: other.certificate, heard: Arc::clone(&server.heard) };
    let failure = perform(&caller(&stranger), "email.send", mail()).await.unwrap_err();
    assert_eq!((failure.sent, failure.code.as_str()), (Sent::CertainlyNot, "NOT_CONNECTED"), "{failure}");
    assert!(server.heard.lock().unwrap().is_empty());
}
