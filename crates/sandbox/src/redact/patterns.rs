//! What looks like a secret although it is not a named one: keys and tokens with a telling beginning, key blocks,
//! passwords in URLs and assignments.

use std::sync::LazyLock;

use super::MARK;

/// What follows a telling beginning.
#[derive(Debug, Clone, Copy)]
enum Body {
    /// At least so many bytes of a kind; all that follow are taken.
    Run { of: fn(u8) -> bool, least: usize },
    /// Everything to the end of the line that this begins.
    Until(&'static str),
    /// `user:password@`
    UserInfo,
}

#[derive(Debug)]
struct Pattern {
    beginnings: &'static [&'static str],
    ignore_case: bool,
    /// Not in the middle of a word.
    at_word: bool,
    /// The beginning may be seen: it is no secret itself.
    keep_beginning: bool,
    body: Body,
}

const USER_INFO_BYTES_MAX: usize = 256;

const KEY: Pattern = Pattern {
    beginnings: &[],
    ignore_case: false,
    at_word: true,
    keep_beginning: false,
    body: Body::Run { of: is_word, least: 16 },
};

const PATTERNS: &[Pattern] = &[
    Pattern {
        beginnings: &[
            "-----BEGIN PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----",
            "-----BEGIN EC PRIVATE KEY-----",
            "-----BEGIN DSA PRIVATE KEY-----",
            "-----BEGIN OPENSSH PRIVATE KEY-----",
            "-----BEGIN ENCRYPTED PRIVATE KEY-----",
            "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        ],
        at_word: false,
        body: Body::Until("-----END "),
        ..KEY
    },
    // Of Amazon.
    Pattern { beginnings: &["AKIA", "ASIA", "ABIA", "ACCA"], body: Body::Run { of: is_upper, least: 16 }, ..KEY },
    // Of age.
    Pattern { beginnings: &["AGE-SECRET-KEY-1"], body: Body::Run { of: is_upper, least: 16 }, ..KEY },
    // Of GitHub, GitLab, Slack, Stripe, Google, npm, PyPI, Vault, OpenAI and Anthropic, Interlock.
    Pattern { beginnings: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"], ..KEY },
    Pattern { beginnings: &["glpat-", "xoxb-", "xoxa-", "xoxp-", "xoxr-", "xoxs-", "xapp-"], body: TOKEN_16, ..KEY },
    Pattern { beginnings: &["sk_live_", "rk_live_", "sk_test_", "whsec_"], ..KEY },
    Pattern { beginnings: &["AIza"], body: Body::Run { of: is_token, least: 30 }, ..KEY },
    Pattern { beginnings: &["npm_", "pypi-", "hvs.", "hvb.", "sk-"], body: TOKEN_16, ..KEY },
    // A JSON web token: `{"` in base64, with its three parts.
    Pattern { beginnings: &["eyJ"], body: Body::Run { of: is_jwt, least: 24 }, ..KEY },
    Pattern {
        beginnings: &["bearer ", "authorization: basic ", "authorization: token "],
        ignore_case: true,
        keep_beginning: true,
        body: Body::Run { of: is_token68, least: 8 },
        ..KEY
    },
    Pattern {
        beginnings: &[
            "password=",
            "passwd=",
            "secret=",
            "api_key=",
            "apikey=",
            "api-key=",
            "access_token=",
            "client_secret=",
            "aws_secret_access_key=",
            "\"password\":\"",
            "\"password\": \"",
            "\"secret\":\"",
            "\"secret\": \"",
            "x-api-key: ",
            "x-vault-token: ",
        ],
        ignore_case: true,
        at_word: false,
        keep_beginning: true,
        body: Body::Run { of: is_value, least: 1 },
    },
    Pattern { beginnings: &["://"], at_word: false, keep_beginning: true, body: Body::UserInfo, ..KEY },
];

const TOKEN_16: Body = Body::Run { of: is_token, least: 16 };

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_token(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn is_jwt(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

fn is_token68(byte: u8) -> bool {
    is_jwt(byte) || matches!(byte, b'~' | b'+' | b'/' | b'=')
}

fn is_value(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'&' | b'<' | b'>')
}

fn is_user_info(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'/' | b'@' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>')
}

/// Scans one stream.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    held: Vec<u8>,
    inside: Inside,
    last: Option<u8>,
}

#[derive(Debug, Clone, Copy, Default)]
enum Inside {
    #[default]
    Text,
    Run(fn(u8) -> bool),
    /// The end's beginning is looked for.
    Block(&'static str),
    /// Up to the next dash-ending or line.
    BlockEnd,
}

enum PatternMatch {
    Nothing,
    MaybeMore,
    /// Bytes to show, then the mark; bytes that this took; and where the scan is then.
    Secret {
        shown: usize,
        taken: usize,
        then: Inside,
    },
}

impl Patterns {
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.scan(bytes, false, out);
    }

    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.scan(&[], true, out);
    }

    fn scan(&mut self, bytes: &[u8], ended: bool, out: &mut Vec<u8>) {
        self.held.extend(bytes);
        let held = std::mem::take(&mut self.held);
        let mut at = 0;
        while at < held.len() {
            let rest = &held[at..];
            let taken = match self.inside {
                Inside::Text => self.text(rest, ended, out),
                Inside::Run(of) => Some(self.leave_unless(of(rest[0]))),
                Inside::Block(end) => self.block(rest, end, ended),
                Inside::BlockEnd => Some(self.leave_unless(rest[0] != b'\n')),
            };
            match taken {
                Some(taken) => at += taken,
                None => break,
            }
        }
        self.held = held[at..].to_vec();
    }

    /// Takes a byte of what is swallowed, or goes back to ordinary text.
    fn leave_unless(&mut self, goes_on: bool) -> usize {
        if !goes_on {
            self.inside = Inside::Text;
        }
        usize::from(goes_on)
    }

    fn block(&mut self, rest: &[u8], end: &'static str, ended: bool) -> Option<usize> {
        if rest.starts_with(end.as_bytes()) {
            self.inside = Inside::BlockEnd;
            return Some(end.len());
        }
        let maybe = end.as_bytes().starts_with(rest) && !ended;
        (!maybe).then_some(1)
    }

    /// How many bytes are done with; none where it takes more to tell.
    fn text(&mut self, rest: &[u8], ended: bool, out: &mut Vec<u8>) -> Option<usize> {
        let in_word = self.last.is_some_and(is_word);
        for (pattern, beginning) in &BY_FIRST[usize::from(rest[0])] {
            if pattern.at_word && in_word {
                continue;
            }
            match pattern.at_start(beginning, rest) {
                PatternMatch::MaybeMore if !ended => return None,
                PatternMatch::Nothing | PatternMatch::MaybeMore => {}
                PatternMatch::Secret { shown, taken, then } => {
                    out.extend(&rest[..shown]);
                    out.extend(MARK.as_bytes());
                    self.inside = then;
                    self.last = Some(b']');
                    return Some(taken);
                }
            }
        }
        // On to the next byte that can begin anything.
        let plain = rest.iter().skip(1).position(|byte| !BY_FIRST[usize::from(*byte)].is_empty());
        let plain = &rest[..plain.map_or(rest.len(), |plain| plain + 1)];
        out.extend(plain);
        self.last = plain.last().copied();
        Some(plain.len())
    }
}

type Beginnings = Vec<(&'static Pattern, &'static [u8])>;

/// The beginnings that start with a byte, in the order of the patterns.
static BY_FIRST: LazyLock<Vec<Beginnings>> = LazyLock::new(|| {
    let mut by_first = vec![Beginnings::new(); 256];
    for pattern in PATTERNS {
        for beginning in pattern.beginnings.iter().map(|beginning| beginning.as_bytes()) {
            let mut firsts = vec![beginning[0]];
            if pattern.ignore_case {
                firsts = vec![beginning[0].to_ascii_lowercase(), beginning[0].to_ascii_uppercase()];
                firsts.dedup();
            }
            for first in firsts {
                by_first[usize::from(first)].push((pattern, beginning));
            }
        }
    }
    by_first
});

impl Pattern {
    fn at_start(&self, beginning: &[u8], text: &[u8]) -> PatternMatch {
        let len = beginning.len().min(text.len());
        let same = if self.ignore_case {
            text[..len].eq_ignore_ascii_case(&beginning[..len])
        } else {
            text[..len] == beginning[..len]
        };
        match same {
            false => PatternMatch::Nothing,
            true if len < beginning.len() => PatternMatch::MaybeMore,
            true => self.body(len, text),
        }
    }

    fn body(&self, begun: usize, text: &[u8]) -> PatternMatch {
        let shown = if self.keep_beginning { begun } else { 0 };
        let rest = &text[begun..];
        match self.body {
            Body::Until(end) => PatternMatch::Secret { shown, taken: begun, then: Inside::Block(end) },
            Body::Run { of, least } => {
                let run = rest.iter().take(least).take_while(|byte| of(**byte)).count();
                if run == least {
                    PatternMatch::Secret { shown, taken: begun + run, then: Inside::Run(of) }
                } else if run == rest.len() {
                    PatternMatch::MaybeMore
                } else {
                    PatternMatch::Nothing
                }
            }
            Body::UserInfo => {
                let len = rest.iter().take(USER_INFO_BYTES_MAX).take_while(|byte| is_user_info(**byte)).count();
                if len == rest.len() && len < USER_INFO_BYTES_MAX {
                    return PatternMatch::MaybeMore;
                }
                let colon = rest[..len].iter().position(|byte| *byte == b':');
                match colon {
                    Some(colon) if rest.get(len) == Some(&b'@') && colon + 1 < len => {
                        PatternMatch::Secret { shown: begun + colon + 1, taken: begun + len, then: Inside::Text }
                    }
                    _ => PatternMatch::Nothing,
                }
            }
        }
    }
}
