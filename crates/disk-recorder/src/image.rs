//! The state of a directory, such as after a power cut.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// The files (`Some`) and directories (`None`) by their paths.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Image {
    pub entries: BTreeMap<String, Option<Vec<u8>>>,
}

impl Image {
    /// Empties a directory and writes the image into it.
    ///
    /// # Errors
    /// If that fails.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
        // A directory's path sorts before the paths inside it.
        for (path, content) in &self.entries {
            match content {
                None => fs::create_dir(directory.join(path))?,
                Some(content) => fs::write(directory.join(path), content)?,
            }
        }
        Ok(())
    }

    /// The current content of a directory.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(directory: &Path) -> io::Result<Image> {
        let mut image = Image::default();
        image.read_below(directory, "")?;
        Ok(image)
    }

    fn read_below(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.entries.insert(path.clone(), None);
                self.read_below(&entry.path(), &format!("{path}/"))?;
            } else {
                self.entries.insert(path, Some(fs::read(entry.path())?));
            }
        }
        Ok(())
    }

    /// The paths at which two images differ.
    pub fn differences(&self, other: &Image) -> Vec<String> {
        let paths: std::collections::BTreeSet<_> =
            self.entries.keys().chain(other.entries.keys()).collect();
        let differs = |path: &&&String| self.entries.get(**path) != other.entries.get(**path);
        paths.iter().filter(differs).map(|path| (*path).clone()).collect()
    }
}
