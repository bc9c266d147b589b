//! Sleeps more exactly than the runtime, whose timers are good to a millisecond.

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

    /// A timer of the kernel's, which becomes readable when its time has come. The runtime knows no timers, but it waits for
    /// them as for the end of a pipe.
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
            // Setting the timer also takes an earlier expiry back.
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
            while Instant::now() < deadline {
                self.0.readable().await?;
                // Reading the number of expiries, which is eight bytes, makes it unreadable until the next.
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
