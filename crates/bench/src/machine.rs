//! What the operating system reports about this machine and about a process.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::Result;

pub const MEBIBYTE: f64 = 1024.0 * 1024.0;
const MEMORY_INTERVAL: Duration = Duration::from_millis(500);

/// The machine in one line, without anything that identifies it.
pub fn describe() -> String {
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = field("/proc/meminfo", "MemTotal")
        .and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(String::new(), |kilobytes| format!(", {:.0} GB of memory", kilobytes / 1e6));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{cpu}, {cores} cores{memory}, Linux {}", kernel.trim())
}

/// The memory of a process.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// All of it, including the mapped pages of files.
    pub resident_mib: f64,
    /// Only what it has allocated.
    pub anonymous_mib: f64,
}

impl Memory {
    fn max(self, other: Memory) -> Memory {
        Memory {
            resident_mib: self.resident_mib.max(other.resident_mib),
            anonymous_mib: self.anonymous_mib.max(other.anonymous_mib),
        }
    }
}

pub fn memory(process: u32) -> Result<Memory> {
    let path = format!("/proc/{process}/status");
    let mebibytes = |name: &str| -> Result<f64> {
        let text = field(&path, name).ok_or_else(|| format!("no {name} of process {process}"))?;
        let kibibytes: f64 = text.split_whitespace().next().unwrap_or_default().parse()?;
        Ok(kibibytes / 1024.0)
    };
    Ok(Memory { resident_mib: mebibytes("VmRSS")?, anonymous_mib: mebibytes("RssAnon")? })
}

/// Runs the work while watching a process. Also returns the peak figures.
pub fn watching_memory<T>(process: u32, work: impl FnOnce() -> Result<T>) -> Result<(T, Memory)> {
    std::thread::scope(|scope| {
        let (end, ended) = mpsc::channel::<()>();
        let watch = scope.spawn(move || -> Result<Memory> {
            let mut most = memory(process)?;
            // Ends when the other half of the channel is dropped.
            while ended.recv_timeout(MEMORY_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                most = most.max(memory(process)?);
            }
            Ok(most.max(memory(process)?))
        });
        let done = work();
        drop(end);
        let most = watch.join().map_err(|_| "the watch panicked")?;
        Ok((done?, most?))
    })
}

/// The processor time that a process and its children, running or ended, have used since they started.
pub fn cpu_time(process: u32) -> Result<Duration> {
    let mut sum = own_cpu_time(process)?;
    let path = format!("/proc/{process}/task/{process}/children");
    // Some kernels do not list children; then only the process itself counts.
    let children = fs::read_to_string(path).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
        // A child may have just ended.
        sum += own_cpu_time(child).unwrap_or_default();
    }
    Ok(sum)
}

/// That of the process, and of its children that have ended.
fn own_cpu_time(process: u32) -> Result<Duration> {
    let ticks = cpu_ticks(&fs::read_to_string(format!("/proc/{process}/stat"))?)?;
    Ok(duration(ticks.iter().sum()))
}

/// The processor time of this process without its children.
pub fn cpu_time_here() -> Result<Duration> {
    let [user, system, ..] = cpu_ticks(&fs::read_to_string("/proc/self/stat")?)?;
    Ok(duration(user + system))
}

/// For how long the cores had nothing to do since the machine started, in sum.
pub fn idle_time() -> Result<Duration> {
    Ok(duration(idle_ticks(&fs::read_to_string("/proc/stat")?)?))
}

/// The fourth and fifth number: idle, and idle while something waits for a disk.
fn idle_ticks(statistics: &str) -> Result<u64> {
    let all = statistics.strip_prefix("cpu ").ok_or("the system has no statistics")?;
    let idle = all.split_whitespace().skip(3).take(2).map(str::parse::<u64>);
    Ok(idle.sum::<std::result::Result<_, _>>()?)
}

fn duration(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// The fields 14 to 17 of a process's statistics: user and system time, of itself and of children.
fn cpu_ticks(statistics: &str) -> Result<[u64; 4]> {
    // The program's name is in parentheses and may contain spaces.
    let (_, fields) = statistics.rsplit_once(')').ok_or("the process has no statistics")?;
    let ticks = fields.split_whitespace().skip(11).take(4);
    let ticks: Vec<u64> = ticks.map(str::parse).collect::<std::result::Result<_, _>>()?;
    ticks.try_into().map_err(|_| "the statistics end early".into())
}

/// The value of the first `name: value` line in a kernel file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_uses_the_processor() {
        let memory = memory(std::process::id()).unwrap();
        assert!(memory.resident_mib >= memory.anonymous_mib);
        assert!(memory.anonymous_mib > 0.0);
        assert!(cpu_time(std::process::id()).unwrap() < Duration::from_secs(3600));
        assert!(cpu_time(u32::MAX).is_err());
        assert!(cpu_time_here().unwrap() <= cpu_time(std::process::id()).unwrap());
    }

    #[test]
    fn cores_that_wait_for_a_disk_are_idle() {
        let statistics = "cpu  10 20 30 400 5 6 7 8 0 0\ncpu0 5 10 15 200 2 3 3 4 0 0\n";
        assert_eq!(idle_ticks(statistics).unwrap(), 405);
        assert!(idle_ticks("cpu0 1 2 3 4 5").is_err() && idle_ticks("cpu 1 2 3 x 5").is_err());
        assert!(idle_time().is_ok());
    }

    #[test]
    fn children_that_have_ended_count() {
        let statistics = "7 (a (name) b) S 1 7 7 0 -1 4194560 9 9 9 9 1000 200 30 4 20 0 2 0 99";
        assert_eq!(cpu_ticks(statistics).unwrap(), [1000, 200, 30, 4]);
        for damaged in ["7 name S 1", "7 (name) S 1 7 7 0 -1 4194560 9 9 9 9 1000 200 30", ""] {
            assert!(cpu_ticks(damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn memory_that_is_freed_later_still_counts() {
        let own = std::process::id();
        let before = memory(own).unwrap();
        let use_some = || {
            let held = vec![1_u8; 64 << 20];
            std::thread::sleep(2 * MEMORY_INTERVAL);
            Ok(held.iter().map(|&byte| u64::from(byte)).sum::<u64>())
        };
        let (sum, most) = watching_memory(own, use_some).unwrap();
        assert_eq!(sum, 64 << 20);
        assert!(most.anonymous_mib > before.anonymous_mib + 32.0, "{before:?} {most:?}");
        assert!(watching_memory(own, || -> Result<()> { Err("no".into()) }).is_err());
        assert!(watching_memory(u32::MAX, || Ok(())).is_err());
    }
}
