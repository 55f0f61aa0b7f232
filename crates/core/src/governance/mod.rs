//! What may happen, and who has to be asked first.

pub mod action;
pub mod judge;
pub mod modes;
pub mod stricter;
