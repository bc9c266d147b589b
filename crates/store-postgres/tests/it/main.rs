//! Tests on a real PostgreSQL.

mod ambiguous;
mod conformance;
mod groups;
mod long_keys;
mod opening;
mod outages;
mod plans;
mod round_trips;
mod support;
mod tls;
