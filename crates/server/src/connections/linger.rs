//! Closing without losing the last answer. A socket that is closed while its peer still sends is reset, and a reset takes
//! away what the peer has not read yet: the refusal. So the answer is followed by "nothing more from us", and what the
//! peer still sends is read and dropped, for a short while.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::counts::CountedConnection;

/// How long a peer that goes on sending is listened to, and how long one that has fallen silent.
const LINGER_MAX: Duration = Duration::from_secs(2);
const SILENT_MAX: Duration = Duration::from_millis(300);
const SCRATCH: usize = 16 << 10;

/// A connection, counted as long as it is open: also after it has become a WebSocket.
pub struct Lingering {
    stream: TcpStream,
    _counted: CountedConnection,
    /// Since the last answer is out.
    closing: Option<Closing>,
}

struct Closing {
    until: Instant,
    silence: Pin<Box<Sleep>>,
}

impl Lingering {
    pub fn new(stream: TcpStream, counted: CountedConnection) -> Self {
        Self { stream, _counted: counted, closing: None }
    }
}

impl AsyncRead for Lingering {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Lingering {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.closing.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let Closing { until, silence } = this.closing.get_or_insert_with(|| Closing {
            until: Instant::now() + LINGER_MAX,
            silence: Box::pin(sleep(SILENT_MAX)),
        });
        let mut scratch = [0; SCRATCH];
        loop {
            if silence.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buf = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {
                    silence.as_mut().reset((*until).min(Instant::now() + SILENT_MAX));
                }
                // The peer has closed, or has gone.
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}
