//! Drives a real server as its users and its enemies would.
//!
//! `zenobe_testing::server_binary` finds or builds the server. Random tests print a seed;
//! `ZENOBE_SEED` replays it.

mod corruption;
#[cfg(target_os = "linux")]
mod disk_faults;
#[cfg(target_os = "linux")]
mod drill;
#[cfg(target_os = "linux")]
mod full_backup_disk;
#[cfg(target_os = "linux")]
mod full_disk_copies;
mod histories;
mod index_changes;
mod io_failure;
mod kill;
mod kill_catalog;
mod point_in_time;
mod recovery;
mod start;
mod statements;
mod streams;
mod tables;
mod typed_client;
