//! Compiles the recorder into a library for preloading.

use std::path::Path;

fn main() {
    println!("cargo:rerun-if-changed=shim/recorder.c");
    let target = std::env::var("CARGO_CFG_TARGET_OS").unwrap_or_default();
    let directory = std::env::var("OUT_DIR").expect("cargo says where to write");
    let library = Path::new(&directory).join("recorder.so");
    println!("cargo:rustc-env=DISK_RECORDER_LIBRARY={}", library.display());
    // Other systems have nothing to preload, and skip the tests that need it.
    if target != "linux" {
        return;
    }
    let compiler = cc::Build::new().opt_level(1).pic(true).cargo_metadata(false).get_compiler();
    let mut command = compiler.to_command();
    command.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fvisibility=hidden",
        "-shared",
        "-o",
    ]);
    command.arg(&library).args(["shim/recorder.c", "-ldl", "-lpthread"]);
    let status = command.status().expect("a C compiler can be run");
    assert!(status.success(), "the recorder does not compile; see above");
}
