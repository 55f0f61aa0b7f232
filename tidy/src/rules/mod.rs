//! One rule, one file.

pub mod attributes;
pub mod circles;
pub mod clock;
pub mod comparison;
pub mod controls;
pub mod dependencies;
pub mod direction;
pub mod documents;
pub mod left_out;
pub mod length;
pub mod links;
pub mod make_targets;
pub mod migrations;
pub mod names;
pub mod spelling;
pub mod sql;
pub mod states;
pub mod store_access;
pub mod type_names;
pub mod unfinished;
pub mod unrun;
pub mod unsafe_code;
