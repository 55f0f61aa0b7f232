//! The routes, asked in-process: an engine on a database in memory, in paused time. Only `live` and
//! `over_the_wire` open sockets.

mod agent;
mod api;
mod directives;
mod documented;
mod guard;
mod keys;
mod live;
mod matrix;
mod openapi;
mod over_the_wire;
mod refusals;
mod runs;
mod signals;
mod workflows;
