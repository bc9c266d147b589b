//! Counts the connections of each peer, so that no peer can take them all.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;

use super::connection::ConnectionOptions;

pub struct PeerConnections {
    /// The limit for peers on this machine; `None` is unlimited.
    local_max: Option<usize>,
    remote_max: usize,
    connections: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One open connection of a peer. Without a peer it is not counted.
pub struct PeerConnection {
    peer: Option<IpAddr>,
    connections: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl PeerConnections {
    pub fn new(options: &ConnectionOptions) -> PeerConnections {
        PeerConnections {
            local_max: options.connections_per_peer_max,
            remote_max: options
                .connections_per_peer_max
                .unwrap_or_else(|| options.connections_max.div_ceil(2)),
            connections: Arc::default(),
        }
    }

    /// Reserves one more connection, unless the peer has reached its limit.
    pub fn place(&self, address: IpAddr) -> Option<PeerConnection> {
        let address = address.to_canonical();
        let max = match address.is_loopback() {
            true => self.local_max,
            false => Some(self.remote_max),
        };
        let connections = Arc::clone(&self.connections);
        let Some(max) = max else { return Some(PeerConnection { peer: None, connections }) };
        let peer = peer(address);
        let mut counts = self.connections.lock();
        let count = counts.entry(peer).or_default();
        if *count >= max {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(PeerConnection { peer: Some(peer), connections })
    }
}

impl Drop for PeerConnection {
    fn drop(&mut self) {
        let Some(peer) = self.peer else { return };
        let mut counts = self.connections.lock();
        if let Some(count) = counts.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&peer);
            }
        }
    }
}

/// With IPv6, every customer has a network of 2^64 addresses.
fn peer(address: IpAddr) -> IpAddr {
    const NETWORK: u128 = !0 << 64;
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn peers(connections_max: usize, connections_per_peer_max: Option<usize>) -> PeerConnections {
        let long = Duration::from_secs(60);
        PeerConnections::new(&ConnectionOptions {
            connections_max,
            connections_per_peer_max,
            idle_timeout: long,
            stall_timeout: long,
            shutdown_timeout: long,
        })
    }

    fn places(peers: &PeerConnections, address: &str, count: usize) -> Vec<PeerConnection> {
        (0..count).filter_map(|_| peers.place(address.parse().unwrap())).collect()
    }

    #[test]
    fn another_machine_has_half_of_the_connections_and_this_one_all() {
        let peers = peers(9, None);
        let mut first = places(&peers, "10.0.0.1", 9);
        let second = places(&peers, "::ffff:10.0.0.2", 9);
        assert_eq!((first.len(), second.len()), (5, 5));
        assert_eq!(places(&peers, "127.0.0.1", 9).len(), 9);
        assert_eq!(places(&peers, "::1", 9).len(), 9);
        first.pop();
        assert_eq!(places(&peers, "10.0.0.1", 9).len(), 1);
        drop((first, second));
        assert!(peers.connections.lock().is_empty(), "nothing is kept about peers that left");
    }

    #[test]
    fn a_configured_bound_holds_for_everybody() {
        let peers = peers(100, Some(3));
        let held: Vec<_> = ["127.0.0.1", "10.0.0.1", "2001:db8::1"]
            .map(|address| places(&peers, address, 9))
            .into_iter()
            .collect();
        assert!(held.iter().all(|places| places.len() == 3));
        assert!(places(&peers, "2001:db8::2", 9).is_empty(), "it is in the same network");
        assert_eq!(places(&peers, "2001:db8:0:1::1", 9).len(), 3);
    }
}
