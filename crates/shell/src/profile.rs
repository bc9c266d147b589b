//! Access keys and region from a profile of the AWS CLI.

use std::path::{Path, PathBuf};

use zenobe_load::Credential;

#[derive(Debug)]
pub struct Profile {
    pub credential: Credential,
    pub region: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error(
        "there is no home directory to read the profile from; set AWS_SHARED_CREDENTIALS_FILE to the file"
    )]
    NoHome,
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    #[error("{} has no profile {name}", path.display())]
    Missing { path: PathBuf, name: String },
    #[error(
        "the profile {name} in {} has no access key; for a role or single sign-on run \
         `eval \"$(aws configure export-credentials --profile {name} --format env)\"` and omit --profile",
        path.display()
    )]
    NoKeys { path: PathBuf, name: String },
}

impl Profile {
    /// Reads the keys from `AWS_SHARED_CREDENTIALS_FILE` or `~/.aws/credentials`, and the region
    /// from `AWS_CONFIG_FILE` or `~/.aws/config`.
    pub fn load(name: &str) -> Result<Profile, ProfileError> {
        let path =
            file("AWS_SHARED_CREDENTIALS_FILE", "credentials").ok_or(ProfileError::NoHome)?;
        let text = std::fs::read_to_string(&path)
            .map_err(|error| ProfileError::Read { path: path.clone(), error })?;
        let credential = credential(&text, name, &path)?;
        let configuration = file("AWS_CONFIG_FILE", "config");
        let configuration = configuration.and_then(|path| std::fs::read_to_string(path).ok());
        let section = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let region = configuration.and_then(|text| setting(&text, &section, "region"));
        Ok(Profile { credential, region: setting(&text, name, "region").or(region) })
    }
}

fn file(named_by: &str, name: &str) -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match variable(named_by) {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(PathBuf::from(variable("HOME")?).join(".aws").join(name)),
    }
}

fn credential(text: &str, name: &str, path: &Path) -> Result<Credential, ProfileError> {
    let (path, section) = (path.to_owned(), name.to_owned());
    if !sections(text).any(|(section, _)| section == name) {
        return Err(ProfileError::Missing { path, name: section });
    }
    let setting = |key: &str| setting(text, name, key);
    match (setting("aws_access_key_id"), setting("aws_secret_access_key")) {
        (Some(access_key), Some(secret_key)) => {
            let session_token = setting("aws_session_token");
            Ok(Credential { access_key, secret_key, session_token })
        }
        _ => Err(ProfileError::NoKeys { path, name: section }),
    }
}

/// The value of a key in a section of an INI file.
fn setting(text: &str, section: &str, key: &str) -> Option<String> {
    let lines = sections(text).filter(|(here, _)| *here == section).flat_map(|(_, lines)| lines);
    let mut pairs = lines.filter_map(|line| line.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim() == key)?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

fn sections(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => sections.push((name.trim(), Vec::new())),
            None => sections.last_mut().into_iter().for_each(|(_, lines)| lines.push(line)),
        }
    }
    sections.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
aws_access_key_id = of no profile
[default]
# aws_access_key_id = no
aws_access_key_id = A
aws_secret_access_key=s=1
[ work ]
aws_access_key_id = B
aws_secret_access_key = t
aws_session_token = u
region = eu-west-1
[sso]
sso_session = x
";

    #[test]
    fn profiles_have_keys_or_say_why_not() {
        let read = |name: &str| {
            credential(FILE, name, Path::new("credentials"))
                .map(|found| (found.access_key, found.secret_key, found.session_token))
        };
        assert_eq!(read("default").unwrap(), ("A".into(), "s=1".into(), None));
        assert_eq!(read("work").unwrap(), ("B".into(), "t".into(), Some("u".into())));
        assert_eq!(read("other").unwrap_err().to_string(), "credentials has no profile other");
        assert!(read("sso").unwrap_err().to_string().contains("has no access key"));
        assert_eq!(setting(FILE, "work", "region").as_deref(), Some("eu-west-1"));
        assert_eq!(setting(FILE, "default", "region"), None);
    }
}
