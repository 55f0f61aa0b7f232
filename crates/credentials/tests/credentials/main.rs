//! Credentials against a simulated Vault, files and folders.

mod check;
mod contract;
mod faults;
mod harness;
mod leases;
mod login;
mod rusty_vault;
mod simulator;
mod sts;
mod sweep;
