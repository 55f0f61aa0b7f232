//! Keeping the session alive: one heartbeat for everything that is held.

use interlock_core::time::Millis;
use interlock_protocol::agent::{Heartbeat, ROUND_TRIP};
use interlock_protocol::transport::Transport;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::executors::command::Commands;
use crate::limits;
use crate::outage::RepeatedCall;
use crate::retry::timed;
use crate::session::{Session, takes};

/// Renews the lease until the session is gone; stops what the server wants stopped, and what must not go on once
/// the lease has run out.
pub(crate) async fn keep_alive<T: Transport>(session: &Session<T>) {
    tokio::select! {
        biased;
        () = heartbeats(session) => {}
        () = watch_lease(session) => {}
    }
}

async fn heartbeats<T: Transport>(session: &Session<T>) {
    let mut next_at = Instant::now() + session.renew_every;
    let mut said_draining = false;
    let mut round_trip_ms = None;
    loop {
        tokio::select! {
            biased;
            () = session.draining.cancelled(), if !said_draining => {}
            () = sleep_until(next_at) => {}
        }
        let draining = session.draining.is_cancelled();
        let sent_at = Instant::now();
        let keeps = session.workdirs.listed();
        let canary = session.take_canary();
        let held = session.listed();
        // Told once: the next server to hear this worker may not know of it.
        let heartbeat =
            Heartbeat { session: session.id, held, draining, keeps, canary, round_trip_ms: round_trip_ms.take() };
        match timed(session.renew_every, session.transport.heartbeat(heartbeat)).await {
            Ok(renewed) if renewed.known => {
                session.outage.over(RepeatedCall::Renewal);
                let took = Millis::from(sent_at.elapsed());
                session.measured(took, &renewed.takes);
                round_trip_ms = takes(&renewed.takes, ROUND_TRIP).then_some(took);
                session.lease.renew(sent_at, renewed.lease_ms.as_duration());
                for at in renewed.stop {
                    info!(run = %at.run, position = at.position, attempt = at.attempt, "the server stops an attempt");
                    session.stop(at);
                }
                for at in renewed.over {
                    info!(run = %at.run, "the run is not this worker's any more; its directory goes");
                    session.workdirs.let_go(at);
                }
                session.noticed(renewed.notice);
                if renewed.prove {
                    session.prove.notify_one();
                }
                if renewed.drain {
                    session.drained.cancel();
                }
                said_draining = draining;
                next_at = sent_at + session.renew_every;
            }
            Ok(_) => return session.gone.cancel(),
            Err(error) if error.is_session_gone() => return session.gone.cancel(),
            // Its credential was revoked: what it holds is given to others, and is not its to go on with.
            Err(error) if error.is_unauthorized() => {
                warn!(%error, "the server does not accept this worker any more; its steps are stopped");
                return session.gone.cancel();
            }
            Err(error) => {
                session.outage.met(RepeatedCall::Renewal, &error);
                said_draining = draining;
                next_at = Instant::now() + session.jitter.spread(limits::RENEWAL_PAUSE);
            }
        }
    }
}

/// Tries the controls of the sandbox out again whenever the server asks for it. Never returns.
pub(crate) async fn prove_when_asked<T: Transport>(session: &Session<T>, commands: &Commands) {
    loop {
        session.prove.notified().await;
        let report = commands.canary().await;
        if let Some(why) = &report.why {
            warn!(why, "this worker is errored, and its sandbox does not hold");
        } else {
            info!("this worker is errored; the controls of its sandbox were tried out again, and hold");
        }
        session.proved(report);
    }
}

/// Never returns: a lease that has run out may still be renewed.
async fn watch_lease<T: Transport>(session: &Session<T>) {
    loop {
        session.lease.ran_out().await;
        warn!(session = %session.id, "the lease ran out without a renewal; commands, and tasks that must not run twice, are stopped");
        session.stop_unleased();
        session.lease.renewed().await;
    }
}
