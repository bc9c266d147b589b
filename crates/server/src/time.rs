//! Times for people.

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// As in `2026-10-09T05:53:25.330Z`.
pub fn iso8601(at_ms: u64) -> String {
    let (year, month, day) = civil_from_days(at_ms / DAY_MS);
    let in_day_ms = at_ms % DAY_MS;
    let (hour, minute) = (in_day_ms / 3_600_000, in_day_ms / 60_000 % 60);
    let (second, millisecond) = (in_day_ms / 1_000 % 60, in_day_ms % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_iso_8601() {
        assert_eq!(iso8601(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso8601(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(iso8601(1_700_000_002_345), "2023-11-14T22:13:22.345Z");
    }
}
