/// Why a certificate, a key or a request is not taken.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    #[error("there is no certificate in it: a file with `-----BEGIN CERTIFICATE-----` is expected")]
    NoCertificate,
    #[error("the certificate cannot be read: {0}")]
    Certificate(String),
    #[error("the private key cannot be read: {0}")]
    Key(String),
    #[error("the private key does not belong to the certificate")]
    KeyMismatch,
    #[error("the signing request cannot be read: {0}")]
    Request(String),
    #[error("the signing request is not signed by the key that it names")]
    RequestForged,
    #[error("the certificate names no worker: {0}")]
    NotAWorker(String),
    /// An authority of another program: this installation would write its name differently.
    #[error(
        "this authority was not made by `interlock worker ca init`, and its certificates would not fit it; make one with \
         that command"
    )]
    ForeignAuthority,
    #[error("`{0}` is no name of a host: write a DNS name or an IP address")]
    HostName(String),
    #[error("the certificate could not be made: {0}")]
    Making(#[from] rcgen::Error),
    #[error("the certificate could not be made: the system gives no random numbers")]
    Random,
}
