//! A wrong clock, for the whole process: a preloaded library replaces the system's.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use zenobe_testing::{ServerProcess, TemporaryDirectory};

use crate::commands::zenobe;
use crate::triggers::admin;

const DAY_S: i64 = 24 * 60 * 60;

struct WrongClock {
    library: PathBuf,
    offset: PathBuf,
}

impl WrongClock {
    fn new(directory: &TemporaryDirectory) -> WrongClock {
        let library = directory.path().join("wrong_clock.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/wrong_clock.c");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
        let compiled = Command::new(compiler)
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([library.as_os_str(), source.as_ref()])
            .status();
        assert!(compiled.expect("a C compiler").success());
        let clock = WrongClock { library, offset: directory.path().join("offset") };
        clock.set(0);
        clock
    }

    /// Replaces the file as a whole, because it may be read at any moment.
    fn set(&self, offset_s: i64) {
        let new = self.offset.with_extension("new");
        fs::write(&new, offset_s.to_string()).unwrap();
        fs::rename(&new, &self.offset).unwrap();
    }

    fn zenobe(&self, arguments: &[&str]) -> Command {
        let mut command = zenobe(arguments);
        command.env("LD_PRELOAD", &self.library).env("CLOCK_OFFSET_FILE", &self.offset);
        command
    }

    fn serve(&self, arguments: &[&str]) -> ServerProcess {
        let common = ["serve", "--listen", "127.0.0.1:0", "--log", "error"];
        ServerProcess::launch(&mut self.zenobe(&[&common[..], arguments].concat()))
    }
}

/// libfaketime allocates when it is first asked for the time, which used to happen while the
/// allocator was initialising.
#[test]
fn a_library_that_replaces_the_clock_may_allocate() {
    let directory = TemporaryDirectory::new("early-clock");
    let clock = WrongClock::new(&directory);
    clock.set(-DAY_S);
    let output = clock.zenobe(&["--version"]).output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    assert!(output.stdout.starts_with(b"zenobe "));
}

#[test]
fn the_date_follows_the_clock_back_and_forth() {
    let directory = TemporaryDirectory::new("date");
    let clock = WrongClock::new(&directory);
    let process = clock.serve(&["--memory"]);
    let mut client = process.client();
    // The same connection, and therefore the same thread.
    let mut date = || {
        let reply = client.send("GET", "/", &[], b"").unwrap();
        reply.header("date").expect("a date").to_owned()
    };
    let year = |date: &str| date.split(' ').nth(3).unwrap().parse::<i64>().unwrap();
    let first = year(&date());
    for years in [-2, 1, -1, 0] {
        clock.set(years * 366 * DAY_S);
        let shown = year(&date());
        // Within a few days of the turn of a year, one more may have passed.
        assert!((0..=1).contains(&(shown - first - years)), "{years}: {shown} after {first}");
    }
}

#[test]
fn a_jump_pauses_expiry_until_it_is_confirmed() {
    let directory = TemporaryDirectory::new("jump");
    let clock = WrongClock::new(&directory);
    let data = directory.path().join("data");
    let data = ["--data", data.to_str().unwrap()];
    let is_paused = |process: &ServerProcess| {
        let (status, clock) = admin(process, "GET", "/_zenobe/clock", &Value::Null);
        assert_eq!(status, 200, "{clock}");
        let paused = clock["expiry_paused"].as_bool().unwrap();
        let endpoint = process.endpoint();
        let shown = zenobe(&["clock", "status", "--endpoint", &endpoint]).output().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(shown.contains("zenobe clock confirm"), paused, "{shown}");
        let metrics = process.client().send("GET", "/metrics", &[], b"").unwrap();
        let metrics = String::from_utf8(metrics.bytes).unwrap();
        let line = format!("\nzenobe_expiry_paused {}\n", u8::from(paused));
        assert!(metrics.contains(&line), "{metrics}");
        paused
    };
    let process = clock.serve(&data);
    assert!(!is_paused(&process));
    process.stop();

    clock.set(3 * DAY_S);
    let process = clock.serve(&data);
    assert!(is_paused(&process));
    clock.set(0);
    assert!(!is_paused(&process), "time is plausible again");
    clock.set(3 * DAY_S);
    assert!(is_paused(&process));
    let endpoint = process.endpoint();
    let confirmed = zenobe(&["clock", "confirm", "--endpoint", &endpoint]).output().unwrap();
    assert!(confirmed.status.success(), "{confirmed:?}");
    assert!(!is_paused(&process));
    process.stop();
    let process = clock.serve(&data);
    assert!(!is_paused(&process), "it is remembered");
    assert_eq!(admin(&process, "GET", "/_zenobe/clock/confirm", &Value::Null).0, 405);
    process.stop();

    clock.set(9 * DAY_S);
    let process = clock.serve(&[&data[..], &["--clock-jump-seconds", "0"]].concat());
    assert!(!is_paused(&process), "every clock is believed");
    assert_eq!(admin(&process, "POST", "/_zenobe/clock/confirm", &json!({})).0, 200);
}
