//! Backups in object stores that lie, lose and go away, with a store that is a list of groups.

mod damage;
mod faulty_store;
mod list_source;
mod pruning;
mod shipping;
mod snapshots;
