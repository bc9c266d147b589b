//! Sleeps more precisely than the runtime, whose timers have a resolution of a millisecond.

use std::io;
use std::time::Instant;

#[cfg(target_os = "linux")]
pub use self::linux::Timer;
#[cfg(not(target_os = "linux"))]
pub use self::portable::Timer;

#[cfg(target_os = "linux")]
mod linux {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::net::unix::pipe;

    use super::*;

    /// A kernel timer. It becomes readable when it expires. The runtime has no type for timers, but
    /// it can wait for one as it waits for a pipe.
    pub struct Timer(pipe::Receiver);

    impl Timer {
        pub fn new() -> io::Result<Timer> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Timer(pipe::Receiver::from_owned_fd_unchecked(timer)?))
        }

        pub async fn sleep_until(&mut self, deadline: Instant) -> io::Result<()> {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
            let value =
                Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let once = Itimerspec { it_interval: zero, it_value: value };
            // Setting the timer also clears an earlier expiry.
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
            while Instant::now() < deadline {
                self.0.readable().await?;
                // Reading the expiry count, which takes eight bytes, makes the timer unreadable
                // until it expires again.
                match self.0.try_read(&mut [0; 16]) {
                    Ok(_) => (),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod portable {
    use super::*;

    pub struct Timer;

    impl Timer {
        pub fn new() -> io::Result<Timer> {
            Ok(Timer)
        }

        pub async fn sleep_until(&mut self, deadline: Instant) -> io::Result<()> {
            tokio::time::sleep_until(deadline.into()).await;
            Ok(())
        }
    }
}
