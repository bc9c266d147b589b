//! The time in the header `x-zenobe-as-of`.

use zenobe_engine::history::AsOf;

const DAY_S: i64 = 24 * 60 * 60;

/// A date and time such as `2026-11-16T08:00:00Z`, or seconds since the epoch. A time without a
/// fraction means its whole second, one with a fraction its millisecond.
pub fn parse(given: &str) -> Option<AsOf> {
    let given = given.trim();
    if !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit()) {
        return given.parse().ok().map(AsOf::second);
    }
    let (second, rest) = date_and_time(given)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => (None, rest),
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            (Some(milliseconds(&rest[..digits])?), &rest[digits..])
        }
    };
    let second = u64::try_from(second - offset_s(zone)?).ok()?;
    Some(match fraction {
        None => AsOf::second(second),
        Some(fraction_ms) => AsOf::ms(second * 1_000 + fraction_ms),
    })
}

/// The second of `YYYY-MM-DDTHH:MM:SS`, as if in UTC, and what follows.
fn date_and_time(given: &str) -> Option<(i64, &str)> {
    let (text, rest) = given.split_at_checked("YYYY-MM-DDTHH:MM:SS".len())?;
    let has_separators = text.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        10 => matches!(byte, b'T' | b't' | b' '),
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    });
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    if !has_separators {
        return None;
    }
    let day = days_since_epoch(number(0, 4)?, number(5, 7)?, number(8, 10)?)?;
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let is_time = hour < 24 && minute < 60 && second < 60;
    is_time.then_some((day * DAY_S + (hour * 60 + minute) * 60 + second, rest))
}

/// Days since 1970 in the Gregorian calendar, if there is such a date.
fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if is_leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = usize::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
    if year < 1970 || day < 1 || day > lengths[month - 1] {
        return None;
    }
    // Leap days up to the end of the year before.
    let leap_days = |year: i64| (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let years = (year - 1970) * 365 + leap_days(year) - leap_days(1970);
    Some(years + lengths[..month - 1].iter().sum::<i64>() + day - 1)
}

fn milliseconds(digits: &str) -> Option<u64> {
    let padded = format!("{digits:0<3}");
    if digits.is_empty() { None } else { padded.get(..3)?.parse().ok() }
}

/// How far a zone is ahead of UTC.
fn offset_s(zone: &str) -> Option<i64> {
    if matches!(zone, "Z" | "z") {
        return Some(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let is_valid = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_valid(hours) || !is_valid(minutes) {
        return None;
    }
    Some(sign * (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_second_or_the_millisecond() {
        for (given, expected) in [
            ("2026-11-16T08:00:00Z", AsOf::second(1_794_816_000)),
            (" 2026-11-16t08:00:00z ", AsOf::second(1_794_816_000)),
            ("2026-11-16 09:30:00+01:30", AsOf::second(1_794_816_000)),
            ("2026-11-15T22:00:00-10:00", AsOf::second(1_794_816_000)),
            ("1794816000", AsOf::second(1_794_816_000)),
            ("2026-11-16T08:00:00.25Z", AsOf::ms(1_794_816_000_250)),
            ("2026-11-16T08:00:00.250999Z", AsOf::ms(1_794_816_000_250)),
            ("2024-02-29T23:59:59Z", AsOf::second(1_709_251_199)),
            ("1970-01-01T00:00:00Z", AsOf::second(0)),
        ] {
            assert_eq!(parse(given), Some(expected), "{given}");
        }
        for given in [
            "",
            "now",
            "2026-11-16",
            "2026-11-16T08:00:00",
            "2026-11-16T24:00:00Z",
            "2026-13-16T08:00:00Z",
            "2023-02-29T00:00:00Z",
            "2026-11-16T08:00:00.Z",
            "2026-11-16T08:00:00+1:00",
            "2026-11-16T08:00:00é",
            "1969-12-31T23:59:59Z",
            "99999999999999999999999",
        ] {
            assert_eq!(parse(given), None, "{given}");
        }
    }
}
