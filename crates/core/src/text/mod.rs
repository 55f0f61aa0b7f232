//! Text for people: what was meant, and what is safe to show.

pub mod article;
pub mod json_words;
pub mod nearest;
pub mod panic;
pub mod visible;
