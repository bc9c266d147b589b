//! Labels of streams: the time of enabling, as in `2026-10-09T05:53:25.330`. Unique per table, because
//! a stream is known by its table and its label.

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// The label of a stream enabled now on a table whose latest stream has the label `latest`. Within the
/// same millisecond, or after a clock that went back, it is the first free one after `latest`.
pub(crate) fn next(latest: Option<&str>, now_ms: u64) -> String {
    let after_latest_ms = latest.and_then(parse).map_or(0, |latest_ms| latest_ms + 1);
    format(now_ms.max(after_latest_ms))
}

fn format(at_ms: u64) -> String {
    let (year, month, day) = civil_from_days(at_ms / DAY_MS);
    let in_day_ms = at_ms % DAY_MS;
    let (hour, minute) = (in_day_ms / 3_600_000, in_day_ms / 60_000 % 60);
    let (second, millisecond) = (in_day_ms / 1_000 % 60, in_day_ms % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}")
}

fn parse(label: &str) -> Option<u64> {
    let field = |range: std::ops::Range<usize>| label.get(range)?.parse::<u64>().ok();
    let days = days_from_civil(field(0..4)?, field(5..7)?, field(8..10)?);
    let minutes = field(11..13)? * 60 + field(14..16)?;
    Some(days * DAY_MS + (minutes * 60 + field(17..19)?) * 1_000 + field(20..23)?)
}

/// Year, month and day of a day since the Unix epoch. Years are counted from March, so that the leap day
/// is the last of its year; 146,097 days make 400 years.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn days_from_civil(year: u64, month: u64, day: u64) -> u64 {
    let year = year - u64::from(month <= 2);
    let (era, year_of_era) = (year / 400, year % 400);
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_times_without_a_zone() {
        let check = |at_ms, label: &str| {
            assert_eq!(format(at_ms), label);
            assert_eq!(parse(label), Some(at_ms));
        };
        check(0, "1970-01-01T00:00:00.000");
        check(951_782_400_000, "2000-02-29T00:00:00.000");
        check(1_791_525_205_330, "2026-10-09T05:53:25.330");
        check(1_798_761_599_999, "2026-12-31T23:59:59.999");
        check(4_107_542_400_000, "2100-03-01T00:00:00.000");
    }

    #[test]
    fn labels_never_repeat() {
        let first = next(None, 1_000);
        let second = next(Some(&first), 1_000);
        let third = next(Some(&second), 500);
        assert_eq!(first, "1970-01-01T00:00:01.000");
        assert_eq!(second, "1970-01-01T00:00:01.001");
        assert_eq!(third, "1970-01-01T00:00:01.002");
        assert_eq!(next(Some(&third), 9_000), "1970-01-01T00:00:09.000");
    }
}
