//! The keys of this crate's rows. The first byte says what a row is; never change one.
//!
//! | key | row |
//! |---|---|
//! | `t` resource id, 0, dimension | a target with its policy and its scheduled actions |
//! | `w` resource id, 0, dimension | what the worker knows about a target |
//! | `a` time, descending, activity id | an activity: the newest comes first |
//! | `u` minute, node | what a node of a shared store consumed in a minute |

use std::ops::Range;

use crate::resource::TargetName;

const TARGET: u8 = b't';
const TARGET_STATE: u8 = b'w';
const ACTIVITY: u8 = b'a';
const USAGE: u8 = b'u';

pub(crate) fn target(name: &TargetName) -> Vec<u8> {
    of_target(TARGET, name)
}

pub(crate) fn target_state(name: &TargetName) -> Vec<u8> {
    of_target(TARGET_STATE, name)
}

fn of_target(kind: u8, name: &TargetName) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(name.resource_id().as_bytes());
    key.push(0);
    key.extend_from_slice(name.dimension().as_bytes());
    key
}

pub(crate) fn all_targets() -> Range<Vec<u8>> {
    vec![TARGET]..vec![TARGET + 1]
}

pub(crate) fn targets_of(resource_id: &str) -> Range<Vec<u8>> {
    let prefix = [&[TARGET], resource_id.as_bytes()].concat();
    [&prefix[..], &[0]].concat()..[&prefix[..], &[1]].concat()
}

pub(crate) fn activity(started_at_ms: u64, id: &str) -> Vec<u8> {
    [&[ACTIVITY], &(u64::MAX - started_at_ms).to_be_bytes()[..], id.as_bytes()].concat()
}

pub(crate) fn all_activities() -> Range<Vec<u8>> {
    vec![ACTIVITY]..vec![ACTIVITY + 1]
}

pub(crate) fn activities_before(at_ms: u64) -> Range<Vec<u8>> {
    activity(at_ms, "")..vec![ACTIVITY + 1]
}

pub(crate) fn usage(minute: u64, node: &str) -> Vec<u8> {
    [&[USAGE], &minute.to_be_bytes()[..], node.as_bytes()].concat()
}

pub(crate) fn usage_of(minute: u64) -> Range<Vec<u8>> {
    usage(minute, "")..usage(minute + 1, "")
}

pub(crate) fn usage_before(minute: u64) -> Range<Vec<u8>> {
    usage(0, "")..usage(minute, "")
}

/// The key after which a page continues begins right behind it.
pub(crate) fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
