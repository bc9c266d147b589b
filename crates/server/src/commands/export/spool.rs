//! Items on the disk, by entity, until it is known which columns they need.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{self, File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use zenobe_transfer::parquet::{Columns, TooManyColumns};
use zenobe_value::{EncodedItem, ItemRef};

use super::ExportError;

/// More than this, and the attribute probably identifies single items instead of kinds of items.
const ENTITIES_MAX: usize = 1_000;
/// How much of an entity is kept in memory. The files are not kept open: there may be more than a process may have.
const BUFFER_SIZE_BYTES: usize = 64 << 10;

pub struct Spool {
    directory: Directory,
    entities: BTreeMap<Option<String>, Entity>,
    items: u64,
}

struct Entity {
    path: PathBuf,
    buffer: Vec<u8>,
    items: u64,
    columns: Result<Columns, TooManyColumns>,
}

/// The items of one entity.
pub struct SpooledItems {
    /// `None` if items have no entities.
    pub entity: Option<String>,
    pub items: u64,
    pub columns: Result<Columns, TooManyColumns>,
    path: PathBuf,
    /// It goes with the last one.
    _directory: std::sync::Arc<Directory>,
}

/// A directory that goes with this.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // If this fails, the next run removes the files, or the system's cleaning of temporary directories does.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The partition of items without an entity, as Hive names it. Spark and pyarrow read it as NULL.
pub(super) const UNNAMED: &str = "__HIVE_DEFAULT_PARTITION__";

impl Spool {
    /// Begins with an empty directory. Only its owner may look into it.
    pub fn create(path: PathBuf) -> Result<Spool, ExportError> {
        let begin = || {
            if path.exists() {
                fs::remove_dir_all(&path)?;
            }
            let mut builder = fs::DirBuilder::new();
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.recursive(true).create(&path)
        };
        begin().map_err(|error| ExportError::Write { path: path.clone(), error })?;
        Ok(Spool { directory: Directory(path), entities: BTreeMap::new(), items: 0 })
    }

    pub fn items(&self) -> u64 {
        self.items
    }

    pub fn add(&mut self, entity: Option<String>, item: ItemRef<'_>) -> Result<(), ExportError> {
        let count = self.entities.len();
        let entity = match self.entities.entry(entity) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(_) if count == ENTITIES_MAX => {
                return Err(ExportError::TooManyEntities(ENTITIES_MAX));
            }
            Entry::Vacant(new) => {
                let path = self.directory.0.join(count.to_string());
                let (buffer, columns) = (Vec::new(), Ok(Columns::default()));
                new.insert(Entity { path, buffer, items: 0, columns })
            }
        };
        self.items += 1;
        entity.add(item)
    }

    pub fn finish(mut self) -> Result<Vec<SpooledItems>, ExportError> {
        self.entities.values_mut().try_for_each(Entity::flush)?;
        let has_entities = self.entities.keys().any(Option::is_some);
        let directory = std::sync::Arc::new(self.directory);
        let spooled = self.entities.into_iter().map(|(entity, of)| SpooledItems {
            entity: has_entities.then(|| entity.unwrap_or_else(|| UNNAMED.to_owned())),
            items: of.items,
            columns: of.columns,
            path: of.path,
            _directory: directory.clone(),
        });
        Ok(spooled.collect())
    }
}

impl Entity {
    fn add(&mut self, item: ItemRef<'_>) -> Result<(), ExportError> {
        if let Ok(columns) = &mut self.columns
            && let Err(error) = columns.add(item)
        {
            self.columns = Err(error);
        }
        self.items += 1;
        let bytes = item.as_bytes();
        let length = u32::try_from(bytes.len()).expect("items are small");
        self.buffer.extend_from_slice(&length.to_le_bytes());
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() >= BUFFER_SIZE_BYTES {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<(), ExportError> {
        let opened = OpenOptions::new().create(true).append(true).open(&self.path);
        let written = opened.and_then(|mut file| file.write_all(&self.buffer));
        self.buffer.clear();
        written.map_err(|error| failed(&self.path, error))
    }
}

impl SpooledItems {
    pub fn open(&self) -> Result<Items, ExportError> {
        let file = File::open(&self.path).map_err(|error| failed(&self.path, error))?;
        Ok(Items { file: BufReader::with_capacity(1 << 20, file), path: self.path.clone() })
    }
}

pub struct Items {
    file: BufReader<File>,
    path: PathBuf,
}

impl Items {
    pub fn next_item(&mut self) -> Result<Option<EncodedItem>, ExportError> {
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(|error| failed(&self.path, error))?,
        }
        let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
        self.file.read_exact(&mut bytes).map_err(|error| failed(&self.path, error))?;
        let item = EncodedItem::from_bytes(bytes.into());
        let damaged = |error| std::io::Error::new(ErrorKind::InvalidData, format!("{error}"));
        item.map(Some).map_err(|error| failed(&self.path, damaged(error)))
    }
}

fn failed(path: &Path, error: std::io::Error) -> ExportError {
    ExportError::Write { path: path.to_owned(), error }
}
