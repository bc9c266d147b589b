//! What CreateTable and UpdateTable requests share: shapes, their constraints, and the rules about
//! keys, indexes, capacity, streams, encryption and tags.

pub(crate) mod encryption;
pub(crate) mod indexes;
pub(crate) mod keys;
pub(crate) mod shapes;
pub(crate) mod stream;
pub(crate) mod tags;
pub(crate) mod throughput;
