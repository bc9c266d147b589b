//! The texts of all licences, for packages: most licences require that their text accompanies the
//! binary.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::shipped;
use crate::metadata::Metadata;
use crate::process::Failure;

/// The names of files with licence texts.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
/// How deep below a crate the licences of bundled code may lie.
const DEPTH_MAX: usize = 3;

/// Writes each text once, below the crates that use it.
pub fn write(path: &Path) -> Result<(), Failure> {
    let metadata = Metadata::read()?;
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in shipped(&metadata)? {
        let mut files = Vec::new();
        find(package.directory(), DEPTH_MAX, &mut files);
        files.sort();
        for file in files {
            let bytes = fs::read(&file).map_err(|error| Failure::file("read", &file, &error))?;
            let text = String::from_utf8_lossy(&bytes).trim().replace("\r\n", "\n");
            let name = file.strip_prefix(package.directory()).unwrap_or(&file).display();
            let source = format!("{} {}: {name}", package.name, package.version);
            by_text.entry(text).or_default().push(source);
        }
    }
    let mut output = String::new();
    for (text, sources) in by_text {
        let rule = "=".repeat(78);
        let _ = write!(output, "{rule}\n{}\n{rule}\n\n{text}\n\n", sources.join("\n"));
    }
    fs::write(path, output).map_err(|error| Failure::file("write", path, &error))
}

fn find(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    // A directory that cannot be listed has no texts to add.
    for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_source = path.extension().is_some_and(|extension| extension == "rs");
        if path.is_dir() && depth > 0 {
            find(&path, depth - 1, found);
        } else if path.is_file() && !is_source && NAMES.iter().any(|known| name.starts_with(known))
        {
            found.push(path);
        }
    }
}
