//! A real process is recorded. Calls that can't be recorded end it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use zenobe_disk_recorder::{
    Calls, Control, Disk, DiskFault, Event, Image, Recorder, Survival, Trace,
};

/// A directory to record, and one for the trace.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("disk-recorder-{name}-{}", std::process::id()));
        std::fs::create_dir_all(path.join("recorded")).unwrap();
        Scratch(path)
    }

    fn recorded(&self) -> PathBuf {
        self.0.join("recorded")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn shell(script: &str, directory: &Path, recorder: &Recorder) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(directory).envs(recorder.variables());
    command.output().unwrap()
}

#[test]
fn the_replay_is_the_directory() {
    let scratch = Scratch::new("replay");
    let recorder =
        Recorder::new(&scratch.recorded()).trace(&scratch.0.join("trace")).marks("told ");
    // Only shell builtins: other programs make calls that are not modelled.
    let script = "echo one > a; echo two >> a; echo three > b; echo four > b; exec 3<>a; echo FIVE >&3; echo told you";
    let output = shell(script, &scratch.recorded(), &recorder);
    assert!(output.status.success(), "{output:?}");
    let trace = Trace::read(&scratch.0.join("trace")).unwrap();
    let mut disk = Disk::new(&Image::default());
    trace.events.iter().for_each(|event| disk.apply(event));
    let found = disk.after_power_cut(&Survival::ALL);
    let real = Image::read(&scratch.recorded()).unwrap();
    assert_eq!(found.entries, real.entries, "{:?}", trace.events);
    assert_eq!(found.entries["a"].as_deref(), Some(&b"FIVE\nwo\n"[..]));
    assert!(trace.events.contains(&Event::Mark { data: b"told you\n".to_vec() }));
    assert!(disk.after_power_cut(&Survival::SYNCED) == Image::default());
}

#[test]
fn what_is_not_modelled_ends_the_process() {
    let scratch = Scratch::new("refusal");
    let recorder = Recorder::new(&scratch.recorded());
    let output = shell("ln -s x y", &scratch.recorded(), &recorder);
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("symlink") && text.contains("is not modelled"), "{text}");
    assert!(
        Image::read(&scratch.recorded()).unwrap() == Image::default(),
        "it was refused too late"
    );
}

#[test]
fn a_fault_hits_the_call_that_it_names() {
    let scratch = Scratch::new("fault");
    let control = Control::create(&scratch.0.join("control")).unwrap();
    let recorder = Recorder::new(&scratch.recorded()).control(&control);
    control.set(DiskFault { calls: Calls::WRITE, first: 2, count: 1, error: 28 });
    let output = shell("echo 1 > a; echo 2 >> a; echo 3 >> a", &scratch.recorded(), &recorder);
    assert!(String::from_utf8_lossy(&output.stderr).contains("I/O error"), "{output:?}");
    assert_eq!(std::fs::read(scratch.recorded().join("a")).unwrap(), b"1\n3\n");
    assert_eq!((control.calls(), control.failed()), (3, 1));
}

#[test]
fn a_process_is_killed_at_the_call_that_is_named() {
    let scratch = Scratch::new("kill");
    let control = Control::create(&scratch.0.join("control")).unwrap();
    let recorder = Recorder::new(&scratch.recorded()).control(&control);
    control.set(DiskFault { calls: Calls::WRITE, first: 2, count: 1, error: DiskFault::KILL });
    let output = shell("echo 1 > a; echo 2 >> a; echo 3 >> a", &scratch.recorded(), &recorder);
    assert_eq!(output.status.signal(), Some(9), "{output:?}");
    assert_eq!(std::fs::read(scratch.recorded().join("a")).unwrap(), b"1\n");
}
