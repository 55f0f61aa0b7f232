//! The routes, asked in-process: an engine on a database in memory, in paused time. Only `live` and
//! `over_the_wire` open sockets.

mod agent;
mod api;
mod approvals;
mod bulk;
mod codes;
mod delegations;
mod directives;
mod documented;
mod duplicates;
mod ends;
mod executions;
mod guard;
mod guarded;
mod isolation;
mod keys;
mod limits;
mod lists;
mod live;
mod matrix;
mod observe;
mod oidc;
mod openapi;
mod over_the_wire;
mod payloads;
mod people;
mod refusals;
mod repeats;
mod runs;
mod schedules;
mod servers;
mod signals;
mod webhook_endpoints;
mod webhooks;
mod workflows;
