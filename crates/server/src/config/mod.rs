//! Configuration: every option has a flag, an environment variable and a TOML key, with one
//! meaning.
//!
//! [`options`](Options) defines them with clap. [`Given`] reads all sources, [`Settings`] is the
//! result.

mod environment;
mod file;
mod given;
mod local;
mod options;
mod reference;
mod rejected_value;
mod settings;
mod suggestion;
mod values;

pub use environment::{UnknownVariable, heed};
pub use given::{Given, GivenError, OptionSource};
pub use local::{LocalFlags, LocalMode, translate};
pub use options::Options;
pub use reference::reference;
pub use rejected_value::environment_fault;
pub use settings::{Settings, SettingsError};
pub use suggestion::{did_you_mean, suggest};
pub use values::{CredentialsSource, LogFormat};
