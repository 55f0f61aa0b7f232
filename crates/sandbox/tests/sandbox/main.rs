//! Real sandboxes on this host. They need bubblewrap, root, and cgroups (docs/reference/sandbox.md).

mod canaries;
mod egress;
mod escape;
mod harness;
mod killing;
mod running;
