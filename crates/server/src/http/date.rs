//! The `Date` header. When the clock is set back, hyper's own header stands still until the clock
//! has caught up.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::HeaderValue;
use zenobe_engine::clock::utc;

thread_local! {
    /// The last header, and its second.
    static LAST: RefCell<Option<(u64, HeaderValue)>> = const { RefCell::new(None) };
}

/// The current header. It is formatted once per second and thread.
pub fn now() -> HeaderValue {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    at(since_epoch.as_secs())
}

fn at(second: u64) -> HeaderValue {
    LAST.with_borrow_mut(|last| match last {
        Some((known, header)) if *known == second => header.clone(),
        _ => {
            let header = HeaderValue::from_str(&imf_fixdate(second)).expect("plain ASCII");
            last.insert((second, header)).1.clone()
        }
    })
}

/// For example `Sun, 06 Nov 1994 08:49:37 GMT`.
fn imf_fixdate(second: u64) -> String {
    let at = utc(second.saturating_mul(1_000));
    // English names, of which HTTP takes the first three letters.
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    let (weekday, month) = (&weekday[..3], &month[..3]);
    let (day, year) = (at.day(), at.year());
    let (hour, minute, second) = at.time().as_hms();
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_http_wants_them() {
        assert_eq!(imf_fixdate(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(imf_fixdate(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(imf_fixdate(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(imf_fixdate(1_700_000_000), "Tue, 14 Nov 2023 22:13:20 GMT");
    }

    /// In whichever direction the clock is set.
    #[test]
    fn the_header_follows_the_clock() {
        for second in [1_700_000_000, 1_700_000_001, 1_600_000_000, 1_700_000_002] {
            assert_eq!(at(second), imf_fixdate(second).as_str());
            assert_eq!(at(second), imf_fixdate(second).as_str());
        }
    }
}
