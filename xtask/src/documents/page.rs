//! Runs the blocks of one page in order, in one shell, in an empty directory beside an in-memory
//! server.
//!
//! Free ports replace the ports that pages show (8000, and others where a page needs several
//! servers), so that pages can run side by side and beside anything else on the machine. `zenobe`
//! is [`WRAPPER`] there.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Document;
use super::block::{Block, Mark, blocks};
use super::page_postgres::PagePostgres;
use crate::process::Failure;
use crate::{python, workspace};

const WRAPPER: &str = include_str!("zenobe.sh");

/// The ports that pages show.
const PORTS: [&str; 3] = ["8000", "8001", "9000"];

pub fn run(document: &Document, interpreter: &python::Interpreter) -> Result<(), Failure> {
    let blocks = blocks(&document.text);
    if !blocks.iter().any(is_run) {
        return Ok(());
    }
    let needs_postgres =
        blocks.iter().any(|block| is_run(block) && PagePostgres::is_shown_in(block.text));
    let page = Page::prepare(&document.path, needs_postgres)?;
    let script = page.script(&blocks)?;
    let outcome = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&page.directory)
        .env("PATH", page.path(interpreter))
        .env("PAGE_STATE", &page.state)
        .env("PAGE_PORT", &page.ports[0])
        .env("ZENOBE_BINARY", super::server_binary())
        .env("ZENOBE_ENDPOINT", format!("http://127.0.0.1:{}", page.ports[0]))
        // The page sets what it needs; the machine's configuration must not help or hurt.
        .env_remove("AWS_PROFILE")
        .env_remove("AWS_ACCESS_KEY_ID")
        .env_remove("AWS_SECRET_ACCESS_KEY")
        .env_remove("AWS_ENDPOINT_URL")
        .env("AWS_CONFIG_FILE", page.state.join("none"))
        .env("AWS_SHARED_CREDENTIALS_FILE", page.state.join("none"))
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_PAGER", "")
        .env("NO_PROXY", "127.0.0.1,localhost")
        .envs(interpreter.variables())
        .envs(page.postgres.iter().flat_map(PagePostgres::environment))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Failure::new(format!("1: cannot run bash: {error}")))?;
    if !outcome.status.success() {
        let line = page.read("line");
        let said = String::from_utf8_lossy(&outcome.stderr);
        let printed = page.read(&format!("output-{}", line.trim()));
        return Err(Failure::new(format!("{}: {}\n{said}", line.trim(), printed.trim())));
    }
    compare_outputs(&page, &blocks)
}

fn is_run(block: &Block<'_>) -> bool {
    let is_source = matches!(block.mark, Some(Mark::NotRun | Mark::From(_) | Mark::File(_)));
    !is_source && block.mark != Some(Mark::Output) && matches!(block.language, "sh" | "python")
}

/// Where a page runs.
struct Page {
    /// The directory that its commands see, empty at first.
    directory: PathBuf,
    /// This module's files about the page: outputs, process ids, the wrapper.
    state: PathBuf,
    ports: Vec<String>,
    postgres: Option<PagePostgres>,
}

impl Page {
    fn prepare(document: &Path, needs_postgres: bool) -> Result<Page, Failure> {
        let name = document.with_extension("").to_string_lossy().replace('/', "-");
        let home = workspace::target_directory().join("documents").join(name);
        let (directory, state) = (home.join("page"), home.join("state"));
        // The directory may not exist yet.
        let _ = fs::remove_dir_all(&home);
        for directory in [&directory, &state.join("bin")] {
            fs::create_dir_all(directory)
                .map_err(|error| Failure::file("create", directory, &error))?;
        }
        let wrapper = state.join("bin").join("zenobe");
        write_executable(&wrapper, WRAPPER)?;
        // One more than the page shows.
        let mut ports = free_ports(PORTS.len() + 1)?;
        let postgres = ports.pop().filter(|_| needs_postgres).map(PagePostgres::start);
        Ok(Page { directory, state, ports, postgres: postgres.transpose()? })
    }

    fn path(&self, interpreter: &python::Interpreter) -> OsString {
        let path = interpreter.path_with_scripts();
        let programs = self.postgres.iter().map(|postgres| postgres.programs().to_owned());
        let own = std::iter::once(self.state.join("bin")).chain(programs);
        let all = own.chain(std::env::split_paths(&path));
        std::env::join_paths(all).unwrap_or(path)
    }

    fn script(&self, blocks: &[Block<'_>]) -> Result<String, Failure> {
        let mut script = String::from(
            "set -eo pipefail\necho 1 >\"$PAGE_STATE/line\"\nzenobe serve --memory >/dev/null\n",
        );
        for block in blocks {
            let text = self.with_own_servers(block.text);
            if let Some(Mark::File(name)) = block.mark {
                let path = self.directory.join(name);
                fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))?;
            } else if is_run(block) {
                self.add(&mut script, block, &text);
            }
        }
        Ok(script)
    }

    fn add(&self, script: &mut String, block: &Block<'_>, text: &str) {
        let line = block.line;
        let _ = writeln!(script, "echo {line} >\"$PAGE_STATE/line\"");
        if let Some(Mark::With { path, name }) = block.mark {
            let command = if path.ends_with(".gz") { "gzip -dc" } else { "cat" };
            let path = workspace::root().join(path).display().to_string();
            let _ = writeln!(script, "{command} {} >{}", quoted(&path), quoted(name));
        }
        let body = match block.language {
            "python" => format!("python3 - <<'END_OF_PYTHON'\n{text}END_OF_PYTHON\n"),
            _ => text.to_owned(),
        };
        let output = format!("\"$PAGE_STATE/output-{line}\"");
        let _ = match block.mark {
            Some(Mark::Fails(fault)) => writeln!(
                script,
                // A separate shell, because `set -e` has no effect inside a condition.
                "if bash -ec {} >{output} 2>&1; then echo 'the block does not fail' >&2; exit 1; fi\n\
                 grep -qF -- {} {output} || {{ echo 'the block fails with another text' >&2; exit 1; }}",
                quoted(&body),
                quoted(fault)
            ),
            Some(Mark::UntilStopped) => {
                super::commands::of(&Block { text, ..*block }).iter().try_for_each(|command| {
                    writeln!(
                        script,
                        "timeout 2 bash -c {} >>{output} || [[ $? == 124 ]]",
                        quoted(command)
                    )
                })
            }
            // The same shell continues, so the next block sees this one's exports.
            _ => writeln!(script, "{{\n{body}}} >{output}"),
        };
    }

    /// The text with free ports and the page's own PostgreSQL in place of those that are shown.
    fn with_own_servers(&self, text: &str) -> String {
        let pairs = PORTS.iter().zip(&self.ports);
        let text =
            pairs.fold(text.to_owned(), |text, (shown, free)| replace_number(&text, shown, free));
        match &self.postgres {
            Some(postgres) => postgres.put_into(&text),
            None => text,
        }
    }

    fn with_shown_ports(&self, text: &str) -> String {
        let pairs = PORTS.iter().zip(&self.ports);
        pairs.fold(text.to_owned(), |text, (shown, free)| replace_number(&text, free, shown))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.state.join(name)).unwrap_or_default()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let entries = fs::read_dir(&self.state).into_iter().flatten().flatten();
        let is_pid = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pid");
        for path in entries.map(|entry| entry.path()).filter(is_pid) {
            if let Ok(pid) = fs::read_to_string(&path) {
                // The page may have stopped it already.
                let _ = Command::new("kill").arg(pid.trim()).stderr(Stdio::null()).status();
            }
        }
    }
}

/// Each output block must show what the block before it printed.
fn compare_outputs(page: &Page, blocks: &[Block<'_>]) -> Result<(), Failure> {
    let mut last_line = None;
    for block in blocks {
        if is_run(block) {
            last_line = Some(block.line);
        } else if block.mark == Some(Mark::Output) {
            let Some(line) = last_line else {
                return Err(Failure::new(format!("{}: no block was run before", block.line)));
            };
            let printed = page.with_shown_ports(&page.read(&format!("output-{line}")));
            if plain(&printed) != plain(block.text) {
                let line = block.line;
                return Err(Failure::new(format!("{line}: shown, but printed was:\n{printed}")));
            }
        }
    }
    Ok(())
}

/// Lines without invisible characters.
fn plain(text: &str) -> String {
    text.trim().replace('\t', " ").lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// Replaces a number where it stands alone, not inside a longer one.
fn replace_number(text: &str, number: &str, with: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(number) {
        let is_longer = before.ends_with(|character: char| character.is_ascii_digit())
            || after.starts_with(|character: char| character.is_ascii_digit());
        replaced.push_str(before);
        replaced.push_str(if is_longer { number } else { with });
        rest = after;
    }
    replaced + rest
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// All are held until the last is found, so they differ.
fn free_ports(count: usize) -> Result<Vec<String>, Failure> {
    let fault = |error| Failure::new(format!("1: there is no free port: {error}"));
    let listeners: Result<Vec<_>, _> =
        (0..count).map(|_| TcpListener::bind(("127.0.0.1", 0))).collect();
    let port =
        |listener: &TcpListener| Ok(listener.local_addr().map_err(fault)?.port().to_string());
    listeners.map_err(fault)?.iter().map(port).collect()
}

#[cfg(unix)]
fn write_executable(path: &Path, text: &str) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .map_err(|error| Failure::file("write", path, &error))
}

#[cfg(not(unix))]
fn write_executable(path: &Path, _: &str) -> Result<(), Failure> {
    Err(Failure::new(format!("{}: pages run on Unix only", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_are_replaced() {
        let text = "http://127.0.0.1:8000/ 80000 18000 8000";
        let replaced = replace_number(text, "8000", "4321");
        assert_eq!(replaced, "http://127.0.0.1:4321/ 80000 18000 4321");
        assert_eq!(replace_number(&replaced, "4321", "8000"), text);
    }

    #[test]
    fn shell_and_python_are_run_unless_the_page_says_otherwise() {
        let page = "```sh\na\n```\n```python\nb\n```\n```text\nc\n```\n\
            <!-- not run: d -->\n```sh\nd\n```\n<!-- fails: e -->\n```sh\ne\n```\n\
            <!-- file: f.py -->\n```python\nf\n```\n";
        let run: Vec<_> = blocks(page)
            .iter()
            .filter(|block| is_run(block))
            .map(|b| b.text.trim().to_owned())
            .collect();
        assert_eq!(run, ["a", "b", "e"]);
    }

    #[test]
    fn quotes_survive_the_shell() {
        let said = Command::new("bash").args(["-c", &format!("echo {}", quoted("it's"))]).output();
        assert_eq!(String::from_utf8_lossy(&said.unwrap().stdout), "it's\n");
    }
}
