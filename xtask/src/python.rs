//! Python packages, assuming no more than `python3` itself: a bare Debian has neither pip nor venv.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Failure};
use crate::workspace;

/// Downloads the wheels of a requirements file without their dependencies, with the machine's pip
/// or with that of a temporary virtual environment. The file must hold their hashes.
pub fn download_wheel(
    requirements: &Path,
    into: &Path,
    scratch_venv: &Path,
) -> Result<(), Failure> {
    let mut pip = match has_pip() {
        true => pip_of("python3".as_ref()),
        false => {
            create_venv(scratch_venv)?;
            pip_of(&scratch_venv.join("bin/python"))
        }
    };
    pip.args(["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]);
    process::run(pip.arg("--dest").arg(into).arg("--requirement").arg(requirements))
}

/// A Python with the packages of a requirements file.
pub struct Interpreter {
    program: PathBuf,
    /// Where the packages are, if they are not the interpreter's own.
    packages: Option<PathBuf>,
    scripts: PathBuf,
}

impl Interpreter {
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.variables()).env("PATH", self.path_with_scripts());
        command
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Installs a package of this clone and downloads nothing for it: what it depends on and what
    /// builds it are among the requirements, which have hashes.
    pub fn install(&self, package: &Path) -> Result<(), Failure> {
        let mut pip = pip_of(&self.program);
        pip.envs(self.variables());
        pip.args(["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]);
        pip.arg("--force-reinstall").arg(package);
        if let Some(packages) = &self.packages {
            pip.args(["--upgrade", "--target"]).arg(packages);
        }
        process::run(&mut pip)
    }

    /// The variable by which `python3` finds the packages, besides PATH.
    pub fn variables(&self) -> Option<(&'static str, &Path)> {
        self.packages.as_deref().map(|packages| ("PYTHONPATH", packages))
    }

    /// PATH with the packages' own commands (such as `aws`) first.
    pub fn path_with_scripts(&self) -> std::ffi::OsString {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let all = std::iter::once(self.scripts.clone()).chain(std::env::split_paths(&path));
        std::env::join_paths(all).unwrap_or(path)
    }
}

/// The Python with the AWS SDK and the AWS CLI, for tests and documents.
pub fn for_tests() -> Result<Interpreter, Failure> {
    let requirements = workspace::root().join("tests/sdk-python/requirements.txt");
    install(&requirements, &workspace::target_directory().join("python"))
}

/// Installs the requirements below `directory`, unless an earlier run did so for the same file. The
/// file must hold the hashes of all that they need.
pub fn install(requirements: &Path, directory: &Path) -> Result<Interpreter, Failure> {
    let venv = directory.join("venv");
    let packages = directory.join("packages");
    let interpreter = match prepare_venv(&venv) {
        Ok(()) => Interpreter {
            program: venv.join("bin/python"),
            packages: None,
            scripts: venv.join("bin"),
        },
        Err(failure) if !has_pip() => return Err(explain(&failure)),
        Err(_) => Interpreter {
            program: "python3".into(),
            scripts: packages.join("bin"),
            packages: Some(packages),
        },
    };
    let wanted = std::fs::read_to_string(requirements)
        .map_err(|error| Failure::file("read", requirements, &error))?;
    // Beside the packages, so that it is deleted with them.
    let home = interpreter.packages.as_ref().unwrap_or(&venv);
    let stamp = home.join("installed-requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(interpreter);
    }
    let mut pip = pip_of(&interpreter.program);
    pip.args(["install", "--quiet", "--require-hashes", "--requirement"]).arg(requirements);
    if let Some(packages) = &interpreter.packages {
        pip.args(["--upgrade", "--target"]).arg(packages);
    }
    process::run(&mut pip)?;
    std::fs::write(&stamp, wanted).map_err(|error| Failure::file("write", &stamp, &error))?;
    Ok(interpreter)
}

fn prepare_venv(venv: &Path) -> Result<(), Failure> {
    if pip_works(&venv.join("bin/python")) {
        return Ok(());
    }
    create_venv(venv)
}

fn create_venv(venv: &Path) -> Result<(), Failure> {
    process::output(Command::new("python3").args(["-m", "venv", "--clear"]).arg(venv)).map(drop)
}

fn has_pip() -> bool {
    pip_works("python3".as_ref())
}

fn pip_works(python: &Path) -> bool {
    process::output(pip_of(python).arg("--version")).is_ok()
}

fn pip_of(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "--disable-pip-version-check"]);
    command
}

fn explain(failure: &Failure) -> Failure {
    Failure::new(format!(
        "the SDK tests need Python packages, and neither pip nor venv works here ({failure}).\n\
         Install one of them (Debian: apt-get install python3-venv)."
    ))
}
