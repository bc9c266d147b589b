//! The conformance suite that every backend passes.

use zenobe_store_postgres::Options;

use crate::support::Database;

mod plain {
    use super::{Database, Options};
    zenobe_store::conformance_tests!(Database::new(Options::default()));
}

/// With hardly any cache and connections, so that every value is read and every request waits.
mod narrow {
    use super::{Database, Options};
    zenobe_store::conformance_tests!(Database::new(Options {
        cache_bytes: 0,
        readers: 1,
        writers: 1,
        ..Options::default()
    }));
}
