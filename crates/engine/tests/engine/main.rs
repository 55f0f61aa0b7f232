//! The engine over both databases.

mod caps;
mod feed;
mod restore;
mod rig;
mod runs;
mod signals;
mod subjects;
mod tenants;
mod workflows;
