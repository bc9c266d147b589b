//! The engine from outside, on the memory store: golden scripts per area, and racing threads.

mod backups;
mod costs;
mod damage;
mod exports;
mod history;
mod history_costs;
mod lost_answers;
mod nodes;
mod query_properties;
mod scripts;
mod stale_definitions;
mod stream_properties;
mod stream_races;
mod streams;
mod support;
mod tables;
mod throughput;
mod time;
mod ttl;
mod write_properties;
