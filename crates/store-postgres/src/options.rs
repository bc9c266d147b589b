use std::time::Duration;

/// How a node uses its store. The URL says where that is.
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory for values that writes have read or written, with which the next write of the same key saves a round trip.
    pub cache_bytes: usize,
    /// Connections that reads share.
    pub readers: usize,
    /// Connections that commit groups of writes: as many groups can be in flight.
    pub writers: usize,
    /// Connections for scans and snapshots, each of which has one for itself as long as it lasts.
    pub views: usize,
    /// How long a request waits for a store that cannot be reached.
    pub patience: Duration,
    /// How long a snapshot can be read. The store keeps what was deleted since then.
    pub view_age_max: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            cache_bytes: 64 << 20,
            readers: 4,
            writers: 4,
            views: 32,
            patience: Duration::from_secs(10),
            view_age_max: Duration::from_secs(300),
        }
    }
}
