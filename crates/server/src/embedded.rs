//! Files inside the binary, each compressed: almost every client takes them as they are.

use std::io::Read as _;
use std::sync::OnceLock;

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;

/// A file that `build.rs` has compressed.
pub struct Embedded {
    gzip: &'static [u8],
    /// As it was, for clients that take nothing compressed. Made when the first one asks.
    plain: OnceLock<Vec<u8>>,
}

impl Embedded {
    pub const fn new(gzip: &'static [u8]) -> Self {
        Self { gzip, plain: OnceLock::new() }
    }

    pub fn plain(&'static self) -> &'static [u8] {
        self.plain.get_or_init(|| {
            let mut plain = Vec::new();
            // The build has written it, so it can be read; cut short it would show at once.
            let read = GzDecoder::new(self.gzip).read_to_end(&mut plain);
            assert!(read.is_ok(), "an embedded file is broken: {read:?}");
            plain
        })
    }

    /// The file in a form that the client takes.
    pub fn answer(&'static self, headers: &HeaderMap) -> Response {
        if takes_gzip(headers) {
            ([(VARY, "accept-encoding"), (CONTENT_ENCODING, "gzip")], self.gzip).into_response()
        } else {
            ([(VARY, "accept-encoding")], self.plain()).into_response()
        }
    }
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Empty, as gzip writes it.
    static NOTHING: Embedded = Embedded::new(&[31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

    fn answered(accepts: &str) -> Response {
        NOTHING.answer(&HeaderMap::from_iter([(ACCEPT_ENCODING, accepts.parse().expect("a header"))]))
    }

    #[test]
    fn only_who_takes_gzip_gets_it() {
        for accepts in ["gzip", "br, GZIP;q=0.5", "gzip ; q=1"] {
            assert!(answered(accepts).headers().contains_key(CONTENT_ENCODING), "{accepts}");
        }
        for accepts in ["", "br", "identity", "gzip;q=0", "x-gzip"] {
            let response = answered(accepts);
            assert!(!response.headers().contains_key(CONTENT_ENCODING), "{accepts}");
            assert_eq!(response.headers()[VARY], "accept-encoding");
        }
        assert_eq!(NOTHING.plain(), b"");
    }
}
