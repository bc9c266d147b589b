//! The embedded store as its users see it: one binary, by subject.

mod conformance;
mod crash;
mod damage;
mod damaged_log;
mod damaged_manifest;
mod directory;
#[cfg(target_os = "linux")]
mod disk_failure;
#[cfg(target_os = "linux")]
mod faults;
mod forged_log;
mod handover;
mod ledger;
mod overlap;
#[cfg(target_os = "linux")]
mod power_cuts;
mod prefixes;
mod process;
mod shipping;
