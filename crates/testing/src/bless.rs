//! Only `ZENOBE_BLESS=1` rewrites golden files. Crates with golden files must not depend on each
//! other for this one line, so a test checks each copy.

use std::fs;
use std::path::Path;

/// `ZENOBE_BLESS=0` must not rewrite anything.
#[test]
fn only_one_blesses() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates lie in a directory");
    let mut found = Vec::new();
    collect(crates, &mut found);
    assert!(found.len() >= 5, "{found:?}");
    for line in found {
        assert!(line.contains(r#".is_some_and(|value| value == "1")"#), "{line}");
    }
}

/// The lines of code that read the variable.
fn collect(directory: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("sources can be listed") {
        let path = entry.expect("sources can be listed").path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("sources can be read");
            let reads = text.lines().filter(|line| line.contains("var_os(\"ZENOBE_BLESS\")"));
            found.extend(reads.map(|line| format!("{}: {line}", path.display())));
        }
    }
}
