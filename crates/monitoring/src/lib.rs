//! What requests did, minute by minute: CloudWatch's metrics and alarms, and what the traffic would
//! cost on AWS.
//!
//! [`traffic`] observes requests and counts them. Once a minute, [`minute`] hands the counts to the sinks
//! that store them, and [`totals`] sums them for as long as the process lives. [`cloudwatch`] turns the traffic into metrics and answers CloudWatch's requests;
//! [`cost`] estimates what the traffic would cost.
//!
//! **Invariant:** no HTTP here, and nothing that a request waits for.

pub mod cloudwatch;
pub mod cost;
pub mod gauges;
pub mod minute;
pub mod striped;
pub mod totals;
pub mod traffic;
