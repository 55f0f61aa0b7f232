//! Who a worker is, as its certificate says it: one URI among the names of the certificate, so that every tool which shows
//! certificates shows it.
//!
//! ```text
//! interlock://ten_…/wid_…?environments=dev,staging&segments=&profiles=dev-flex
//! ```

use std::collections::BTreeSet;

use interlock_core::ids::{TenantId, WorkerIdentityId};
use interlock_core::work::WorkerTerms;

use crate::{CertificateFacts, PkiError};

const SCHEME: &str = "interlock://";

/// Who a worker is, and within which bounds it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerIdentity {
    pub tenant: TenantId,
    pub id: WorkerIdentityId,
    pub terms: WorkerTerms,
}

impl WorkerIdentity {
    pub fn to_uri(&self) -> String {
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(",");
        let WorkerTerms { environments, segments, profiles } = &self.terms;
        format!(
            "{SCHEME}{}/{}?environments={}&segments={}&profiles={}",
            self.tenant,
            self.id,
            list(environments),
            list(segments),
            list(profiles)
        )
    }

    pub fn from_uri(uri: &str) -> Result<Self, PkiError> {
        let wrong =
            |what: &str| PkiError::NotAWorker(format!("{what} in `{}`", uri.chars().take(200).collect::<String>()));
        let rest = uri.strip_prefix(SCHEME).ok_or_else(|| wrong("another scheme"))?;
        let (who, terms) = rest.split_once('?').ok_or_else(|| wrong("no terms"))?;
        let (tenant, id) = who.split_once('/').ok_or_else(|| wrong("no worker"))?;
        let tenant = tenant.parse().map_err(|_| wrong("no tenant"))?;
        let id = id.parse().map_err(|_| wrong("no worker"))?;
        let mut lists = ["environments", "segments", "profiles"].into_iter().zip(terms.split('&'));
        let mut list = || -> Result<BTreeSet<String>, PkiError> {
            let (name, text) = lists.next().ok_or_else(|| wrong("a missing list"))?;
            let text =
                text.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')).ok_or_else(|| wrong("another list"))?;
            Ok(text.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect())
        };
        let terms = WorkerTerms { environments: list()?, segments: list()?, profiles: list()? };
        terms.check().map_err(|what| wrong(&what))?;
        let read = Self { tenant, id, terms };
        // Only a URI exactly as `to_uri` writes it is taken.
        if read.to_uri() == uri { Ok(read) } else { Err(wrong("something else")) }
    }

    /// The identity in a certificate that this installation's authority has signed.
    pub fn of_certificate(facts: &CertificateFacts) -> Result<Self, PkiError> {
        match facts.uris.as_slice() {
            [uri] => Self::from_uri(uri),
            uris => Err(PkiError::NotAWorker(format!("it has {} URIs, expected one", uris.len()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_identity_is_read_as_it_was_written_and_nothing_else_is() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let identity = WorkerIdentity {
            tenant: TenantId(Uuid::from_u128(1)),
            id: WorkerIdentityId(Uuid::from_u128(2)),
            terms: WorkerTerms {
                environments: set(&["dev", "staging"]),
                segments: set(&[]),
                profiles: set(&["dev-flex"]),
            },
        };
        let uri = identity.to_uri();
        assert!(uri.ends_with("?environments=dev,staging&segments=&profiles=dev-flex"), "{uri}");
        assert_eq!(WorkerIdentity::from_uri(&uri).unwrap(), identity);
        for other in [
            uri.replace("interlock://", "https://"),
            uri.replace("wid_", "ses_"),
            uri.replace("environments", "environment"),
            uri.replace("dev,staging", "staging,dev"),
            uri.replace("dev,staging", "dev,,staging"),
            uri.replace("dev-flex", "dev flex"),
            format!("{uri}&more=1"),
            uri.split('?').next().unwrap().to_owned(),
        ] {
            assert!(WorkerIdentity::from_uri(&other).is_err(), "{other}");
        }
    }
}
