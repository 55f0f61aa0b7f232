//! Providers without a server: a folder, an age-encrypted file, variables of the environment, and a fixed list for tests.

pub mod age_file;
pub mod environment;
pub mod fixed;
pub mod folder;
