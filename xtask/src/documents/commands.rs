//! Checks that the commands and options on pages exist, even where they are not run.

use std::collections::BTreeSet;
use std::process::Command;

use super::block::Block;
use crate::COMMANDS;
use crate::process::{self, Failure};

/// The commands of an `sh` block, with continued lines joined.
pub fn of(block: &Block<'_>) -> Vec<String> {
    if block.language != "sh" {
        return Vec::new();
    }
    let joined = block.text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let commands = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    commands.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

pub fn check(command: &str, options: &BTreeSet<String>, report: &mut dyn FnMut(String)) {
    let words: Vec<&str> = command.split_whitespace().collect();
    if let Some(position) = words.windows(2).position(|pair| pair == ["cargo", "xtask"]) {
        let name = words.get(position + 2).copied().unwrap_or("help");
        let name = name.trim_end_matches([')', '"']);
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

pub fn serve_options() -> Result<BTreeSet<String>, Failure> {
    let help = process::output(Command::new(super::server_binary()).args(["serve", "--help"]))?;
    Ok(options_in(&help))
}

/// The options in a help text, without their values: `--memory` for `--memory[=<BOOL>]`.
fn options_in(help: &str) -> BTreeSet<String> {
    let words =
        help.split(|character: char| character.is_whitespace() || ",[=".contains(character));
    words.filter(|word| word.starts_with("--")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::block::blocks;

    #[test]
    fn commands_are_taken_from_shell_blocks_with_continued_lines_joined() {
        let page = "```sh\n# a comment\naws dynamodb \\\n  list-tables\ncargo xtask fly\n```\n\
            ```json\n{}\n```\n";
        let found: Vec<String> = blocks(page).iter().flat_map(of).collect();
        assert_eq!(found, ["aws dynamodb list-tables", "cargo xtask fly"]);
    }

    #[test]
    fn options_are_read_from_help_without_their_values() {
        let options =
            options_in("  --memory[=<BOOL>]\n  Keep [env: X]\n  -h, --help\n --data <DIRECTORY>");
        assert_eq!(options.iter().collect::<Vec<_>>(), ["--data", "--help", "--memory"]);
    }

    #[test]
    fn unknown_commands_and_options_are_reported() {
        let options = BTreeSet::from(["--memory".to_owned()]);
        let faults = |command: &str| {
            let mut faults = Vec::new();
            check(command, &options, &mut |fault| faults.push(fault));
            faults.len()
        };
        assert_eq!(faults("cargo xtask serve -- --memory"), 0);
        assert_eq!(faults("cargo xtask serve -- --memoir"), 1);
        assert_eq!(faults("./zenobe serve --memoir"), 1);
        assert_eq!(faults("cargo xtask fly"), 1);
        assert_eq!(faults("eval \"$(cargo xtask env)\""), 0);
    }
}
