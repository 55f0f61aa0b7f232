//! Calls against real sockets on loopback: which address is connected to is what these tests are about.

mod redirects;
mod rules;
mod server;
mod sizes;
