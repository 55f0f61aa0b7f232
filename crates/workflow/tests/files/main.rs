//! Whole files: what is read, what is refused and how it is said, and what becomes of it.

mod connectors;
mod costs;
mod diagnostics;
mod inputs;
mod plans;
mod published;
