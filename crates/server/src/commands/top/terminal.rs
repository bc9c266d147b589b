//! The terminal as a canvas: its size, single keys, and restoring it at the end.

use std::io::{IsTerminal, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::sync::mpsc;

use super::frame::Size;

/// The alternate screen, without a cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";

/// How many pressed keys are buffered.
const KEYS_MAX: usize = 16;

/// For terminals that don't say how large they are.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

pub struct Terminal {
    /// The input's former mode, if it is a terminal.
    former: Option<Termios>,
    keys: mpsc::Receiver<u8>,
}

impl Terminal {
    /// `None` if the output is not a terminal.
    pub fn open() -> Option<Terminal> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        let (sender, keys) = mpsc::channel(KEYS_MAX);
        let former = tcgetattr(std::io::stdin()).ok();
        if let Some(former) = &former {
            take_keys(former);
            // It ends with the process: a read from a terminal can't be cancelled.
            std::thread::spawn(move || read_keys(&sender));
        }
        let terminal = Terminal { former, keys };
        print(ENTER).ok()?;
        Some(terminal)
    }

    pub fn size(&self) -> Size {
        match tcgetwinsize(std::io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                Size { columns: size.ws_col.into(), rows: size.ws_row.into() }
            }
            _ => USUAL_SIZE,
        }
    }

    pub fn draw(&mut self, lines: &[String]) -> std::io::Result<()> {
        let mut text = HOME.to_owned();
        for (position, line) in lines.iter().enumerate() {
            // A line feed after the last line would scroll the screen.
            text.push_str(if position == 0 { "" } else { "\r\n" });
            text.push_str(line);
            text.push_str(CLEAR_LINE);
        }
        text.push_str(CLEAR_BELOW);
        print(&text)
    }

    /// The next key. Waits forever if none can come.
    pub async fn key(&mut self) -> u8 {
        match self.keys.recv().await {
            Some(key) => key,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = print(LEAVE);
        if let Some(former) = &self.former {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, former);
        }
    }
}

/// Keys arrive one by one and are not shown. Ctrl-C is still a signal; Ctrl-Z would leave the shell
/// with the alternate screen.
fn take_keys(former: &Termios) {
    let mut modes = former.clone();
    modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &modes);
}

fn read_keys(keys: &mpsc::Sender<u8>) {
    let mut input = std::io::stdin().lock();
    let mut key = [0];
    while matches!(input.read(&mut key), Ok(1)) && keys.blocking_send(key[0]).is_ok() {}
}

fn print(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
