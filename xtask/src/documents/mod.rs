//! Keeps the documents true: their links lead somewhere, the commands they show exist, and their
//! `sh` and `python` blocks run as they stand, page by page, beside a server for each page.
//!
//! Each code block names its language. A comment on the line before a block changes what happens to
//! it; [`block::Mark`] has the list.

mod block;
mod commands;
mod links;
mod page;
mod page_postgres;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use block::{Block, Mark};

use crate::process::Failure;
use crate::serve::Profile;
use crate::{python, workspace};

/// Directories whose Markdown is not ours, or comes from a program that checks it itself.
const FOREIGN: [&str; 4] = ["target", "node_modules", ".venv", "fuzz"];

struct Document {
    /// Relative to the root of the clone.
    path: PathBuf,
    text: String,
}

impl Document {
    fn is(&self, page: &str) -> bool {
        self.path == Path::new(page)
    }
}

/// The server for pages, examples and client packages.
pub fn server_binary() -> PathBuf {
    let built = || workspace::server_binary(Profile::Quick);
    std::env::var_os("ZENOBE_BINARY").map_or_else(built, PathBuf::from)
}

/// `cargo xtask documents`
pub fn run(pages: &[String]) -> Result<(), Failure> {
    check(&python::for_tests()?, pages)
}

/// Checks all documents and runs the given pages, or all pages if none is given.
pub fn check(interpreter: &python::Interpreter, pages: &[String]) -> Result<(), Failure> {
    let mut documents = read_all()?;
    let mut faults = Vec::new();
    let options = commands::serve_options()?;
    for document in &documents {
        let mut report =
            |fault: String| faults.push(format!("{}:{fault}", document.path.display()));
        links::check(document, &documents, &mut report);
        for block in block::blocks(&document.text) {
            check_block(&block, &mut report);
            for command in commands::of(&block) {
                commands::check(&command, &options, &mut |fault| {
                    report(format!("{}: {fault}", block.line));
                });
            }
        }
    }
    fail_with(&faults)?;
    if let Some(page) =
        pages.iter().find(|page| documents.iter().all(|document| !document.is(page)))
    {
        return Err(Failure::new(format!("there is no page {page}")));
    }
    documents.retain(|document| pages.is_empty() || pages.iter().any(|page| document.is(page)));
    run_pages(&documents, interpreter)
}

fn check_block(block: &Block<'_>, report: &mut dyn FnMut(String)) {
    if block.language.is_empty() {
        report(format!("{}: the block names no language (sh is run, text is not)", block.line));
    }
    if let Some(Mark::With { path, .. }) = block.mark
        && !workspace::root().join(path).is_file()
    {
        report(format!("{}: there is no file {path}", block.line));
    }
    if let Some(Mark::From(path)) = block.mark {
        let is_same = fs::read_to_string(workspace::root().join(path))
            .is_ok_and(|text| text.trim_end() == block.text.trim_end());
        if !is_same {
            report(format!("{}: the block differs from {path}", block.line));
        }
    }
}

/// Runs every page that has something to run, as many at a time as there are processors. A page
/// spends most of its time waiting for its commands.
fn run_pages(documents: &[Document], interpreter: &python::Interpreter) -> Result<(), Failure> {
    let waiting = Mutex::new(documents.iter());
    let faults = Mutex::new(Vec::new());
    let next = || waiting.lock().expect("no thread panics with the lock").next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(document) = next() {
                    if let Err(failure) = page::run(document, interpreter) {
                        let fault = format!("{}:{failure}", document.path.display());
                        faults.lock().expect("no thread panics with the lock").push(fault);
                    }
                }
            });
        }
    });
    fail_with(&faults.into_inner().expect("no thread panics with the lock"))
}

fn fail_with(faults: &[String]) -> Result<(), Failure> {
    match faults.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(faults.join("\n"))),
    }
}

/// Every Markdown file of the clone, sorted by path.
fn read_all() -> Result<Vec<Document>, Failure> {
    let root = workspace::root();
    let mut paths = Vec::new();
    find(&root, &mut paths)?;
    paths.sort();
    let read = |path: PathBuf| {
        let text =
            fs::read_to_string(&path).map_err(|error| Failure::file("read", &path, &error))?;
        let path = path.strip_prefix(&root).map(Path::to_path_buf).unwrap_or(path);
        Ok(Document { path, text })
    };
    paths.into_iter().map(read).collect()
}

fn find(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let entries =
        fs::read_dir(directory).map_err(|error| Failure::file("list", directory, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_foreign = FOREIGN.contains(&name.as_ref()) || name.starts_with('.');
        if path.is_dir() && !is_foreign {
            find(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(())
}
