use std::time::Duration;

/// How a node uses its store. The URL says where the store is.
#[derive(Debug, Clone)]
pub struct Options {
    /// Memory for values that writes have read or written. It saves the next write of the same key a round trip.
    pub cache_bytes: usize,
    /// Connections that reads share.
    pub readers: usize,
    /// Connections that commit groups of writes. This many groups can be in flight.
    pub writers: usize,
    /// Connections for scans and snapshots. Each holds one until it ends.
    pub views: usize,
    /// How long a request waits for a store that cannot be reached.
    pub patience: Duration,
    /// The maximum lag of a standby that serves eventually consistent reads; `None` asks the primary only.
    pub standby_lag_max: Option<Duration>,
    /// How long a snapshot can be read. Until then the store keeps what has been deleted since.
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
            standby_lag_max: None,
            view_age_max: Duration::from_secs(300),
        }
    }
}
