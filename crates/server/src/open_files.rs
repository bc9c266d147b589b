//! The operating system's limit on open files. Shells commonly start programs with a soft limit of
//! 1024, which is less than the connections that the server promises, and a store that cannot open
//! a file cannot write either.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the store and the process itself may have open besides connections.
const OTHER_FILES_MAX: u64 = 4_500;

/// Raises the limit as far as necessary and allowed.
pub fn raise_limit(connections_max: usize) {
    let needed = connections_max as u64 + OTHER_FILES_MAX;
    let limit = getrlimit(Resource::Nofile);
    // `None` means unlimited.
    let Some(current) = limit.current.filter(|current| *current < needed) else { return };
    let raised = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
    let outcome = if raised > current { setrlimit(Resource::Nofile, wanted) } else { Ok(()) };
    if outcome.is_err() || raised < needed {
        let allowed = if outcome.is_ok() { raised } else { current };
        tracing::warn!(
            allowed,
            needed,
            "the open-file limit is low; raise it (ulimit -n) or lower --max-connections"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_what_is_needed_or_allowed() {
        raise_limit(4096);
        let limit = getrlimit(Resource::Nofile);
        let needed = 4096 + OTHER_FILES_MAX;
        let reachable = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
        assert!(limit.current.is_none_or(|current| current >= reachable), "{limit:?}");
    }
}
