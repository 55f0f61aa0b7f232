//! Signing in with AWS keys: a signed question who asks (`sts:GetCallerIdentity`), which the Vault sends to AWS in the worker's
//! place. The keys stay here. What goes out is good for this one question, for a quarter of an hour.
//!
//! The signature is AWS's version 4.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use interlock_core::json::Hash;
use interlock_core::time::Timestamp;
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::Cause;
use crate::limits;
use crate::memory::SecretBuf;
use crate::reading::{off_thread, read_guarded};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const QUESTION: &str = "Action=GetCallerIdentity&Version=2011-06-15";
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";
/// The region of the endpoint that belongs to no region.
const GLOBAL_REGION: &str = "us-east-1";
/// Room for a long session token, so that buffers which hold it are not moved.
const SIGNED_BYTES: usize = 16 << 10;

/// Who a worker is to AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsIdentity {
    pub keys: AwsKeySource,
    /// Of the endpoint that the Vault asks; the one without a region where absent.
    pub region: Option<String>,
    /// Signed as `X-Vault-AWS-IAM-Server-ID`: what is signed for one Vault is of no use to another.
    pub server_id: Option<String>,
}

/// Where the keys are. They are read anew for each login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AwsKeySource {
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
    Environment,
    /// A shared credentials file, and the profile in it.
    File { file: PathBuf, profile: String },
}

struct AwsKeys {
    id: SecretBuf,
    secret: SecretBuf,
    session_token: Option<SecretBuf>,
}

/// The question as a Vault takes it: each part in Base64.
pub(super) struct SignedQuestion {
    pub url: String,
    pub body: String,
    pub headers: SecretBuf,
    /// Among the headers. AWS repeats what was signed where the signature is wrong, and a Vault repeats what AWS says.
    pub session_token: Option<SecretBuf>,
}

impl AwsIdentity {
    pub(super) async fn sign(&self, now: Timestamp) -> Result<SignedQuestion, Cause> {
        let keys = self.keys.read().await?;
        let host = self.host();
        let stamp = stamp(now);
        let mut headers = vec![("content-type", FORM), ("host", host.as_str()), ("x-amz-date", stamp.as_str())];
        headers.extend(keys.session_token.as_ref().map(|token| ("x-amz-security-token", token.reveal())));
        headers.extend(self.server_id.as_deref().map(|id| ("x-vault-aws-iam-server-id", id)));
        let region = self.region.as_deref().unwrap_or(GLOBAL_REGION);
        let scope = SignatureScope { stamp: &stamp, region, service: "sts" };
        let authorization = authorization(&scope, &headers, QUESTION, &keys);
        headers.push(("authorization", authorization.as_str()));
        let headers: BTreeMap<&str, [&str; 1]> = headers.into_iter().map(|(name, value)| (name, [value])).collect();
        let mut json = Zeroizing::new(Vec::<u8>::with_capacity(SIGNED_BYTES));
        // Writing to memory does not fail, and these are plain texts.
        let _ = serde_json::to_writer(&mut *json, &headers);
        Ok(SignedQuestion {
            url: BASE64.encode(format!("https://{host}/")),
            body: BASE64.encode(QUESTION),
            headers: SecretBuf::new(&Zeroizing::new(BASE64.encode(&*json)))?,
            session_token: keys.session_token,
        })
    }

    /// Whether there are keys.
    pub(super) async fn look(&self) -> Result<(), Cause> {
        self.keys.read().await.map(drop)
    }

    fn host(&self) -> String {
        match self.region.as_deref() {
            None => "sts.amazonaws.com".to_owned(),
            Some(region) if region.starts_with("cn-") => format!("sts.{region}.amazonaws.com.cn"),
            Some(region) => format!("sts.{region}.amazonaws.com"),
        }
    }
}

impl AwsKeySource {
    async fn read(&self) -> Result<AwsKeys, Cause> {
        let unusable = |why: String| Cause::LoginRefused(format!(": the AWS keys {self}: {why}"));
        match self {
            Self::Environment => {
                let variable = |name: &str| std::env::var(name.to_ascii_uppercase()).ok().map(Zeroizing::new);
                AwsKeys::found(variable).map_err(unusable)
            }
            Self::File { file, profile } => {
                let path = file.clone();
                let bytes = off_thread(move || read_guarded(&path, limits::SECRET_BYTES_MAX)).await;
                let bytes = bytes.map_err(|error| unusable(error.to_string()))?;
                let text = std::str::from_utf8(&bytes).map_err(|_| unusable("the file is no text".to_owned()))?;
                let setting = |name: &str| Some(Zeroizing::new(of_profile(text, profile, name)?.to_owned()));
                AwsKeys::found(setting).map_err(unusable)
            }
        }
    }
}

impl std::fmt::Display for AwsKeySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment => f.write_str("of the worker's environment"),
            Self::File { file, profile } => write!(f, "of the profile `{profile}` in {}", file.display()),
        }
    }
}

impl AwsKeys {
    /// By the names that they have in a credentials file.
    fn found(find: impl Fn(&str) -> Option<Zeroizing<String>>) -> Result<Self, String> {
        let usable = |name: &str| match find(name).filter(|value| !value.is_empty()) {
            Some(value) if !value.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(format!("{name} holds characters that no key has"))
            }
            Some(value) => SecretBuf::new(&value).map(Some).map_err(|error| format!("{name}: {error}")),
            None => Ok(None),
        };
        let needed = |name: &str| usable(name)?.ok_or_else(|| format!("{name} is missing"));
        Ok(Self {
            id: needed("aws_access_key_id")?,
            secret: needed("aws_secret_access_key")?,
            session_token: usable("aws_session_token")?,
        })
    }
}

/// A setting of a profile in a shared credentials file.
fn of_profile<'t>(text: &'t str, profile: &str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().map(str::trim);
    let title = |line: &str| Some(line.strip_prefix('[')?.strip_suffix(']')?.trim() == profile);
    lines.find(|line| title(line) == Some(true))?;
    let settings = lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.starts_with(['#', ';']));
    let mut pairs = settings.filter_map(|line| line.split_once('='));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// What a signature is good for.
struct SignatureScope<'a> {
    /// When it was made: `20150830T123600Z`.
    stamp: &'a str,
    region: &'a str,
    service: &'a str,
}

/// The `Authorization` of a POST to `/`. The names of the headers are in lower case and in order.
fn authorization(scope: &SignatureScope<'_>, headers: &[(&str, &str)], body: &str, keys: &AwsKeys) -> String {
    let SignatureScope { stamp, region, service } = scope;
    let mut canonical = Zeroizing::new(String::with_capacity(SIGNED_BYTES));
    canonical.push_str("POST\n/\n\n");
    for (name, value) in headers {
        // Writing to a string cannot fail.
        let _ = writeln!(canonical, "{name}:{value}");
    }
    let signed = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let _ = write!(canonical, "\n{signed}\n{}", Hash::of(body.as_bytes()));
    let day = stamp.split('T').next().unwrap_or_default();
    let place = format!("{day}/{region}/{service}/aws4_request");
    let to_sign = format!("{ALGORITHM}\n{stamp}\n{place}\n{}", Hash::of(canonical.as_bytes()));
    let mut first = Zeroizing::new(Vec::with_capacity(4 + keys.secret.reveal().len()));
    first.extend_from_slice(b"AWS4");
    first.extend_from_slice(keys.secret.reveal().as_bytes());
    let mut key = mac(&first, day);
    for part in [*region, *service, "aws4_request", to_sign.as_str()] {
        key = mac(&*key, part);
    }
    let id = keys.id.reveal();
    format!("{ALGORITHM} Credential={id}/{place}, SignedHeaders={signed}, Signature={}", Hash(*key))
}

fn mac(key: &[u8], text: &str) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(text.as_bytes());
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// The instant as AWS writes it: `20150830T123600Z`.
fn stamp(at: Timestamp) -> String {
    let seconds = at.0.div_euclid(1_000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days since the 1st of March of the year 0, in years that end with February.
    let (era, day) = ((days + 719_468).div_euclid(146_097), (days + 719_468).rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march = (5 * day + 2) / 153;
    let day = day - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> AwsKeys {
        let secret = SecretBuf::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY").unwrap();
        AwsKeys { id: SecretBuf::new("AKIDEXAMPLE").unwrap(), secret, session_token: None }
    }

    /// `post-x-www-form-urlencoded` of the test suite that AWS has published for its signatures.
    #[test]
    fn a_request_of_the_published_suite_is_signed_as_there() {
        let scope = SignatureScope { stamp: "20150830T123600Z", region: "us-east-1", service: "service" };
        let headers = [
            ("content-type", "application/x-www-form-urlencoded"),
            ("host", "example.amazonaws.com"),
            ("x-amz-date", "20150830T123600Z"),
        ];
        let expected = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                        SignedHeaders=content-type;host;x-amz-date, \
                        Signature=ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a";
        assert_eq!(authorization(&scope, &headers, "Param1=value1", &keys()), expected);
    }

    #[test]
    fn an_instant_is_written_as_aws_does() {
        for (millis, text) in [
            (0, "19700101T000000Z"),
            (1_440_938_160_000, "20150830T123600Z"),
            (951_782_400_999, "20000229T000000Z"),
            (4_102_444_799_000, "20991231T235959Z"),
        ] {
            assert_eq!(stamp(Timestamp(millis)), text);
        }
    }

    #[test]
    fn keys_are_found_in_their_profile() {
        let text = "[default]\naws_access_key_id = A\n# aws_secret_access_key = old\naws_secret_access_key=B\n\n\
                    [ other ]\naws_access_key_id = C=\n";
        assert_eq!(of_profile(text, "default", "aws_secret_access_key"), Some("B"));
        assert_eq!(of_profile(text, "other", "aws_access_key_id"), Some("C="));
        assert_eq!(of_profile(text, "other", "aws_secret_access_key"), None, "that of another profile");
        assert_eq!(of_profile(text, "third", "aws_access_key_id"), None);
        let find = |name: &str| of_profile(text, "other", name).map(|value| Zeroizing::new(value.to_owned()));
        assert_eq!(AwsKeys::found(find).err().as_deref(), Some("aws_secret_access_key is missing"));
        let find = |_: &str| Some(Zeroizing::new("a\nb".to_owned()));
        assert!(AwsKeys::found(find).is_err_and(|why| why.contains("characters that no key has")));
    }

    #[test]
    fn each_region_has_its_host() {
        let host = |region: Option<&str>| {
            let region = region.map(str::to_owned);
            AwsIdentity { keys: AwsKeySource::Environment, region, server_id: None }.host()
        };
        assert_eq!(host(None), "sts.amazonaws.com");
        assert_eq!(host(Some("eu-central-1")), "sts.eu-central-1.amazonaws.com");
        assert_eq!(host(Some("cn-north-1")), "sts.cn-north-1.amazonaws.com.cn");
    }
}
