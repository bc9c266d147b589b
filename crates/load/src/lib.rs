//! A load generator for any DynamoDB endpoint.
//!
//! A [`Plan`] says what to send where. [`prepare`] creates the table and its items, [`run`] sends
//! the load and measures, [`exchange`] makes a single call. All three block and bring their own
//! runtimes. A [`Client`] makes calls inside a runtime.
//!
//! ```no_run
//! use zenobe_load::{Plan, Target, Workload, prepare, run};
//!
//! # fn main() -> Result<(), zenobe_load::LoadError> {
//! let target = Target::new("http://127.0.0.1:8000", "us-east-1", None)?;
//! let plan = Plan::new(target, Workload::Get);
//! prepare(&plan, &mut |_| ())?;
//! let report = run(&plan, &mut |_| ())?;
//! println!("{:.0} requests/s", report.requests_per_second());
//! # Ok(())
//! # }
//! ```
//!
//! **Invariant:** the generator reads no more of a response than its status and whatever decides
//! the next request: a page's last key, unprocessed items, the name of an error. It therefore also
//! runs against a server that answers every request with a fixed body, which measures the cost of
//! HTTP alone.
//!
//! **Invariant:** on a plain connection without credentials, a request costs one write and no
//! allocation.

mod distribution;
mod error;
mod exchange;
mod http;
mod output;
mod plan;
mod prepare;
mod report;
mod run;
pub mod svg;
mod target;
mod workload;

pub use hdrhistogram::Histogram;
pub use zenobe_auth::Credential;

pub use distribution::{DistributionError, KeyDistribution};
pub use error::LoadError;
pub use exchange::{Answer, Client, exchange};
pub use http::Call;
pub use output::{
    Identity, html, human_bytes, human_count, human_time, json, plot, summary, three_digits,
};
pub use plan::{Pacing, Plan};
pub use prepare::{LoadProgress, Prepared, drop_table, prepare, rewrite};
pub use report::{Interval, OperationReport, Report};
pub use run::{Stop, run, run_until};
pub use target::Target;
pub use workload::{MeasuredOperation, Shape, UnknownWorkload, Workload, is_throttling};

pub type Result<T> = std::result::Result<T, LoadError>;
