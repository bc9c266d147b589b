//! The suite of every backend, under each durability.

use std::sync::Arc;

use tempfile::TempDir;
use zenobe_store::conformance::Backend;
use zenobe_store::{KeyPrefixes, Store};
use zenobe_store_embedded::{Durability, EmbeddedStore, Options, PrefixExtractor};

struct Embedded {
    directory: TempDir,
    options: Options,
}

impl Embedded {
    fn new(options: Options) -> Embedded {
        Embedded { directory: tempfile::tempdir().unwrap(), options }
    }
}

impl Backend for Embedded {
    fn open(&self) -> Arc<dyn Store> {
        let path = self.directory.path().join("data");
        Arc::new(EmbeddedStore::open(path, self.options.clone()).expect("the store opens"))
    }

    fn survives_reopening(&self) -> bool {
        true
    }
}

mod sync {
    use super::{Durability, Embedded, Options};
    zenobe_store::conformance_tests!(Embedded::new(Options {
        durability: Durability::Sync,
        ..Options::default()
    }));
}

mod os {
    use super::{Durability, Embedded, Options};
    zenobe_store::conformance_tests!(Embedded::new(Options {
        durability: Durability::Os,
        ..Options::default()
    }));
}

/// So little may be in flight that almost every write waits to be admitted.
mod under_back_pressure {
    use super::{Embedded, Options};
    zenobe_store::conformance_tests!(Embedded::new(Options {
        unanswered_writes_max: 2,
        unanswered_bytes_max: 500,
        ..Options::default()
    }));
}

/// Memtables so small that flushes and compactions go on all the time.
mod with_small_memtables {
    use super::{Embedded, Options};
    zenobe_store::conformance_tests!(Embedded::new(Options {
        write_buffer_bytes: 64 << 10,
        cache_bytes: 256 << 10,
        ..Options::default()
    }));
}

/// The same, with filters for prefixes: scans find no less where filters say where not to look.
mod with_prefixes {
    use super::{Embedded, FirstBytes, Options, PrefixExtractor};
    zenobe_store::conformance_tests!(Embedded::new(Options {
        write_buffer_bytes: 64 << 10,
        cache_bytes: 256 << 10,
        prefixes: Some(PrefixExtractor::of::<FirstBytes>()),
        ..Options::default()
    }));
}

struct FirstBytes;

impl KeyPrefixes for FirstBytes {
    const NAME: &'static str = "first-bytes";

    fn prefix_of(key: &[u8]) -> Option<&[u8]> {
        key.get(..1)
    }
}
