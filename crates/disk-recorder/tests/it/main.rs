//! The recorder, and the disk that it simulates.
#![cfg(target_os = "linux")]

mod power_cut;
mod recording;
