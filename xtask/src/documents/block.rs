//! The code blocks of a page, and the comments that control them.

/// The meaning of the comment before a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark<'a> {
    /// `<!-- not run: reason -->`
    NotRun,
    /// `<!-- until stopped -->`: each command runs until it is stopped, after two seconds.
    UntilStopped,
    /// `<!-- fails: text -->`: the block must fail and print the text.
    Fails(&'a str),
    /// `<!-- output -->`: what the block before it printed.
    Output,
    /// `<!-- file: name -->`: a file that later blocks find in their directory.
    File(&'a str),
    /// `<!-- from: path -->`: must equal this file of the repository.
    From(&'a str),
    /// `<!-- with: path as name -->`: a copy of a file of the repository is in its directory.
    With { path: &'a str, name: &'a str },
}

#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The line of the page on which the block starts, counted from one.
    pub line: usize,
    pub language: &'a str,
    pub mark: Option<Mark<'a>>,
    pub text: &'a str,
}

const FENCE: &str = "```";

/// The fenced blocks of a page, if not indented. A block inside an HTML comment is one too: it is run, but not shown.
pub fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut mark = None;
    let mut open: Option<(usize, &str, usize)> = None;
    let mut position = 0;
    for (index, line) in page.split_inclusive('\n').enumerate() {
        let start = position;
        position += line.len();
        match (line.strip_prefix(FENCE), open) {
            (Some(language), None) => open = Some((index + 1, language.trim(), position)),
            (Some(_), Some((line, language, from))) => {
                found.push(Block { line, language, mark: mark.take(), text: &page[from..start] });
                open = None;
            }
            (None, None) if !line.trim().is_empty() => mark = parse_mark(line.trim()),
            (None, _) => {}
        }
    }
    found
}

fn parse_mark(line: &str) -> Option<Mark<'_>> {
    let comment = line.strip_prefix("<!--")?.strip_suffix("-->")?.trim();
    let (name, value) = comment.split_once(':').unwrap_or((comment, ""));
    let value = value.trim();
    match (name, value.is_empty()) {
        ("not run", false) => Some(Mark::NotRun),
        ("until stopped", true) => Some(Mark::UntilStopped),
        ("fails", false) => Some(Mark::Fails(value)),
        ("output", true) => Some(Mark::Output),
        ("file", false) => Some(Mark::File(value)),
        ("from", false) => Some(Mark::From(value)),
        ("with", false) => {
            let (path, name) = value.split_once(" as ")?;
            Some(Mark::With { path, name })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_a_line_a_language_a_mark_and_a_text() {
        let page = "text\n<!-- not run: it takes an hour -->\n\n```sh\nsleep 3600\n```\n```json\n{}\n```\n";
        assert_eq!(
            blocks(page),
            [
                Block { line: 4, language: "sh", mark: Some(Mark::NotRun), text: "sleep 3600\n" },
                Block { line: 7, language: "json", mark: None, text: "{}\n" },
            ]
        );
    }

    #[test]
    fn a_mark_belongs_to_the_next_block_only_if_nothing_stands_between() {
        let page = "<!-- output -->\nBut first:\n```text\na\n```\n";
        assert_eq!(blocks(page)[0].mark, None);
    }

    #[test]
    fn a_block_in_a_comment_is_found() {
        let page = "<!-- Not shown:\n```sh\na\n```\n-->\n\n```sh\nb\n```\n";
        let texts: Vec<&str> = blocks(page).iter().map(|block| block.text).collect();
        assert_eq!(texts, ["a\n", "b\n"]);
        assert!(blocks(page).iter().all(|block| block.mark.is_none()));
    }

    #[test]
    fn marks_are_read_with_their_values() {
        let cases = [
            ("<!-- not run: no network -->", Some(Mark::NotRun)),
            ("<!-- not run -->", None),
            ("<!-- until stopped -->", Some(Mark::UntilStopped)),
            ("<!-- fails: ResourceInUse -->", Some(Mark::Fails("ResourceInUse"))),
            ("<!-- output -->", Some(Mark::Output)),
            ("<!-- file: a.toml -->", Some(Mark::File("a.toml"))),
            ("<!-- from: examples/go/main.go -->", Some(Mark::From("examples/go/main.go"))),
            ("<!-- with: a/b.gz as b -->", Some(Mark::With { path: "a/b.gz", name: "b" })),
            ("<!-- with: a/b.gz -->", None),
            ("<!-- benchmarks -->", None),
            ("not run: x", None),
        ];
        for (line, mark) in cases {
            assert_eq!(parse_mark(line), mark, "{line}");
        }
    }
}
