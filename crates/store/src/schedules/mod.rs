//! Schedules, which start a workflow at times, and what became of their slots.

mod reads;
mod rows;
pub(crate) mod sql;

pub use rows::{ScheduleRow, ScheduleSpec, SlotRow};
