//! The options that all commands share: what to measure, and where.

use std::path::PathBuf;

use clap::Args;

use crate::Result;
use crate::cleanup::{self, Scratch};
use crate::file_system::FileSystem;

#[derive(Args)]
pub struct Surroundings {
    /// Where the data of what is measured lies while it is measured
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    data_dir: PathBuf,
    /// The server's binary
    #[arg(long)]
    pub binary: PathBuf,
    /// The clone in which documents are written
    #[arg(long)]
    pub repository: PathBuf,
}

impl Surroundings {
    /// A directory for data that is removed at the end, even after a signal.
    pub fn scratch(&self) -> Result<Scratch> {
        cleanup::on_signals()?;
        Scratch::create(&self.data_dir)
    }

    /// The kind of file system that holds the data. Rejects one without durability: there a sync is
    /// free, and every figure for a durable write would be a lie.
    pub fn durable_file_system(&self) -> Result<String> {
        let FileSystem { kind, is_durable } = FileSystem::of(&self.data_dir)?;
        match is_durable {
            true => Ok(kind),
            false => Err(format!(
                "the data would lie in memory ({kind}), where making a write durable costs nothing: name a directory on \
                 a disk with --data-dir"
            )
            .into()),
        }
    }
}

/// Parses these options of a command, with the required ones added.
#[cfg(test)]
pub fn parsed<O: Args>(words: &str) -> O {
    #[derive(clap::Parser)]
    struct TestArguments<O: Args> {
        #[command(flatten)]
        options: O,
    }

    let fixed = ["zenobe-bench", "--binary", "b", "--repository", "r"];
    let words = fixed.into_iter().chain(words.split_whitespace());
    <TestArguments<O> as clap::Parser>::parse_from(words).options
}
