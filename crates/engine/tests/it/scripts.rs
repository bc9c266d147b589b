//! One test per directory of golden scripts.

use crate::support::golden::run;

#[test]
fn writes() {
    run("writes");
}

#[test]
fn updates() {
    run("updates");
}

#[test]
fn indexes() {
    run("indexes");
}

#[test]
fn pages() {
    run("pages");
}

#[test]
fn batches() {
    run("batches");
}

#[test]
fn streams() {
    run("streams");
}

#[test]
fn time_to_live() {
    run("time_to_live");
}

#[test]
fn transactions() {
    run("transactions");
}
