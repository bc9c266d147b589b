//! The suite of every backend.

use zenobe_store_postgres::Options;

use crate::support::Database;

mod plain {
    use super::{Database, Options};
    zenobe_store::conformance_tests!(Database::new(Options::default()));
}

/// So little is remembered, and so few connections are there, that everything is read and waited for.
mod narrow {
    use super::{Database, Options};
    zenobe_store::conformance_tests!(Database::new(Options {
        cache_bytes: 0,
        readers: 1,
        writers: 1,
        ..Options::default()
    }));
}
