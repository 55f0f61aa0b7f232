//! From a code to claims that the provider has signed.

use interlock_core::time::Timestamp;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::es512::{self, ES512, Header, Parties};
use super::fetch::ProviderConfiguration;
use super::flow::Arrival;
use super::{OidcError, Provider};
use crate::identity::caller::PROVEN_LATELY;

/// Signatures that need the provider's private key, beside [`ES512`]. A shared secret proves nothing about who signed.
const ALGORITHMS: &[Algorithm] = &[
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];
/// How far the provider's clock may be off, in seconds.
const LEEWAY: u64 = 60;

pub type Claims = Map<String, Value>;

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    #[serde(default)]
    access_token: Option<String>,
}

/// When the person has proven to the provider who they are: `auth_time`. A sign-in without it counts as one of long
/// ago, because the person may have been signed in at the provider for days.
pub fn proven_at(claims: &Claims, now: Timestamp) -> Timestamp {
    let said = claims.get("auth_time").and_then(Value::as_i64).and_then(|seconds| seconds.checked_mul(1_000));
    said.map_or(now - PROVEN_LATELY, |at| Timestamp(at).min(now))
}

fn untrusted(what: &str) -> OidcError {
    OidcError::Untrusted(what.to_owned())
}

impl Provider {
    /// What the provider says about the person who has come back.
    pub async fn claims(&self, arrival: &Arrival, now: Timestamp) -> Result<Claims, OidcError> {
        let mut known = self.known(now, false).await?;
        let form = vec![
            ("grant_type", "authorization_code"),
            ("code", arrival.code.as_str()),
            ("redirect_uri", arrival.redirect.as_str()),
            ("code_verifier", arrival.verifier.as_str()),
        ];
        let tokens: Tokens = self.post_form(&known.metadata, form).await?;
        let header = Header::of(&tokens.id_token).ok_or_else(|| untrusted("its header cannot be read"))?;
        if header.kid.as_ref().is_some_and(|kid| known.keys.find(kid).is_none()) {
            // The provider has changed its keys.
            known = self.known(now, true).await?;
        }
        let mut claims = self.verified(&tokens.id_token, &known, arrival, now)?;
        self.add_userinfo(&mut claims, &known, tokens.access_token.as_deref()).await?;
        Ok(claims)
    }

    fn verified(
        &self,
        token: &str,
        known: &ProviderConfiguration,
        arrival: &Arrival,
        now: Timestamp,
    ) -> Result<Claims, OidcError> {
        let header = Header::of(token).ok_or_else(|| untrusted("its header cannot be read"))?;
        let key = match &header.kid {
            Some(kid) => known.keys.find(kid),
            None if known.keys.keys.len() == 1 => known.keys.keys.first(),
            None => None,
        };
        let key = key.ok_or_else(|| untrusted("the key that signed it is not the provider's"))?;
        let claims = if header.alg == ES512 {
            let parties = Parties { issuer: &self.options().issuer, client: &self.options().client_id };
            es512::claims(token, key, &parties).map_err(untrusted)?
        } else {
            self.signed(token, key)?
        };
        let seconds = now.0.max(0) as u64 / 1_000;
        let number = |name: &str| claims.get(name).and_then(Value::as_u64);
        if number("exp").is_none_or(|exp| exp + LEEWAY <= seconds) {
            return Err(untrusted("it has expired"));
        }
        if number("nbf").is_some_and(|nbf| nbf > seconds + LEEWAY) {
            return Err(untrusted("it is not valid yet"));
        }
        if claims.get("nonce").and_then(Value::as_str) != Some(&arrival.nonce) {
            return Err(untrusted("it answers another sign-in"));
        }
        let azp = claims.get("azp").and_then(Value::as_str);
        if azp.is_some_and(|azp| azp != self.options().client_id) {
            return Err(untrusted("it was made for another client"));
        }
        Ok(claims)
    }

    /// The claims of a token that this key has signed, for us. When it counts is not looked at: time is the engine's.
    fn signed(&self, token: &str, key: &Jwk) -> Result<Claims, OidcError> {
        let refused = |error: jsonwebtoken::errors::Error| OidcError::Untrusted(error.to_string());
        let algorithm = decode_header(token).map_err(refused)?.alg;
        if !ALGORITHMS.contains(&algorithm) {
            return Err(untrusted("its algorithm is not one that we believe"));
        }
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.options().issuer]);
        validation.set_audience(&[&self.options().client_id]);
        validation.set_required_spec_claims(&["iss", "aud", "sub", "exp"]);
        validation.validate_exp = false;
        let key = DecodingKey::from_jwk(key).map_err(refused)?;
        Ok(decode::<Claims>(token, &key, &validation).map_err(refused)?.claims)
    }

    /// Claims that the provider gives only on request. They never take the place of signed ones.
    async fn add_userinfo(
        &self,
        claims: &mut Claims,
        known: &ProviderConfiguration,
        access: Option<&str>,
    ) -> Result<(), OidcError> {
        let (Some(url), Some(access)) = (&known.metadata.userinfo_endpoint, access) else { return Ok(()) };
        let more: Claims = self.get(url, Some(access)).await?;
        if more.get("sub") != claims.get("sub") {
            return Err(OidcError::Untrusted("its claims are about another person".into()));
        }
        for (name, value) in more {
            claims.entry(name).or_insert(value);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_counts_from_when_the_provider_has_seen_the_person() {
        let now = Timestamp(10_000_000);
        let at = |text: &str| proven_at(&serde_json::from_str(text).unwrap(), now);
        assert_eq!(at(r#"{"auth_time":9000}"#), Timestamp(9_000_000));
        assert_eq!(at(r#"{"auth_time":10100}"#), now, "its clock is ahead");
        for silent in ["{}", r#"{"auth_time":"soon"}"#, r#"{"auth_time":9223372036854775807}"#] {
            assert!(now.since(at(silent)) >= PROVEN_LATELY, "{silent}");
        }
    }
}
