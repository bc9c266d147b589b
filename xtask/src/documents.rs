//! Keeps the documents true: their links lead somewhere, the commands they show exist, and the AWS CLI
//! lines of the README run against a real server.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::process::{self, Failure};
use crate::{COMMANDS, python, workspace};

pub fn check(interpreter: &python::Interpreter) -> Result<(), Failure> {
    let mut faults = Vec::new();
    let options = serve_options()?;
    for path in documents()? {
        let text =
            fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
        let mut report = |fault: String| faults.push(format!("{}: {fault}", path.display()));
        check_links(&path, &text, &mut report);
        for command in shell_commands(&text) {
            check_command(&command, &options, &mut report);
        }
    }
    if !faults.is_empty() {
        return Err(Failure::new(faults.join("\n")));
    }
    run_readme_examples(interpreter)
}

/// The Markdown files of the root and of docs/.
fn documents() -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for directory in [workspace::root(), workspace::root().join("docs")] {
        let entries =
            fs::read_dir(&directory).map_err(|error| Failure::file("list", &directory, &error))?;
        found.extend(
            entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "md")),
        );
    }
    found.sort();
    Ok(found)
}

fn check_links(document: &Path, text: &str, report: &mut dyn FnMut(String)) {
    for link in links(text) {
        let target = link.split('#').next().unwrap_or_default();
        let is_remote = target.contains("://") || target.starts_with("mailto:");
        if target.is_empty() || is_remote {
            continue;
        }
        if !document.with_file_name("").join(target).exists() {
            report(format!("the link to {target} leads nowhere"));
        }
    }
}

/// The targets of inline links, outside code blocks.
fn links(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let targets = line.split("](").skip(1);
            found.extend(targets.filter_map(|rest| rest.split_once(')').map(|(link, _)| link)));
        }
    }
    found
}

/// The commands in blocks marked `sh` or not marked at all, with continued lines joined.
fn shell_commands(text: &str) -> Vec<String> {
    // Whether the block that a line is in, if it is in one, holds commands.
    let mut block: Option<bool> = None;
    let mut commands: Vec<String> = Vec::new();
    let mut continued = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            block = match block {
                Some(_) => None,
                None => Some(matches!(line.trim(), "```" | "```sh")),
            };
            continued = false;
            continue;
        }
        let line = line.trim().trim_start_matches("$ ");
        if block != Some(true) || line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (line, continues) = match line.strip_suffix('\\') {
            Some(rest) => (rest.trim_end(), true),
            None => (line, false),
        };
        match commands.last_mut() {
            Some(last) if continued => {
                last.push(' ');
                last.push_str(line);
            }
            _ => commands.push(line.to_owned()),
        }
        continued = continues;
    }
    commands
}

fn check_command(command: &str, options: &BTreeSet<String>, report: &mut dyn FnMut(String)) {
    let words: Vec<&str> = command.split_whitespace().collect();
    if let Some(position) = words.windows(2).position(|pair| pair == ["cargo", "xtask"]) {
        let name = words.get(position + 2).copied().unwrap_or("help").trim_end_matches(')');
        if !COMMANDS.contains(&name) {
            report(format!("`{command}`: xtask has no command {name}"));
        }
    }
    let serves = words
        .windows(2)
        .any(|pair| pair[1] == "serve" && (pair[0] == "xtask" || pair[0].ends_with("zenobe")));
    if serves {
        for word in words.iter().filter(|word| word.starts_with("--") && word.len() > 2) {
            let option = word.split('=').next().unwrap_or_default();
            if !options.contains(option) {
                report(format!("`{command}`: zenobe serve has no option {option}"));
            }
        }
    }
}

fn serve_options() -> Result<BTreeSet<String>, Failure> {
    let help = process::output(Command::new(workspace::server_binary()).args(["serve", "--help"]))?;
    Ok(options_in(&help))
}

/// The options that a help text names, without the values that they take: `--memory` for `--memory[=<BOOL>]`.
fn options_in(help: &str) -> BTreeSet<String> {
    let words =
        help.split(|character: char| character.is_whitespace() || ",[=".contains(character));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

/// Runs the `aws …` lines of the README, in order and under its `export` lines, against one server in
/// memory.
fn run_readme_examples(interpreter: &python::Interpreter) -> Result<(), Failure> {
    let path = workspace::root().join("README.md");
    let text = fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
    let is_example = |line: &String| line.starts_with("aws ") || line.starts_with("export ");
    let examples: Vec<String> = shell_commands(&text).into_iter().filter(is_example).collect();
    let server = ExampleServer::start()?;
    let script = examples.join("\n").replace("http://127.0.0.1:8000", &server.endpoint);
    process::output(
        Command::new("sh")
            .args(["-e", "-c", &script])
            .env("PATH", interpreter.path_with_scripts())
            .env("AWS_PAGER", ""),
    )
    .map_err(|failure| Failure::new(format!("README.md: {failure}")))
    .map(drop)
}

struct ExampleServer {
    child: Child,
    endpoint: String,
}

impl ExampleServer {
    fn start() -> Result<ExampleServer, Failure> {
        let mut child = Command::new(workspace::server_binary())
            .args(["serve", "--memory", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::new(format!("cannot run the server: {error}")))?;
        let output = child.stdout.take().ok_or_else(|| Failure::new("the server has no output"))?;
        let endpoint = BufReader::new(output)
            .lines()
            .map_while(Result::ok)
            .find_map(|line| {
                line.split_whitespace().find(|word| word.starts_with("http://")).map(str::to_owned)
            })
            .ok_or_else(|| Failure::new("the server printed no address"))?;
        Ok(ExampleServer { child, endpoint })
    }
}

impl Drop for ExampleServer {
    fn drop(&mut self) {
        // The server keeps nothing; there is no one left to tell if it is already gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "See [the map](ARCHITECTURE.md#top) and [AWS](https://aws.example).\n\
        ```sh\n# a comment\naws dynamodb \\\n  list-tables\ncargo xtask fly\n```\n\
        ```json\n{\"not\": \"[a](link)\"}\n```\nno command\n";

    #[test]
    fn commands_are_taken_from_shell_blocks_with_continued_lines_joined() {
        assert_eq!(shell_commands(DOCUMENT), ["aws dynamodb list-tables", "cargo xtask fly"]);
    }

    #[test]
    fn options_are_read_from_help_without_their_values() {
        let options =
            options_in("  --memory[=<BOOL>]\n  Keep [env: X]\n  -h, --help\n --data <DIRECTORY>");
        assert_eq!(options.iter().collect::<Vec<_>>(), ["--data", "--help", "--memory"]);
    }

    #[test]
    fn links_are_taken_from_text_and_not_from_code() {
        assert_eq!(links(DOCUMENT), ["ARCHITECTURE.md#top", "https://aws.example"]);
    }

    #[test]
    fn unknown_commands_and_options_are_reported() {
        let options = BTreeSet::from(["--memory".to_owned()]);
        let faults = |command: &str| {
            let mut faults = Vec::new();
            check_command(command, &options, &mut |fault| faults.push(fault));
            faults.len()
        };
        assert_eq!(faults("cargo xtask serve -- --memory"), 0);
        assert_eq!(faults("cargo xtask serve -- --memoir"), 1);
        assert_eq!(faults("./zenobe serve --memoir"), 1);
        assert_eq!(faults("cargo xtask fly"), 1);
        assert_eq!(faults("eval \"$(cargo xtask env)\""), 0);
    }
}
