//! Schedules, which start a workflow at times, and what became of their slots.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{ScheduleRow, ScheduleSpec, SlotRow};
pub use writes::{AddSchedule, ChangeSchedule, RemoveSchedule};
