//! The browser's way: to the provider with a question, and back with a code. What was asked travels in a sealed cookie,
//! so that any server can take the browser back, and only the browser that left.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use interlock_core::time::Millis;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::fetch::encoded;
use super::{OidcError, Provider, path};
use crate::identity::Identity;
use crate::identity::key::{random_text, same_text};

/// How long a person may take to sign in at the provider.
const LIVES: Millis = Millis::from_mins(10);
/// How long ago a person may have signed in at the provider where they must prove again who they are: well within the
/// quarter of an hour that a decision under two keys asks for.
const AGAIN_MAX_AGE: Duration = Duration::from_mins(5);
const COOKIE: &str = "interlock_oidc";
const SECRET_CHARS: usize = 43;

/// The note that the browser carries.
#[derive(Serialize, Deserialize)]
struct Note {
    state: String,
    nonce: String,
    verifier: String,
    next: String,
    redirect: String,
    exp: u64,
}

/// Where the browser is sent, and what it takes along.
pub struct Departure {
    pub location: String,
    pub cookie: String,
}

/// What came back, and belongs together.
pub struct Arrival {
    pub code: String,
    pub nonce: String,
    pub verifier: String,
    pub redirect: String,
    /// Where the person wanted to go.
    pub next: String,
}

impl Provider {
    /// `again`: the person is signed in here already, and comes to show once more who they are. The provider may know them
    /// from long ago, so it is told how long ago that may be.
    pub async fn depart(
        &self,
        identity: &Identity,
        base: &str,
        next: &str,
        again: bool,
    ) -> Result<Departure, OidcError> {
        let now = identity.engine().now();
        let known = self.known(now, false).await?;
        let note = Note {
            state: random_text(SECRET_CHARS),
            nonce: random_text(SECRET_CHARS),
            verifier: random_text(SECRET_CHARS),
            next: next.to_owned(),
            redirect: format!("{base}{}", path::CALLBACK),
            exp: (now + LIVES).0.max(0) as u64 / 1_000,
        };
        let max_age = AGAIN_MAX_AGE.as_secs().to_string();
        let scope = self.options().scopes.join(" ");
        let challenge = challenge(&note.verifier);
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &self.options().client_id),
            ("redirect_uri", &note.redirect),
            ("scope", &scope),
            ("state", &note.state),
            ("nonce", &note.nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if again {
            query.push(("max_age", &max_age));
        }
        let query: Vec<_> = query.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let endpoint = &known.metadata.authorization_endpoint;
        let separator = if endpoint.contains('?') { '&' } else { '?' };
        let location = format!("{endpoint}{separator}{}", query.join("&"));
        let sealed =
            jsonwebtoken::encode(&Header::new(Algorithm::HS256), &note, &EncodingKey::from_secret(&seal(identity)))
                .map_err(|error| OidcError::Nonsense(error.to_string()))?;
        Ok(Departure { location, cookie: cookie(identity, &sealed, LIVES) })
    }

    /// Takes the browser back: the note it carries must be sealed by this server, fresh, and about this very answer.
    pub fn arrive(
        &self,
        identity: &Identity,
        carried: Option<&str>,
        state: &str,
        code: String,
    ) -> Result<Arrival, OidcError> {
        let lost = || OidcError::Refused("this sign-in was not begun in this browser, or long ago; start again".into());
        let mut validation = Validation::new(Algorithm::HS256);
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let key = DecodingKey::from_secret(&seal(identity));
        let note = carried.and_then(|text| jsonwebtoken::decode::<Note>(text, &key, &validation).ok());
        let note = note.ok_or_else(lost)?.claims;
        if note.exp <= identity.engine().now().0.max(0) as u64 / 1_000 || !same_text(&note.state, state) {
            return Err(lost());
        }
        let Note { nonce, verifier, next, redirect, .. } = note;
        Ok(Arrival { code, nonce, verifier, redirect, next })
    }
}

/// The note in the browser's cookies.
pub fn carried(cookies: &str) -> Option<&str> {
    cookies
        .split(';')
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == COOKIE)
        .map(|(_, note)| note)
}

/// Takes the note away.
pub fn forget(identity: &Identity) -> String {
    cookie(identity, "", Millis(0))
}

fn cookie(identity: &Identity, value: &str, lives: Millis) -> String {
    let secure = if identity.options().secure_cookies { "; Secure" } else { "" };
    // Lax: the provider's redirect brings it along.
    format!("{COOKIE}={value}; Path=/auth/oidc; HttpOnly; SameSite=Lax; Max-Age={}{secure}", lives.0 / 1_000)
}

fn seal(identity: &Identity) -> [u8; 32] {
    identity.secret().hash("oidc-note", b"").0
}

/// RFC 7636: the hash of the verifier, in base64 for addresses, without padding.
pub fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    /// The example of RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_the_standards() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(super::challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn the_note_is_found_among_other_cookies() {
        assert_eq!(super::carried("a=1; interlock_oidc=x.y.z; b=2"), Some("x.y.z"));
        assert_eq!(super::carried("interlock_oidc2=x"), None);
    }
}
