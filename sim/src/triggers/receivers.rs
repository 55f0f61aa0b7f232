//! Endpoints that are told of a tenant's events: some take everything, some are dead, slow, or refuse. Every event that
//! an endpoint wants reaches it, those of one run in order, and no endpoint waits for another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use interlock_core::ids::{OutboundId, RunId, TenantId};
use interlock_core::time::Timestamp;
use interlock_core::trigger::webhook::standard;
use interlock_engine::Engine;
use interlock_engine::audit::Actor;
use interlock_engine::webhooks::outbound::NewOutbound;
use interlock_outbound::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use interlock_outbound::{Call, Exchange, Exchanged, HttpResponse, OutboundError, StatusCode};
use serde_json::Value;
use tokio::time::sleep;

use crate::dice::Dice;
use crate::sim::Sim;
use crate::swarm::Fault;

/// How an endpoint treats messages while the storm lasts. Afterwards each takes everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointManner {
    Takes,
    /// It refuses now and then, wants to be left alone, or takes a message and its answer is lost.
    Moody,
    Refuses,
    /// It never answers.
    Hangs,
    /// Now and then it says that it is gone.
    Leaves,
}

pub struct Receiver {
    pub tenant: TenantId,
    pub id: OutboundId,
    pub url: String,
    /// The events it wants; all where there is none.
    events: Option<&'static str>,
    pub manner: EndpointManner,
    key: Vec<u8>,
    pub is_back: AtomicBool,
}

/// An event that an endpoint has taken.
pub type ArrivedEvent = (RunId, u64);

/// One that takes everything, and others.
pub async fn make(engine: &Engine, tenant: TenantId, dice: &Dice) -> Result<Vec<Receiver>, String> {
    let mut made = Vec::new();
    for number in 0..dice.between(2..=3) {
        let manner = if number == 0 {
            EndpointManner::Takes
        } else {
            *dice.pick(&[EndpointManner::Moody, EndpointManner::Refuses, EndpointManner::Hangs, EndpointManner::Leaves])
        };
        let events = *dice.pick(&[None, Some("session.*"), Some("execution.step.*")]);
        let url = format!("https://{number}.{tenant}.example.org/");
        let wanted = events.map(|pattern| vec![pattern.to_owned()]);
        let new = NewOutbound { name: None, url: url.clone(), description: None, events: wanted, workflows: None };
        let (row, secret) =
            engine.webhooks().draft_outbound(tenant, new, None).await.map_err(|error| error.to_string())?;
        let added = engine.webhooks().add_outbound(row.clone(), &Actor::system(), None).await;
        added.map_err(|error| error.to_string())?;
        let key = standard::key_of_secret(&secret).ok_or("a secret holds a key")?;
        made.push(Receiver { tenant, id: row.id, url, events, manner, key, is_back: AtomicBool::new(false) });
    }
    Ok(made)
}

impl Receiver {
    pub fn wants(&self, event: &str) -> bool {
        self.events.is_none_or(|pattern| event.starts_with(pattern.trim_end_matches('*')))
    }

    fn manner(&self) -> EndpointManner {
        if self.is_back.load(Ordering::Relaxed) { EndpointManner::Takes } else { self.manner }
    }
}

/// What the engines call instead of the network.
pub struct Wire {
    pub sim: Arc<Sim>,
    pub dice: Dice,
}

impl Exchange for Wire {
    fn send(&self, call: Call) -> Exchanged<'_> {
        Box::pin(self.receive(call))
    }
}

impl Wire {
    async fn receive(&self, call: Call) -> Result<HttpResponse, OutboundError> {
        let (sim, dice) = (&self.sim, &self.dice);
        let world = sim.archive.restores();
        let Some(receiver) = sim.triggers().receivers.iter().find(|receiver| receiver.url == call.url) else {
            sim.broken(format!("a call goes to {}, which is no endpoint", call.url));
            return Err(OutboundError::Failed("no such host".into()));
        };
        sleep(dice.millis(0..=40)).await;
        let status = match receiver.manner() {
            EndpointManner::Hangs => {
                sim.tally.count("endpoints hung");
                return std::future::pending().await;
            }
            EndpointManner::Refuses => StatusCode::INTERNAL_SERVER_ERROR,
            EndpointManner::Leaves if dice.one_in(4) => StatusCode::GONE,
            EndpointManner::Takes | EndpointManner::Leaves => StatusCode::OK,
            EndpointManner::Moody => {
                *dice.pick(&[StatusCode::OK, StatusCode::OK, StatusCode::TOO_MANY_REQUESTS, StatusCode::BAD_GATEWAY])
            }
        };
        if status.is_success() {
            // What an engine from before a restore still sends is of another world.
            if world == sim.archive.restores() {
                take(sim, receiver, &call);
            }
        } else {
            sim.tally.count("webhooks refused");
        }
        if receiver.manner() == EndpointManner::Moody && sim.fires(Fault::DeliveryTrouble, dice) {
            return Err(OutboundError::Failed("the connection broke".into()));
        }
        let mut headers = HeaderMap::new();
        if status == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("20"));
        }
        let url = call.url.parse().map_err(|_| OutboundError::InvalidUrl(call.url.clone()))?;
        Ok(HttpResponse { status, headers, body: Vec::new(), url })
    }
}

fn take(sim: &Sim, receiver: &Receiver, call: &Call) {
    let text = |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let names = [standard::ID, standard::TIMESTAMP, standard::SIGNATURE];
    let headers: BTreeMap<String, String> = names.into_iter().map(|name| (name.to_owned(), text(name))).collect();
    // Verified at the time of the signature, whatever the clock has done meanwhile.
    let signed_at = Timestamp(text(standard::TIMESTAMP).parse::<i64>().unwrap_or_default() * 1_000);
    if let Err(error) = standard::verify(&[&receiver.key], &headers, &call.body, signed_at) {
        return sim.broken(format!("webhooks: {} cannot verify a message: {error}", receiver.url));
    }
    let body: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    let (run, seq) = (&body["data"]["run_id"], body["data"]["seq"].as_u64());
    let Some(arrived) = run.as_str().and_then(|run| run.parse().ok()).zip(seq) else {
        return sim.broken(format!("webhooks: {} got {body}", receiver.url));
    };
    let repeated = sim.books(|books| {
        let of_receiver = books.arrived.entry((receiver.tenant, receiver.id)).or_default();
        let repeated = of_receiver.contains(&arrived);
        of_receiver.push(arrived);
        repeated
    });
    sim.tally.count(if repeated { "webhooks repeated" } else { "webhooks taken" });
}
