//! Tokens signed with ES512 (ECDSA on P-521), which `jsonwebtoken` does not know: verified by the cryptographic library
//! that it stands on.

use aws_lc_rs::signature::{ECDSA_P521_SHA512_FIXED, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk};
use serde::Deserialize;
use serde_json::Value;

use super::token::Claims;

pub const ES512: &str = "ES512";
/// Bytes of a coordinate on P-521.
const COORDINATE_BYTES: usize = 66;
/// How a point begins whose two coordinates are written out.
const UNCOMPRESSED: u8 = 4;

/// What a token says of its signature. Read before anything is proven: it only chooses the key and the algorithm.
#[derive(Debug, Deserialize)]
pub struct Header {
    pub alg: String,
    pub kid: Option<String>,
}

impl Header {
    pub fn of(token: &str) -> Option<Self> {
        serde_json::from_slice(&decoded(token.split('.').next()?)?).ok()
    }
}

/// Whom a token has to be from, and for.
pub struct Parties<'a> {
    pub issuer: &'a str,
    pub client: &'a str,
}

/// The claims of a token that this key has signed, from the issuer and for the client. When it counts is for the caller.
pub fn claims(token: &str, key: &Jwk, parties: &Parties<'_>) -> Result<Claims, &'static str> {
    let (signed, signature) = token.rsplit_once('.').ok_or("it is no token")?;
    let (_, payload) = signed.split_once('.').ok_or("it is no token")?;
    let signature = decoded(signature).ok_or("its signature cannot be read")?;
    let key = UnparsedPublicKey::new(&ECDSA_P521_SHA512_FIXED, point(key).ok_or("its key is not on P-521")?);
    key.verify(signed.as_bytes(), &signature).map_err(|_| "its signature is wrong")?;
    let payload = decoded(payload).ok_or("its claims cannot be read")?;
    let claims: Claims = serde_json::from_slice(&payload).map_err(|_| "its claims cannot be read")?;
    if claims.get("iss").and_then(Value::as_str) != Some(parties.issuer) {
        return Err("it is from another issuer");
    }
    let is_for_us = match claims.get("aud") {
        Some(Value::String(audience)) => audience == parties.client,
        Some(Value::Array(audience)) => audience.iter().any(|one| one.as_str() == Some(parties.client)),
        _ => false,
    };
    if !is_for_us {
        return Err("it was made for another client");
    }
    if claims.get("sub").and_then(Value::as_str).is_none() {
        return Err("it has no subject (`sub`)");
    }
    Ok(claims)
}

fn point(key: &Jwk) -> Option<Vec<u8>> {
    let AlgorithmParameters::EllipticCurve(curve) = &key.algorithm else { return None };
    let (x, y) = (decoded(&curve.x)?, decoded(&curve.y)?);
    let is_p521 = curve.curve == EllipticCurve::P521 && x.len() == COORDINATE_BYTES && y.len() == COORDINATE_BYTES;
    is_p521.then(|| [&[UNCOMPRESSED], x.as_slice(), y.as_slice()].concat())
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    const PARTIES: Parties<'_> = Parties { issuer: "https://provider.example", client: "interlock" };

    fn pair() -> (EcdsaKeyPair, Jwk) {
        let pair = EcdsaKeyPair::generate(&ECDSA_P521_SHA512_FIXED_SIGNING).unwrap();
        let point = pair.public_key().as_ref();
        let (x, y) = point[1..].split_at(COORDINATE_BYTES);
        let [x, y] = [x, y].map(|coordinate| URL_SAFE_NO_PAD.encode(coordinate));
        let key = json!({ "kty": "EC", "crv": "P-521", "alg": "ES512", "kid": "k", "x": x, "y": y });
        (pair, serde_json::from_value(key).unwrap())
    }

    fn token(pair: &EcdsaKeyPair, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({ "alg": "ES512", "kid": "k" })), part(claims));
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn good() -> Value {
        json!({ "iss": "https://provider.example", "aud": ["other", "interlock"], "sub": "ada" })
    }

    #[test]
    fn a_token_of_the_key_counts_and_no_other() {
        let ((ours, key), (theirs, _)) = (pair(), pair());
        let token_of_ours = token(&ours, &good());
        assert_eq!(claims(&token_of_ours, &key, &PARTIES).unwrap()["sub"], "ada");
        assert_eq!(Header::of(&token_of_ours).unwrap().alg, ES512);
        assert_eq!(claims(&token(&theirs, &good()), &key, &PARTIES), Err("its signature is wrong"));
        let (signed, signature) = token_of_ours.rsplit_once('.').unwrap();
        let (header, _) = signed.split_once('.').unwrap();
        let forged = URL_SAFE_NO_PAD.encode(json!({ "sub": "eve" }).to_string());
        assert_eq!(claims(&format!("{header}.{forged}.{signature}"), &key, &PARTIES), Err("its signature is wrong"));
        for broken in ["", "a", "a.b", "a.b.c", &format!("{signed}.")] {
            assert!(claims(broken, &key, &PARTIES).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_token_is_for_us_and_from_the_provider() {
        let (pair, key) = pair();
        for (field, value) in [("iss", json!("https://evil.example")), ("aud", json!("other")), ("sub", Value::Null)] {
            let mut claimed = good();
            claimed[field] = value;
            assert!(claims(&token(&pair, &claimed), &key, &PARTIES).is_err(), "{field}");
        }
    }
}
