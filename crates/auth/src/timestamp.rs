//! `yyyymmddThhmmssZ`, the only form of time in a signature.

use std::fmt;
use std::time::{Duration, SystemTime};

use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

/// How far a request's date may differ from the server's clock, in either direction.
pub(crate) const SKEW_MAX_SECONDS: i64 = 15 * 60;

/// Seconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Reads `yyyymmddThhmmssZ`. `None` for any other form and for impossible dates.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let bytes = text.as_bytes();
        if bytes.len() != 16 || bytes[8] != b'T' || bytes[15] != b'Z' {
            return None;
        }
        let digit = |at: usize| bytes[at].is_ascii_digit().then(|| bytes[at] - b'0');
        let two_digits = |from: usize| Some(10 * digit(from)? + digit(from + 1)?);
        let year = 100 * i32::from(two_digits(0)?) + i32::from(two_digits(2)?);
        let (month, day) = (two_digits(4)?, two_digits(6)?);
        let (hour, minute, second) = (two_digits(9)?, two_digits(11)?, two_digits(13)?);
        let date = Date::from_calendar_date(year, Month::try_from(month).ok()?, day).ok()?;
        let time = Time::from_hms(hour, minute, second).ok()?;
        Some(Timestamp(PrimitiveDateTime::new(date, time).assume_utc().unix_timestamp()))
    }

    pub fn from_system_time(time: SystemTime) -> Timestamp {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }

    pub fn plus_skew(self) -> Timestamp {
        Timestamp(self.0.saturating_add(SKEW_MAX_SECONDS))
    }

    pub fn minus_seconds(self, seconds: i64) -> Timestamp {
        Timestamp(self.0.saturating_sub(seconds))
    }

    /// `yyyymmdd`.
    pub fn day(self) -> String {
        let date = self.utc().date();
        format!("{:04}{:02}{:02}", date.year(), u8::from(date.month()), date.day())
    }

    /// A clock beyond the year 9999 stops at the end of that year.
    fn utc(self) -> OffsetDateTime {
        let end = PrimitiveDateTime::MAX.assume_utc();
        OffsetDateTime::from_unix_timestamp(self.0).unwrap_or(end)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute, second) = self.utc().time().as_hms();
        write!(out, "{}T{hour:02}{minute:02}{second:02}Z", self.day())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_possible_dates_in_the_basic_format_are_read() {
        assert_eq!(Timestamp::parse("19700101T000000Z"), Some(Timestamp(0)));
        assert_eq!(Timestamp::parse("20150830T123600Z"), Some(Timestamp(1_440_938_160)));
        assert_eq!(Timestamp::parse("20240229T235959Z"), Some(Timestamp(1_709_251_199)));
        for text in [
            "",
            "20150830",
            "2015-08-30T12:36:00Z",
            "20150830T123600",
            "20230229T000000Z",
            "20151301T000000Z",
            "20150800T000000Z",
            "20150830T240000Z",
            "20150830T236000Z",
            "+0150830T123600Z",
            "2015083٣T12360Z",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_second_of_four_digit_years_reads_back(seconds in -62_167_219_200i64..253_402_300_800) {
            let timestamp = Timestamp(seconds);
            prop_assert_eq!(Timestamp::parse(&timestamp.to_string()), Some(timestamp));
        }
    }
}
