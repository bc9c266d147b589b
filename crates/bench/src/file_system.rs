//! The file system that holds the data: it decides what a durable write costs.

use std::fs;
use std::path::Path;

use crate::Result;

/// How many overlays may be stacked.
const LAYERS_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// The kernel's name, such as `ext4`.
    pub kind: String,
    /// Whether a sync has any effect there.
    pub is_durable: bool,
}

impl FileSystem {
    pub fn of(directory: &Path) -> Result<FileSystem> {
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let found = find(&mounts, &directory.canonicalize()?, LAYERS_MAX);
        found.ok_or_else(|| "the data directory is on no file system".into())
    }
}

/// The file system of the innermost mount that holds the path.
fn find(mounts: &str, path: &Path, layers: usize) -> Option<FileSystem> {
    // Of several mounts on the same point the last one is visible.
    let mount = mounts
        .lines()
        .filter_map(Mount::parse)
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| Path::new(&mount.point).components().count())?;
    let is_durable = match mount.kind {
        "tmpfs" | "ramfs" => false,
        "overlay" => is_overlay_durable(mounts, &mount, layers),
        _ => true,
    };
    Some(FileSystem { kind: mount.kind.to_owned(), is_durable })
}

/// An overlay writes into its upper directory. If that directory is not visible from here, assume
/// that it is durable.
fn is_overlay_durable(mounts: &str, mount: &Mount<'_>, layers: usize) -> bool {
    let mut options = mount.options.split(',');
    if options.clone().any(|option| option == "volatile") {
        return false;
    }
    let upper = options.find_map(|option| option.strip_prefix("upperdir=")).map(unescaped);
    match upper {
        Some(upper) if layers > 0 => {
            find(mounts, Path::new(&upper), layers - 1).is_none_or(|below| below.is_durable)
        }
        _ => true,
    }
}

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    point: String,
    kind: &'a str,
    options: &'a str,
}

impl Mount<'_> {
    fn parse(line: &str) -> Option<Mount<'_>> {
        let (of_mount, of_file_system) = line.split_once(" - ")?;
        let point = unescaped(of_mount.split(' ').nth(4)?);
        let mut fields = of_file_system.split(' ');
        Some(Mount { point, kind: fields.next()?, options: fields.nth(1)? })
    }
}

/// The kernel escapes spaces, tabs, newlines and backslashes as three octal digits.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (escaped, character)| text.replace(escaped, character))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:20 / /tmp rw,nosuid master:5 - tmpfs tmpfs rw,size=1024k
24 23 254:1 / /tmp/my\\040disk rw - xfs /dev/vdb rw,noquota
25 22 0:30 / /durable rw - overlay overlay rw,lowerdir=/a,upperdir=/home/u,workdir=/w
26 22 0:31 / /layered rw - overlay overlay rw,lowerdir=/a,upperdir=/tmp/u,workdir=/w
27 22 0:32 / /loose rw - overlay overlay rw,lowerdir=/a,upperdir=/home/u,workdir=/w,volatile
28 22 0:33 / /hidden rw - overlay overlay rw,lowerdir=/a,upperdir=/hidden/u,workdir=/w
29 22 254:2 / /twice rw - ext4 /dev/vdc rw
30 22 0:34 / /twice rw - ramfs ramfs rw
";

    #[test]
    fn the_innermost_mount_decides() {
        for (path, kind, is_durable) in [
            ("/", "ext4", true),
            ("/home/data", "ext4", true),
            ("/tmpfile", "ext4", true),
            ("/tmp", "tmpfs", false),
            ("/tmp/data", "tmpfs", false),
            ("/tmp/my disk/data", "xfs", true),
            ("/durable/data", "overlay", true),
            ("/layered/data", "overlay", false),
            ("/loose/data", "overlay", false),
            ("/hidden/data", "overlay", true),
            ("/twice/data", "ramfs", false),
        ] {
            let expected = FileSystem { kind: kind.to_owned(), is_durable };
            assert_eq!(find(MOUNTS, Path::new(path), LAYERS_MAX), Some(expected), "{path}");
        }
    }

    #[test]
    fn this_directory_is_on_a_file_system() {
        assert!(!FileSystem::of(Path::new(".")).unwrap().kind.is_empty());
        assert!(FileSystem::of(Path::new("/nonexistent")).is_err());
    }
}
