//! Running a part of a test in a child process, by executing this test binary again.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DIRECTORY_VARIABLE: &str = "ZENOBE_TEST_CHILD_DIRECTORY";

/// The directory to work in, if this process is a child. A test that is a child's body returns otherwise.
pub fn child_directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from)
}

/// A command that runs one test of this binary as a child, with its output piped.
pub fn child(test: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    set_up(&mut command, test, directory);
    command
}

/// The same, in a process that can write no file beyond a size, and gets an error when it tries.
pub fn child_with_file_size_limit(test: &str, directory: &Path, blocks: u32) -> Command {
    let mut command = Command::new("sh");
    let script = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$0\" \"$@\"");
    command.arg("-c").arg(script).arg(std::env::current_exe().unwrap());
    set_up(&mut command, test, directory);
    command
}

fn set_up(command: &mut Command, test: &str, directory: &Path) {
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY_VARIABLE, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit());
}

/// One call for a line, so that an acknowledgement is one record.
pub fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    output.write_all(format!("{line}\n").as_bytes()).unwrap();
    output.flush().unwrap();
}
