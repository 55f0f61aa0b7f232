//! A system beside the engine that does as a test says.

use std::sync::{Arc, Mutex};

use interlock_connectors::send::Caller;
use interlock_connectors::{Connection, Connections};
use interlock_core::time::Timestamp;
use interlock_credentials::providers::fixed::FixedSecrets;
use interlock_credentials::{Clock, Credentials};
use interlock_outbound::{Call, Exchange, Exchanged, HttpResponse, Outbound, OutboundError, StatusCode};
use serde_json::Value;

/// What the system answers to a method with a path: a status and a body, or nothing.
type Script = dyn Fn(&str) -> Option<(u16, Value)> + Send + Sync;

#[derive(Clone)]
pub struct Target {
    script: Arc<Script>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Target {
    pub fn new(script: impl Fn(&str) -> Option<(u16, Value)> + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), seen: Arc::default() }
    }

    pub fn asked(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    /// Calls it, by the connections `servicenow`, `github` and `slack`.
    pub fn caller(&self) -> Caller {
        let place = |name: &str| Connection::new(name, &format!("https://{name}.example")).with_secret("TOKEN");
        let places =
            ["slack", "servicenow", "github"].iter().fold(Connections::default(), |all, name| all.with(place(name)));
        let secrets = FixedSecrets([("TOKEN".to_owned(), "tok-0123456789".to_owned())].into());
        let credentials = Credentials::of_one("fixed", Arc::new(secrets), Clock::new(|| Timestamp(0)));
        Caller::new(Outbound::over(Arc::new(self.clone())), places, credentials)
    }
}

impl Exchange for Target {
    fn send(&self, call: Call) -> Exchanged<'_> {
        Box::pin(async move {
            let url: interlock_outbound::Url = call.url.parse().unwrap();
            let asked = format!("{} {}", call.method, url.path());
            self.seen.lock().unwrap().push(asked.clone());
            let (status, body) =
                (self.script)(&asked).ok_or_else(|| OutboundError::Failed("the connection broke".into()))?;
            let headers = interlock_outbound::header::HeaderMap::new();
            let status = StatusCode::from_u16(status).unwrap();
            Ok(HttpResponse { status, headers, body: body.to_string().into_bytes(), url })
        })
    }
}
