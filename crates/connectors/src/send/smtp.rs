//! Handing a mail to a submission server: implicit TLS (`smtps://`, port 465) or STARTTLS (`smtp://`, port 587), never in
//! the clear.
//!
//! The SMTP dialogue is written here, without a library, because it must know from which byte on a message may have
//! been accepted: until the line with the single dot goes out nothing has happened; from there to the server's reply
//! the outcome is unknown.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use interlock_core::plan::retry::ErrorClass;
use interlock_credentials::StepCredentials;
use interlock_outbound::{Outbound, OutboundError};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use zeroize::Zeroizing;

use super::secret::{HIDDEN, HIDDEN_BYTES_LEAST, not_had};
use super::{Leave, not_answered, without_leave};
use crate::failure::{CallFailure, Sent, quoted};
use crate::limits;
use crate::request::{Mail, Response};

/// One line of a server, and how many of them an answer has.
const LINE_BYTES_MAX: u64 = 4 << 10;
const LINES_MAX: usize = 100;
const PORT_TLS: u16 = 465;
const PORT_STARTTLS: u16 = 587;
/// How we call ourselves; submission servers know callers by their login.
const HELLO: &str = "EHLO interlock";

pub(super) async fn send(
    outbound: &Outbound,
    secrets: &StepCredentials,
    mail: &Mail,
    leave: Leave<'_>,
) -> Result<Response, CallFailure> {
    let password = match (&mail.user, &mail.secret) {
        (Some(_), Some(secret)) => Some(secrets.get(secret).await.map_err(not_had)?),
        _ => None,
    };
    if !std::iter::once(&mail.from).chain(&mail.to).all(|address| address.is_ascii() && !address.contains(['\r', '\n']))
    {
        return Err(CallFailure::refused("MAIL_INVALID", "a mail address is not plain ASCII, which is not supported"));
    }
    let login = mail.user.as_ref().zip(password.as_ref()).map(|(user, password)| {
        let plain = Zeroizing::new(format!("\0{user}\0{}", password.reveal()));
        let sent = Zeroizing::new(BASE64.encode(plain.as_bytes()));
        MailLogin { sent, password: Zeroizing::new(password.reveal().to_owned()) }
    });
    // Set once the message may have been taken.
    let mut handed_over = false;
    let talking = talk(outbound, mail, login.as_ref(), leave, &mut handed_over);
    let ended = tokio::time::timeout(limits::CALL_TIMEOUT, talking).await;
    let ended = ended.unwrap_or_else(|_| Err(not_answered(&OutboundError::Timeout(limits::CALL_TIMEOUT))));
    match ended {
        Ok(said) => Ok(Response { status: 250, headers: Vec::new(), body: said.into_bytes() }),
        // What a server has refused is refused; what broke off is certain only before the end of the message.
        Err(failure) if failure.code == REFUSED => Err(failure),
        Err(failure) => {
            let sent = if handed_over { Sent::Unknown } else { Sent::CertainlyNot };
            Err(CallFailure { sent, ..failure })
        }
    }
}

const REFUSED: &str = "MAIL_REFUSED";

/// Who hands the message over.
struct MailLogin {
    /// As it is sent: user and password, encoded.
    sent: Zeroizing<String>,
    password: Zeroizing<String>,
}

impl MailLogin {
    /// Many servers repeat a command that they do not know, and this one holds a password.
    fn hidden_in(&self, text: &str) -> String {
        let forms = [&self.sent, &self.password].into_iter().filter(|form| form.len() >= HIDDEN_BYTES_LEAST);
        forms.fold(text.to_owned(), |text, form| text.replace(form.as_str(), HIDDEN))
    }
}

async fn talk(
    outbound: &Outbound,
    mail: &Mail,
    login: Option<&MailLogin>,
    leave: Leave<'_>,
    handed_over: &mut bool,
) -> Result<String, CallFailure> {
    let (starts_plain, rest) = match mail.server.split_once("://") {
        Some(("smtps", rest)) => (false, rest),
        Some(("smtp", rest)) => (true, rest),
        _ => return Err(CallFailure::refused("CONNECTION_UNUSABLE", "the connection is no mail server")),
    };
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (rest, Some(if starts_plain { PORT_STARTTLS } else { PORT_TLS })),
    };
    let Some(port) = port else {
        return Err(CallFailure::refused("CONNECTION_UNUSABLE", "the mail server's port is not a number"));
    };
    if !leave() {
        return Err(without_leave());
    }
    let mut socket = outbound.connect(host, port).await.map_err(|error| not_answered(&error))?;
    if starts_plain {
        let mut plain = Conversation { stream: BufReader::new(&mut socket.stream), login };
        plain.expect(220).await?;
        let offers = plain.say(HELLO, 250).await?;
        if !offers.lines().any(|line| line.eq_ignore_ascii_case("STARTTLS")) {
            let what = "the mail server offers no encryption (STARTTLS); nothing is sent in the clear";
            return Err(CallFailure::refused("MAIL_NOT_ENCRYPTED", what));
        }
        plain.say("STARTTLS", 220).await?;
        // Whatever came along with the answer was not encrypted, and an attacker on the way may have put it there.
        if !plain.stream.buffer().is_empty() {
            let what = "the mail server went on talking before the connection was encrypted";
            return Err(CallFailure::refused("MAIL_NOT_ENCRYPTED", what));
        }
    }
    let secured = outbound.secure(socket).await.map_err(|error| not_answered(&error))?;
    let mut server = Conversation { stream: BufReader::new(secured), login };
    if !starts_plain {
        server.expect(220).await?;
    }
    server.say(HELLO, 250).await?;
    if let Some(login) = login {
        let command = Zeroizing::new(format!("AUTH PLAIN {}", *login.sent));
        server.say(&command, 235).await?;
    }
    server.say(&format!("MAIL FROM:<{}>", mail.from), 250).await?;
    for to in &mail.to {
        server.say(&format!("RCPT TO:<{to}>"), 250).await?;
    }
    server.say("DATA", 354).await?;
    if !leave() {
        return Err(without_leave());
    }
    server.write(&stuffed(&mail.message)).await?;
    *handed_over = true;
    let said = server.say(".", 250).await?;
    // The server has the message; whether it gets the QUIT does not matter.
    let _ = server.say("QUIT", 221).await;
    Ok(said)
}

/// The message in lines that end as the protocol wants, with a dot before every dot that begins one.
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(message.len() + 64);
    let text = message.strip_suffix(b"\n").map_or(message, |rest| rest.strip_suffix(b"\r").unwrap_or(rest));
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first() == Some(&b'.') {
            lines.push(b'.');
        }
        lines.extend_from_slice(line);
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

struct Conversation<'a, S> {
    stream: BufReader<S>,
    /// What no answer may bring back.
    login: Option<&'a MailLogin>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Conversation<'_, S> {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), CallFailure> {
        self.stream.write_all(bytes).await.map_err(|error| broke(&error))?;
        self.stream.flush().await.map_err(|error| broke(&error))
    }

    async fn say(&mut self, line: &str, expected: u16) -> Result<String, CallFailure> {
        let line = Zeroizing::new(format!("{line}\r\n"));
        self.write(line.as_bytes()).await?;
        self.expect(expected).await
    }

    /// An answer of one or several lines, without their codes.
    async fn expect(&mut self, expected: u16) -> Result<String, CallFailure> {
        let mut texts = Vec::new();
        for _ in 0..LINES_MAX {
            let mut line = String::new();
            let read = (&mut self.stream).take(LINE_BYTES_MAX).read_line(&mut line).await;
            let read = read.map_err(|error| broke(&error))?;
            let code: Option<u16> = line.get(..3).and_then(|code| code.parse().ok());
            let (Some(code), true) = (code.filter(|_| line.ends_with('\n')), read > 3) else {
                return Err(broke(&std::io::Error::other("the mail server's answer cannot be read")));
            };
            let text = line.get(4..).unwrap_or_default().trim_end();
            texts.push(self.login.map_or_else(|| text.to_owned(), |login| login.hidden_in(text)));
            if line.as_bytes().get(3) == Some(&b'-') {
                continue;
            }
            // 251 and 252 take a recipient as 250 does.
            if code == expected || (expected == 250 && matches!(code, 251 | 252)) {
                return Ok(texts.join("\n"));
            }
            let class = if (400..500).contains(&code) { ErrorClass::Unavailable } else { ErrorClass::Invalid };
            let message = format!("the mail server refuses with {code}: {}", quoted(&texts.join(" ")));
            return Err(CallFailure::new(Sent::CertainlyNot, class, REFUSED, message));
        }
        Err(broke(&std::io::Error::other("the mail server's answer has no end")))
    }
}

fn broke(error: &std::io::Error) -> CallFailure {
    CallFailure::new(
        Sent::Unknown,
        ErrorClass::Unavailable,
        "CALL_FAILED",
        format!("the conversation broke off: {error}"),
    )
}
