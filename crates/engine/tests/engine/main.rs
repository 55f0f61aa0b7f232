//! The engine over both databases.

mod audit;
mod backup;
mod bucket;
mod caps;
mod claims;
mod effects;
mod evidence;
mod feed;
mod judge;
mod messages;
mod outbox;
mod payloads;
mod races;
mod restore;
mod rig;
mod runs;
mod scan;
mod sessions;
mod signals;
mod skills;
mod subjects;
mod tenants;
mod unreadable;
mod votes;
mod workflows;
