//! The server itself, started as a user would start it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::cleanup::Process;
use crate::measure::{Lane, Sample};
use crate::{Result, machine, progress};

/// A large store may have much to write before a clean stop.
const STOP_PATIENCE: Duration = Duration::from_secs(120);

/// A server that uses less than a fiftieth of a core in one step is idle.
const SETTLE_STEP: Duration = Duration::from_millis(500);
const SETTLE_MAX: Duration = Duration::from_secs(60);

/// The server's default cache size.
pub const CACHE_MIB_DEFAULT: u32 = 384;

/// How the server keeps its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keeping {
    Memory,
    Os,
    Sync,
    /// In a PostgreSQL that others may use, too.
    Shared {
        url: String,
    },
}

pub struct Server {
    process: Process,
    pub address: SocketAddr,
    data: PathBuf,
}

impl Server {
    /// Returns once the server has printed its address.
    pub fn start(binary: &Path, data: &Path, keeping: Keeping) -> Result<Server> {
        Server::start_with(binary, data, keeping, &[])
    }

    pub fn start_with(
        binary: &Path,
        data: &Path,
        keeping: Keeping,
        options: &[&str],
    ) -> Result<Server> {
        std::fs::create_dir_all(data)?;
        let store = data.join("store");
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(options);
        match keeping {
            Keeping::Memory => command.arg("--memory"),
            Keeping::Os => command.args(["--durability", "os", "--data"]).arg(&store),
            Keeping::Shared { url } => command.args(["--store", &url]),
            Keeping::Sync => command.args(["--durability", "sync", "--data"]).arg(&store),
        };
        let process = Process::start(&mut command)?;
        Ok(Server { address: process.address()?, process, data: store })
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Stops it as an operator does, so the next start has nothing to recover.
    pub fn stop(self) -> Result<()> {
        self.process.stop(STOP_PATIENCE)
    }

    /// Waits until the server is idle.
    pub fn settle(&self, title: &str) -> Result<()> {
        let end = Instant::now() + SETTLE_MAX;
        loop {
            progress::show(&format!("{title}: waiting for the end of compactions"));
            let before = machine::cpu_time(self.id())?;
            std::thread::sleep(SETTLE_STEP);
            let used = machine::cpu_time(self.id())? - before;
            if used < SETTLE_STEP / 50 || Instant::now() > end {
                return Ok(());
            }
        }
    }

    /// A lane that waits before each round until the previous lane's compactions are done.
    pub fn at_rest<'a>(
        &'a self,
        title: &'a str,
        name: &str,
        mut run: impl FnMut(Duration) -> Result<Sample> + 'a,
    ) -> Lane<'a> {
        Lane::new(name, move |duration| {
            self.settle(title)?;
            run(duration)
        })
    }

    /// The size of the write-ahead logs.
    pub fn log_bytes(&self) -> Result<u64> {
        sum_of_files(&self.data, |name| name.ends_with(".log"))
    }

    /// The size of all its files.
    pub fn data_bytes(&self) -> Result<u64> {
        sum_of_files(&self.data, |_| true)
    }
}

/// Files may vanish during the count: the store deletes obsolete ones.
fn sum_of_files(directory: &Path, wanted: fn(&str) -> bool) -> Result<u64> {
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)?.flatten() {
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_dir() {
            sum += sum_of_files(&entry.path(), wanted)?;
        } else if wanted(&entry.file_name().to_string_lossy()) {
            sum += metadata.len();
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_cache_is_the_one_in_the_servers_help() {
        let output = Command::new(zenobe_testing::server_binary())
            .args(["serve", "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let told = format!("[env: ZENOBE_CACHE_MB] [default: {CACHE_MIB_DEFAULT}]");
        // The help text is wrapped.
        let words: Vec<&str> = help.split_whitespace().collect();
        assert!(words.join(" ").contains(&told), "{help}");
    }
}
