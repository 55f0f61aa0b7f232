//! WebSockets by the book (RFC 6455): frames written by hand, against a real listener.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use interlock_core::tenant::identity::Role;
use interlock_protocol::live::close;
use interlock_server::ServerOptions;
use interlock_server::identity::{NewKey, create_key};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::connections::{Listening, listen_on, listen_with};
use crate::harness::{Api, task};
use crate::revocation::message;

const PATIENCE: Duration = Duration::from_mins(1);

/// A server, and a key that may listen there.
async fn server() -> (Listening, String) {
    let mut secret = None;
    let server = listen_with(|tenant| {
        let options = ServerOptions::new(tenant);
        secret = Some((tenant, options.secret.clone()));
        options
    })
    .await;
    let (tenant, secret) = secret.unwrap();
    let new = NewKey::new(tenant, "listener", [Role::Viewer].into_iter().collect());
    let key = create_key(&server.engine, &secret, new).await.unwrap().1.reveal().to_owned();
    (server, key)
}

/// An open WebSocket on the tenant's feed, behind its handshake.
async fn open(server: &Listening, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!(
        "GET /ws/feed HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: upgrade\r\n\
         upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&head));
    stream
}

/// A frame of a client: masked, by a mask of zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length => {
            frame.push(0x80 | 0x7e);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(payload);
    frame
}

/// The code of the server's close frame; all before it is passed over.
async fn close_code(stream: &mut TcpStream) -> Option<u16> {
    let reading = async {
        loop {
            let first = stream.read_u8().await.ok()?;
            let length = match stream.read_u8().await.ok()? & 0x7f {
                126 => usize::from(stream.read_u16().await.ok()?),
                length => usize::from(length),
            };
            let mut payload = vec![0; length];
            stream.read_exact(&mut payload).await.ok()?;
            if first & 0x0f == 0x8 {
                return Some(payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code)));
            }
        }
    };
    timeout(PATIENCE, reading).await.expect("the server answers or closes")
}

#[tokio::test]
async fn a_close_frame_is_answered() {
    let (server, key) = server().await;
    let mut stream = open(&server, &key).await;
    stream.write_all(&frame(0x88, &1000_u16.to_be_bytes())).await.unwrap();
    assert_eq!(close_code(&mut stream).await, Some(1000));
    server.end().await;
}

/// The first place is checked, and so is every later one.
#[tokio::test]
async fn a_place_ahead_of_everything_is_refused_in_a_later_frame_too() {
    let (server, key) = server().await;
    let mut stream = open(&server, &key).await;
    stream.write_all(&frame(0x81, br#"{"type":"subscribe","last_event_id":"0"}"#)).await.unwrap();
    stream.write_all(&frame(0x81, br#"{"type":"subscribe","last_event_id":"999999"}"#)).await.unwrap();
    assert_eq!(close_code(&mut stream).await, Some(close::REFUSED));
    server.end().await;
}

/// A later `subscribe` goes on from the place that it names, in the seat that the stream has. One that names none is refused: a
/// replay of everything is not what it has asked for.
#[tokio::test]
async fn a_later_subscribe_goes_on_from_the_place_that_it_names() {
    let api = Api::new().await;
    let options = ServerOptions { live_streams_per_tenant_max: 1, ..api.options() };
    let server = listen_on(api.engine.clone(), options, api.database.clone()).await;
    let run = api.start(json!([task("a")])).await;
    for path in ["/ws/feed?last_event_id=0".to_owned(), format!("/ws/runs/{run}"), format!("/ws/executions/{run}")] {
        let mut socket = opened(&server, &api.key, &path).await;
        assert_eq!(message(&mut socket).await, json!({ "type": "subscribed", "last_event_id": "0" }), "{path}");
        let first = event(&mut socket).await;
        assert_eq!(first["id"], "1", "{path}: {first}");
        for (place, next) in [("0", Some("1")), ("1", None)] {
            let subscribe = json!({ "type": "subscribe", "last_event_id": place });
            socket.send(Message::text(subscribe.to_string())).await.unwrap();
            let subscribed = json!({ "type": "subscribed", "last_event_id": place });
            // What was on its way already comes before it.
            while message(&mut socket).await != subscribed {}
            if let Some(next) = next {
                assert_eq!(event(&mut socket).await["id"], next, "{path}");
            }
        }
        socket.send(Message::text(json!({ "type": "subscribe" }).to_string())).await.unwrap();
        let refused = loop {
            let said = message(&mut socket).await;
            if said["type"] == "refused" {
                break said;
            }
            assert_ne!(said["id"], "1", "{path}: it begins anew");
        };
        assert_eq!(refused["code"], "REQUEST_INVALID", "{path}");
        assert!(refused["detail"].as_str().unwrap().contains("`last_event_id`"), "{path}: {refused}");
        let closed = timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
        let Message::Close(Some(frame)) = closed else { panic!("{path}: {closed:?}") };
        assert_eq!(u16::from(frame.code), close::REFUSED, "{path}");
    }
    server.end().await;
}

/// The next message that is an event.
async fn event(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        let said = message(socket).await;
        if said["id"].is_string() {
            return said;
        }
    }
}

/// An open WebSocket, once the server has noticed that the one before is over.
async fn opened(server: &Listening, key: &str, path: &str) -> WebSocketStream<TcpStream> {
    loop {
        let mut request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        match client_async(request, server.connect().await).await {
            Ok((socket, _)) => return socket,
            Err(Error::Http(response)) => assert_eq!(response.status().as_u16(), 503, "{path}"),
            Err(other) => panic!("{path}: {other}"),
        }
    }
}

#[tokio::test]
async fn a_frame_that_cannot_be_read_is_named() {
    let (server, key) = server().await;
    let long = vec![b'x'; 20 << 10];
    for (bytes, code) in [
        // A text that is no UTF-8.
        (frame(0x81, &[0xff, 0xfe]), close::NOT_TEXT),
        (frame(0x81, &long), close::TOO_LARGE),
        // A reserved bit, an opcode that there is not, a control frame in parts, a frame without a mask.
        (frame(0xc1, b"{}"), close::PROTOCOL),
        (frame(0x83, b"{}"), close::PROTOCOL),
        (frame(0x09, b""), close::PROTOCOL),
        (vec![0x81, 0x02, b'{', b'}'], close::PROTOCOL),
    ] {
        let mut stream = open(&server, &key).await;
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(close_code(&mut stream).await, Some(code), "{:?}", &bytes[..2]);
    }
    server.end().await;
}
