//! Configuration: every option has a flag, an environment variable and a TOML key, and one meaning.

mod options;
mod settings;
mod values;

pub use options::{Options, OptionsError, triggers_from_toml};
pub use settings::{Location, Settings, SettingsError};
pub use values::{AcceptAny, CredentialsSource, Durability, LogFormat};
