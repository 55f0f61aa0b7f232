//! Plain HTTP on the port of HTTPS: browsers are sent on, programs are told.

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, StatusCode, header};
use interlock_protocol::problem::{PROBLEM_JSON, Problem};

/// The answer to a request without encryption. Whatever carries a credential is refused instead of redirected, so that
/// the sender notices; the credential has gone over the wire in the clear already.
pub(crate) fn redirect<B>(request: &Request<B>, public_url: Option<&str>) -> Response<Body> {
    let headers = request.headers();
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let has_credential = headers.contains_key(header::AUTHORIZATION) || headers.contains_key(header::COOKIE);
    if let Some(base) = https(headers, public_url).filter(|_| reads && !has_credential) {
        let path = request.uri().path_and_query().map_or("/", axum::http::uri::PathAndQuery::as_str);
        return answer(StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, format!("{base}{path}"))], Body::empty());
    }
    let detail = "this port speaks HTTPS: write https:// instead of http:// in the address; if a credential was sent, it was \
                  sent in the clear: rotate it";
    let problem = Problem::new(400, "TLS_REQUIRED", detail);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    answer(StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, PROBLEM_JSON.to_owned())], Body::from(body))
}

/// Where the same is served with encryption.
fn https(headers: &HeaderMap, public_url: Option<&str>) -> Option<String> {
    if let Some(url) = public_url.filter(|url| url.starts_with("https://")) {
        return Some(url.to_owned());
    }
    let host = headers.get(header::HOST)?.to_str().ok()?;
    let plain = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    plain.then(|| format!("https://{host}"))
}

fn answer<const N: usize>(
    status: StatusCode,
    headers: [(header::HeaderName, String); N],
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    for (name, value) in headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(method: &str, headers: &[(&str, &str)], public_url: Option<&str>) -> (u16, Option<String>) {
        let mut request = Request::builder().method(method).uri("/runs?a=b");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = redirect(&request.body(()).unwrap(), public_url);
        let location = response.headers().get(header::LOCATION).map(|value| value.to_str().unwrap().to_owned());
        (response.status().as_u16(), location)
    }

    #[test]
    fn a_page_is_redirected_and_a_credential_is_refused() {
        let host = ("host", "here:8420");
        assert_eq!(told("GET", &[host], None), (307, Some("https://here:8420/runs?a=b".to_owned())));
        let public = Some("https://interlock.example.org");
        assert_eq!(told("GET", &[host], public), (307, Some("https://interlock.example.org/runs?a=b".to_owned())));
        for (method, header) in [("POST", host), ("GET", ("authorization", "Bearer x")), ("GET", ("cookie", "a=b"))] {
            assert_eq!(told(method, &[host, header], None), (400, None), "{method} {header:?}");
        }
        assert_eq!(told("GET", &[("host", "evil\\@x")], None), (400, None));
    }
}
