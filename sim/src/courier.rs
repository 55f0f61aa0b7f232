//! Carries messages of the outbox to the simulated outside.

use std::sync::Arc;

use futures::future::BoxFuture;
use interlock_engine::deliver::{Deliver, DeliverError};
use interlock_store::OutboxMessage;
use tokio::time::sleep;

use crate::dice::Dice;
use crate::plans::DESTINATION;
use crate::sim::Sim;
use crate::swarm::Fault;

pub struct Courier {
    pub sim: Arc<Sim>,
    pub dice: Dice,
}

impl Deliver for Courier {
    fn takes(&self, destination: &str) -> bool {
        destination == DESTINATION
    }

    fn deliver<'a>(&'a self, message: &'a OutboxMessage) -> BoxFuture<'a, Result<(), DeliverError>> {
        Box::pin(async move {
            sleep(self.dice.millis(0..=50)).await;
            if self.sim.fires(Fault::DeliveryTrouble, &self.dice) {
                // Half of the failures are deliveries whose answer was lost.
                if self.dice.one_in(2) {
                    self.sim.delivered(message);
                }
                return Err(DeliverError::Later("the desk does not answer".into()));
            }
            self.sim.delivered(message);
            Ok(())
        })
    }
}
