//! Checks that links lead to existing files and headings. It does not check other sites.

use std::path::{Component, Path, PathBuf};

use super::Document;
use crate::workspace;

pub fn check(document: &Document, all: &[Document], report: &mut dyn FnMut(String)) {
    for (line, link) in links(&document.text) {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (target, heading) = link.split_once('#').unwrap_or((link, ""));
        let path = match target {
            "" => document.path.clone(),
            _ => plain(&document.path.with_file_name(target)),
        };
        if !target.is_empty() && !workspace::root().join(&path).exists() {
            report(format!("{line}: the link to {target} leads nowhere"));
        } else if !heading.is_empty() && !has_heading(&path, heading, all) {
            report(format!("{line}: {} has no heading #{heading}", path.display()));
        }
    }
}

fn has_heading(path: &Path, heading: &str, all: &[Document]) -> bool {
    let target = all.iter().find(|document| document.path == path);
    // Line numbers of source code are not checked.
    target.is_none_or(|document| headings(&document.text).any(|found| found == heading))
}

/// Resolves `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()),
            other => parts.push(other),
        }
    }
    parts
}

/// The lines outside code blocks, counted from one.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!is_fence && !in_code).then_some((index + 1, line))
    })
}

/// The targets of inline links and images, with their lines.
fn links(text: &str) -> impl Iterator<Item = (usize, &str)> {
    prose(text).flat_map(|(number, line)| {
        let targets = line.split("](").skip(1);
        targets.filter_map(move |rest| rest.split_once(')').map(|(link, _)| (number, link)))
    })
}

/// The anchors of headings, as GitHub derives them.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|character| {
            character.is_alphanumeric() || matches!(character, ' ' | '-' | '_')
        });
        kept.map(|character| if character == ' ' { '-' } else { character }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# The map: `a`, b\nSee [the map](ARCHITECTURE.md#top) and [AWS](https://aws.example).\n\
        ```json\n{\"not\": \"[a](link)\"}\n# no heading\n```\n";

    #[test]
    fn links_are_taken_from_text_and_not_from_code() {
        let found: Vec<_> = links(PAGE).collect();
        assert_eq!(found, [(2, "ARCHITECTURE.md#top"), (2, "https://aws.example")]);
    }

    #[test]
    fn headings_are_named_as_github_names_them() {
        assert_eq!(headings(PAGE).collect::<Vec<_>>(), ["the-map-a-b"]);
    }

    #[test]
    fn files_and_headings_that_are_missing_are_reported() {
        let document = |path: &str, text: &str| Document { path: path.into(), text: text.into() };
        let other = document("README.md", "## Run it\n");
        let page = "[a](../README.md#run-it) [b](../README.md#walk) [c](absent.md) [d](#e)";
        let all = [document("docs/a.md", page), other];
        let mut faults = Vec::new();
        check(&all[0], &all, &mut |fault| faults.push(fault));
        let expected = [
            "1: README.md has no heading #walk",
            "1: the link to absent.md leads nowhere",
            "1: docs/a.md has no heading #e",
        ];
        assert_eq!(faults, expected);
    }
}
