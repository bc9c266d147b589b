//! Ctrl-C ends a run with its summary. Before the run, or the second time, it ends the program.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use zenobe_load::Stop;

/// The status that a shell reports for an interrupted program.
const EXIT_INTERRUPTED: i32 = 130;

pub struct Interrupt {
    running: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens on a separate thread, because preparing and running block.
    pub fn watch(stop: Stop) -> Interrupt {
        let running = Arc::new(AtomicBool::new(false));
        let seen = running.clone();
        thread::spawn(move || {
            // Without a runtime or a handler, Ctrl-C ends the program as usual.
            let mut builder = tokio::runtime::Builder::new_current_thread();
            let Ok(runtime) = builder.enable_all().build() else { return };
            while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                if !seen.load(Ordering::Relaxed) || stop.is_stopped() {
                    eprintln!();
                    std::process::exit(EXIT_INTERRUPTED);
                }
                stop.stop();
            }
        });
        Interrupt { running }
    }

    pub fn run_begins(&self) {
        self.running.store(true, Ordering::Relaxed);
    }
}
