//! The recorder and the disk that it describes.
#![cfg(target_os = "linux")]

mod power_cut;
mod recording;
