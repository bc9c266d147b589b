//! `yyyymmddThhmmssZ`, the only form of time in a signature.

use std::fmt;
use std::time::{Duration, SystemTime};

/// How far a request's date may be from the server's clock, either way.
const SKEW_MAX_SECONDS: i64 = 15 * 60;
const SECONDS_PER_DAY: i64 = 86_400;

/// Seconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Reads `yyyymmddThhmmssZ`; any other form, and any impossible date, is `None`.
    pub fn parse(text: &str) -> Option<Timestamp> {
        let bytes = text.as_bytes();
        if bytes.len() != 16 || bytes[8] != b'T' || bytes[15] != b'Z' {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<i64> {
            let digits = &bytes[from..to];
            digits.iter().all(u8::is_ascii_digit).then(|| {
                digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'))
            })
        };
        let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
        let (hour, minute, second) = (number(9, 11)?, number(11, 13)?, number(13, 15)?);
        let days = days_since_1970(year, month, day);
        let timestamp = Timestamp(days * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second);
        // What a number out of its range gives reads back differently.
        (timestamp.to_string() == text).then_some(timestamp)
    }

    pub fn from_system_time(time: SystemTime) -> Timestamp {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Timestamp(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
    }

    pub fn plus_skew(self) -> Timestamp {
        Timestamp(self.0.saturating_add(SKEW_MAX_SECONDS))
    }

    pub fn minus_skew(self) -> Timestamp {
        Timestamp(self.0.saturating_sub(SKEW_MAX_SECONDS))
    }

    /// `yyyymmdd`.
    pub fn day(self) -> String {
        let (year, month, day) = civil_from_days(self.0.div_euclid(SECONDS_PER_DAY));
        format!("{year:04}{month:02}{day:02}")
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = self.0.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(out, "{}T{hour:02}{minute:02}{second:02}Z", self.day())
    }
}

/// Howard Hinnant's `days_from_civil`, for the proleptic Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The inverse of [`days_since_1970`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
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
