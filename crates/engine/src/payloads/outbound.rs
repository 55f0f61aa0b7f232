//! The bucket's HTTP, under the rules for all calls to the outside.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use http_body_util::BodyExt as _;
use interlock_core::limits;
use interlock_outbound::{Call, Outbound, OutboundError};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody, HttpService,
};

/// A payload, and what S3 says around it.
const ANSWER_BYTES_MAX: usize = limits::PAYLOAD_BYTES_MAX + (64 << 10);

#[derive(Clone)]
pub struct Guarded(Outbound);

impl Guarded {
    pub fn new(outbound: Outbound) -> Self {
        Self(outbound)
    }
}

impl fmt::Debug for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guarded")
    }
}

impl HttpConnector for Guarded {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

impl HttpService for Guarded {
    fn call<'a, 'b>(
        &'a self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let mut call = Call::new(parts.method, parts.uri.to_string());
            call.headers = parts.headers;
            call.body = body.to_vec();
            call.redirects_max = 0;
            call.answer_bytes_max = ANSWER_BYTES_MAX;
            let answer = self.0.send(call).await.map_err(failed)?;
            let mut response = HttpResponse::new(HttpResponseBody::from(answer.body));
            *response.status_mut() = answer.status;
            *response.headers_mut() = answer.headers;
            Ok(response)
        })
    }
}

fn failed(error: OutboundError) -> HttpError {
    let kind = match &error {
        OutboundError::Timeout(_) => HttpErrorKind::Timeout,
        OutboundError::Forbidden(_) | OutboundError::InvalidUrl(_) => HttpErrorKind::Request,
        _ => HttpErrorKind::Connect,
    };
    HttpError::new(kind, error)
}
