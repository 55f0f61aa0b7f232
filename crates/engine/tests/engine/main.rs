//! The engine over both databases.

mod bucket;
mod caps;
mod feed;
mod outbox;
mod payloads;
mod restore;
mod rig;
mod runs;
mod sessions;
mod signals;
mod subjects;
mod tenants;
mod workflows;
