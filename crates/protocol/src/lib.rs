//! What goes over the wire, and nothing else: no server, no database, no clock.
//!
//! [`runs`] holds what is asked and answered about runs, [`schedules`] and [`webhooks`] about what starts them and
//! what they tell, [`agent`] the calls of a worker;
//! [`call`] what goes with each of them, [`operations`] what an operator looks at;
//! [`transport::Transport`] is the trait through which a worker makes them, wherever the engine is.
//! [`problem::Problem`] is how every refusal looks on the wire. [`body`] reads the few messages whose JSON needs care.

pub mod agent;
pub mod approvals;
pub mod audit;
pub mod body;
pub mod broker;
pub mod bulk;
pub mod call;
pub mod changes;
pub mod channel;
pub mod code;
pub mod delegations;
pub mod enrolment;
pub mod executions;
pub mod health;
pub mod identity;
pub mod live;
pub mod operations;
pub mod output;
pub mod policy;
pub mod problem;
pub mod runs;
pub mod schedules;
pub mod slack;
pub mod transport;
pub mod webhooks;
pub mod workflows;
