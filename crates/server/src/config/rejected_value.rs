//! clap's errors about values, in our words and with their origin: clap always names the flag,
//! wherever the value came from.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

/// Why an option rejects these texts; `None` if it accepts them.
pub fn value_fault(option: &Arg, texts: &[String]) -> Option<String> {
    let flag = option.get_long()?;
    let alone = Command::new("value").no_binary_name(true).arg(option.clone().env(None::<&str>));
    let arguments = texts.iter().map(|text| format!("--{flag}={text}"));
    let error = alone.try_get_matches_from(arguments).err()?;
    Some(explanation(&error))
}

/// The error for a value from the environment, with the variable's name; `None` for any other
/// error.
pub fn environment_fault(command: &Command, error: &clap::Error) -> Option<String> {
    let mentioned = text_of(error, ContextKind::InvalidArg)?;
    // Only a built command knows how to display its options.
    let mut command = command.clone();
    command.build();
    let option = arguments_below(&command)
        .into_iter()
        .find(|option| option.to_string() == mentioned && option.get_env().is_some())?;
    let name = option.get_env()?;
    let value = std::env::var_os(name)?;
    let refused = text_of(error, ContextKind::InvalidValue);
    let is_it = match error.kind() {
        ErrorKind::InvalidUtf8 => value.to_str().is_none(),
        _ => refused == value.to_str(),
    };
    is_it.then(|| format!("{}: {}", name.to_string_lossy(), explanation(error)))
}

fn arguments_below(command: &Command) -> Vec<&Arg> {
    let own = command.get_arguments();
    own.chain(command.get_subcommands().flat_map(arguments_below)).collect()
}

fn explanation(error: &clap::Error) -> String {
    let value = text_of(error, ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::ValueValidation => {
            let detail = error.source().map(ToString::to_string).unwrap_or_default();
            format!("`{value}` is not valid: {detail}")
        }
        ErrorKind::InvalidValue if value.is_empty() => "expected a value".to_owned(),
        ErrorKind::InvalidValue => {
            let expected = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(names)) => names.join(" or "),
                _ => "another value".to_owned(),
            };
            format!("`{value}` is not valid: expected {expected}")
        }
        ErrorKind::InvalidUtf8 => "it is not valid UTF-8".to_owned(),
        ErrorKind::ArgumentConflict | ErrorKind::TooManyValues => "expected one value".to_owned(),
        _ => {
            let text = error.to_string();
            let line = text.lines().next().unwrap_or_default();
            line.strip_prefix("error: ").unwrap_or(line).to_owned()
        }
    }
}

fn text_of(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}
