//! AWS in a test: it believes a signed question who asks, as the Vault would send it on.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use interlock_core::json::Hash;
use serde_json::Value;
use sha2::Sha256;

pub const ACCESS_KEY_ID: &str = "AKIDEXAMPLE";
pub const SECRET_ACCESS_KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
pub const SESSION_TOKEN: &str = "s3cr3t-session-token==";
/// What this Vault expects in `X-Vault-AWS-IAM-Server-ID`.
pub const SERVER_ID: &str = "vault.example.org";

fn decoded(body: &Value, name: &str) -> Result<String, String> {
    let text = body[name].as_str().ok_or_else(|| format!("{name} is missing"))?;
    let bytes = BASE64.decode(text).map_err(|error| format!("{name}: {error}"))?;
    String::from_utf8(bytes).map_err(|error| format!("{name}: {error}"))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Whether the body of a login holds a question that AWS would answer, signed for this Vault.
pub fn believes(body: &Value) -> Result<(), String> {
    if body["iam_http_request_method"] != "POST" {
        return Err("the question is not a POST".to_owned());
    }
    let (url, question) = (decoded(body, "iam_request_url")?, decoded(body, "iam_request_body")?);
    let host = url.strip_prefix("https://").and_then(|rest| rest.strip_suffix('/')).ok_or("not an address of STS")?;
    if question != "Action=GetCallerIdentity&Version=2011-06-15" {
        return Err("another question".to_owned());
    }
    let headers: BTreeMap<String, [String; 1]> =
        serde_json::from_str(&decoded(body, "iam_request_headers")?).map_err(|error| error.to_string())?;
    let header = |name: &str| headers.get(name).map(|value| value[0].as_str()).ok_or_else(|| format!("no {name}"));
    let region = match host.split('.').collect::<Vec<_>>()[..] {
        ["sts", "amazonaws", "com"] => "us-east-1",
        ["sts", region, "amazonaws", "com"] => region,
        _ => return Err(format!("{host} is not STS")),
    };
    if header("host")? != host || header("x-vault-aws-iam-server-id")? != SERVER_ID {
        return Err("signed for another host or Vault".to_owned());
    }
    if header("x-amz-security-token").is_ok_and(|token| token != SESSION_TOKEN) {
        return Err("the session token is expired".to_owned());
    }
    let (given, date) = (header("authorization")?, header("x-amz-date")?);
    let names: Vec<&str> = headers.keys().map(String::as_str).filter(|name| *name != "authorization").collect();
    let mut lines = String::new();
    for name in &names {
        lines += &[*name, ":", headers[*name][0].as_str(), "\n"].concat();
    }
    let signed = names.join(";");
    let canonical = format!("POST\n/\n\n{lines}\n{signed}\n{}", Hash::of(question.as_bytes()));
    let place = format!("{}/{region}/sts/aws4_request", &date[..8]);
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{place}\n{}", Hash::of(canonical.as_bytes()));
    let mut key = mac(format!("AWS4{SECRET_ACCESS_KEY}").as_bytes(), &date[..8]);
    for part in [region, "sts", "aws4_request"] {
        key = mac(&key, part);
    }
    let signature = Hash(mac(&key, &to_sign).try_into().unwrap());
    let right =
        format!("AWS4-HMAC-SHA256 Credential={ACCESS_KEY_ID}/{place}, SignedHeaders={signed}, Signature={signature}");
    // AWS says what it would have signed, with the session token in it.
    if given == right { Ok(()) } else { Err(format!("the signature does not match: it should be over {lines}")) }
}
