//! The binary as a process: its configuration, its errors, and its data.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use zenobe_testing::{ServerProcess, Signal, TemporaryDirectory, without_options};

fn file(directory: &TemporaryDirectory, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

pub fn zenobe(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zenobe"));
    without_options(command.args(arguments).stdin(Stdio::null()));
    command
}

/// The command refuses to run and says why in one line.
pub fn check_refusal(command: &mut Command, code: i32, expected: &str) {
    let text = refusal(command, code, expected);
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// The command line is wrong, and the explanation may take several lines.
pub fn check_usage_error(command: &mut Command, expected: &str) {
    refusal(command, 2, expected);
}

fn refusal(command: &mut Command, code: i32, expected: &str) -> String {
    let output: Output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(expected), "{text}");
    text
}

fn health(server: &ServerProcess) -> String {
    server.client().send("GET", "/", &[], b"").unwrap().text()
}

/// The names of the server's threads, truncated to fifteen bytes by the system.
#[cfg(target_os = "linux")]
pub fn threads(server: &ServerProcess) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", server.id())).unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.map(|name| name.trim_end().to_owned()).collect()
}

#[test]
fn the_welcome_names_address_data_durability_and_a_command() {
    let directory = TemporaryDirectory::new("welcome");
    let data = directory.path().join("data");
    let data = data.to_str().unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--data", data];
    let process = ServerProcess::launch(&mut zenobe(&arguments));
    let address = process.address();
    assert_ne!(address.port(), 0);
    assert_eq!(
        process.first_lines(5),
        [
            format!("zenobe {} is listening on http://{address}", env!("CARGO_PKG_VERSION")),
            format!("  data        {data}"),
            "  durability  sync: an acknowledged write survives power loss".into(),
            "  credentials any are accepted (loopback)".into(),
            format!(
                "  try         aws dynamodb list-tables --endpoint-url http://{address} \
                 --region us-east-1"
            ),
        ]
    );
    let mut second = zenobe(&arguments);
    let holder = process.id();
    let expected =
        format!("cannot open the data directory {data}: process {holder} (zenobe) has it open");
    check_refusal(&mut second, 1, &expected);
    process.stop();
    // The store was closed properly and opens again.
    ServerProcess::launch(&mut zenobe(&arguments)).stop_by(Signal::INT);
}

#[test]
fn only_the_owner_can_read_what_the_server_creates() {
    let directory = TemporaryDirectory::new("modes");
    let data = directory.path().join("data");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    ServerProcess::launch(&mut zenobe(&arguments)).stop();
    let mut left = vec![data];
    while let Some(path) = left.pop() {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        match path.is_dir() {
            true => {
                assert_eq!(mode, 0o700, "{}", path.display());
                left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
            false => assert_eq!(mode, 0o600, "{}", path.display()),
        }
    }
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let directory = TemporaryDirectory::new("precedence");
    let file = file(&directory, "zenobe.toml", "region = 'file-1'\nmemory = true\nlog = 'warn'\n");
    let config = ["serve", "--listen", "127.0.0.1:0", "--config", file.to_str().unwrap()];
    let check = |command: &mut Command, region: &str| {
        let process = ServerProcess::launch(command);
        assert_eq!(health(&process), format!("healthy: dynamodb.{region}.amazonaws.com "));
        assert_eq!(process.first_lines(2)[1], "  data        in memory");
    };
    check(&mut zenobe(&config), "file-1");
    check(zenobe(&config).env("ZENOBE_REGION", "env-1"), "env-1");
    let flags = [&config[..], &["--region", "flag-1"]].concat();
    check(zenobe(&flags).env("ZENOBE_REGION", "env-1"), "flag-1");
    let by_environment = ["serve", "--listen", "127.0.0.1:0"];
    check(zenobe(&by_environment).env("ZENOBE_CONFIG", &file), "file-1");
}

#[test]
fn bad_configuration_is_a_usage_error() {
    let directory = TemporaryDirectory::new("usage");
    let with_file = |text: &str| {
        let file = file(&directory, "zenobe.toml", text);
        zenobe(&["serve", "--memory", "--config", file.to_str().unwrap()])
    };
    check_refusal(
        &mut with_file("cache-md = 1"),
        2,
        "zenobe.toml:1:1: there is no option `cache-md`; did you mean `cache-mb`?",
    );
    check_refusal(&mut with_file("listen ="), 2, "zenobe.toml:1:9: this is not valid TOML: ");
    check_refusal(&mut with_file("cache-mb = 'much'"), 2, "cache-mb: `much` is not valid");
    let mut absent = zenobe(&["serve", "--config", "/absent.toml"]);
    check_refusal(&mut absent, 2, "cannot read the configuration file /absent.toml");
    let mut both = zenobe(&["serve", "--memory", "--data", "x"]);
    check_refusal(&mut both, 2, "--memory and --data exclude each other");
    let keys = file(&directory, "keys", "a:b");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    let mut open = zenobe(&["serve", "--memory", "--credentials", keys.to_str().unwrap()]);
    check_refusal(&mut open, 2, "(mode 0644): run `chmod 600` on it");
    for (name, value, expected) in [
        ("ZENOBE_MEMORY", "perhaps", "ZENOBE_MEMORY: `perhaps` is not valid: "),
        ("ZENOBE_DURABILITY", "no", "ZENOBE_DURABILITY: `no` is not valid: expected sync or os"),
        ("ZENOBE_LISTEN", "here", "ZENOBE_LISTEN: `here` is not valid: expected ADDRESS:PORT"),
    ] {
        check_refusal(zenobe(&["serve"]).env(name, value), 2, expected);
    }
}

#[test]
fn unknown_flags_get_a_suggestion() {
    let check = |arguments: &[&str], expected: &str| {
        check_usage_error(&mut zenobe(arguments), expected);
    };
    check(&["serve", "--prot", "8000"], "a similar argument exists: '--port'");
    check(&["serve", "--cache-md", "8"], "a similar argument exists: '--cache-mb'");
    check(
        &["serve", "--region", ""],
        "expected 1 to 64 letters, digits, `-` and `_`, such as us-east-1",
    );
    check(&["serve", "--listen", "localhost"], "expected ADDRESS:PORT, such as 127.0.0.1:8000");
}

#[test]
fn a_port_is_an_address() {
    for listen in ["0", ":0"] {
        let process =
            ServerProcess::launch(&mut zenobe(&["serve", "--memory", "--listen", listen]));
        assert!(process.address().ip().is_loopback());
    }
}

#[test]
fn variables_without_effect_get_a_warning() {
    let expected =
        "the environment variable ZENOBE_MEMROY sets no option; did you mean `ZENOBE_MEMORY`?";
    let mut command = zenobe(&["serve", "--memory", "--listen", "127.0.0.1:0"]);
    ServerProcess::launch(command.env("ZENOBE_MEMROY", "1")).expect_output(expected);
    // An error may have the same cause.
    let mut refused = zenobe(&["serve", "--memory", "--data", "x"]);
    let output = refused.env("ZENOBE_MEMROY", "1").output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with(&format!("zenobe: warning: {expected}\nzenobe: ")), "{text}");
}

#[test]
fn empty_variables_are_not_there() {
    let mut command = zenobe(&["serve", "--memory", "--listen", "127.0.0.1:0"]);
    for name in ["ZENOBE_REGION", "ZENOBE_CONFIG", "ZENOBE_CACHE_MB", "ZENOBE_CREDENTIALS"] {
        command.env(name, "");
    }
    assert!(health(&ServerProcess::launch(&mut command)).contains("us-east-1"));
}

#[test]
fn beyond_loopback_the_server_needs_credentials() {
    let open = ["serve", "--memory", "--listen", "0.0.0.0:0"];
    check_refusal(
        &mut zenobe(&open),
        2,
        "give --credentials, or --insecure-accept-any-credentials",
    );
    let insecure = [&open[..], &["--insecure-accept-any-credentials"]].concat();
    let process = ServerProcess::launch(&mut zenobe(&insecure));
    assert_eq!(process.first_lines(4)[3], "  credentials any are accepted, from anywhere");
    let mut verifying = zenobe(&open);
    let process = ServerProcess::launch(verifying.env("ZENOBE_CREDENTIALS", "a:b,c:d"));
    assert_eq!(process.first_lines(4)[3], "  credentials signatures are verified, 2 access keys");
    let mut bad = zenobe(&open);
    check_refusal(bad.env("ZENOBE_CREDENTIALS", "a:b,secret"), 2, "entry 2 of the credentials");
}

#[test]
fn errors_of_the_system_take_one_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = zenobe(&["serve", "--memory", "--listen", &address]);
    check_refusal(&mut command, 1, &format!("cannot listen on {address}: "));
    let directory = TemporaryDirectory::new("unwritable");
    let file = file(&directory, "file", "");
    let data = file.join("data");
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()];
    let (data, file) = (data.display(), file.display());
    let expected =
        format!("zenobe: cannot open the data directory {data}: {file} is not a directory\n");
    check_refusal(&mut zenobe(&arguments), 1, &expected);
}

#[test]
fn the_version_and_the_help_are_there() {
    let output = zenobe(&["--version"]).output().unwrap();
    let version = format!("zenobe {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), version);
    let output = zenobe(&["serve", "--help"]).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("Example:\n  zenobe serve"));
}

/// The reference is generated; `ZENOBE_BLESS=1` rewrites it.
#[test]
fn the_configuration_reference_is_up_to_date() {
    let output = zenobe(&["config-reference"]).output().unwrap();
    let generated = String::from_utf8(output.stdout).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
        fs::write(path, &generated).unwrap();
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(written == generated, "docs/configuration.md is out of date: run with ZENOBE_BLESS=1");
}

#[test]
fn completions_and_man_pages_come_from_the_command_line_itself() {
    let print = |arguments: &[&str]| {
        let output = zenobe(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(print(&["completions", shell]).contains("cache-mb"), "{shell}");
    }
    let page = print(&["man", "serve"]);
    assert!(page.contains("zenobe\\-serve") && page.contains("ZENOBE_CACHE_MB"), "{page}");
    assert!(print(&["man"]).contains("zenobe\\-trigger"));
    check_refusal(&mut zenobe(&["man", "serv"]), 1, "no command `serv`; did you mean `serve`?");
    let directory = TemporaryDirectory::new("man");
    print(&["man", "--output", directory.path().to_str().unwrap()]);
    for page in ["zenobe.1", "zenobe-serve.1", "zenobe-trigger-add.1"] {
        assert!(directory.path().join(page).exists(), "{page}");
    }
}

#[test]
fn a_server_is_asked_for_its_health() {
    let server =
        ServerProcess::launch(&mut zenobe(&["serve", "--memory", "--listen", "127.0.0.1:0"]));
    let endpoint = server.endpoint();
    for check in [&["health"][..], &["health", "--live"]] {
        let output = zenobe(check).args(["--endpoint", &endpoint]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains("true"), "{output:?}");
    }
    server.stop();
    check_refusal(zenobe(&["health"]).args(["--endpoint", &endpoint]), 1, "cannot connect to");
}
