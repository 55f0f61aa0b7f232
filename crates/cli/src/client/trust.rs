//! The authority by which a server is trusted that has a certificate of its own making.

use std::path::Path;

use reqwest::Certificate;

use crate::output::exit::{Exit, ExitError};

/// The longest file of certificates that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The file, if there are certificates in it.
pub fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let wrong = |what: String| ExitError::saying(Exit::Config, format!("the authority {}: {what}", path.display()));
    let length = std::fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?.len();
    if length > FILE_BYTES_MAX {
        return Err(wrong(format!("it has {length} bytes; a file of certificates has at most {FILE_BYTES_MAX}")));
    }
    let pem = std::fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(pem),
        _ => Err(wrong(
            "there is no certificate in it; a PEM file, such as the server's `tls/ca.pem`, is expected".to_owned(),
        )),
    }
}

pub fn certificates(path: &Path) -> anyhow::Result<Vec<Certificate>> {
    Ok(Certificate::from_pem_bundle(&read(path)?)?)
}
