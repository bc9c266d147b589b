//! Dates in the long form that some texts use.

use zenobe_engine::clock::utc;

/// `Wednesday, July 25, 2018 8:48:14 PM UTC`
pub(super) fn long_date(epoch_ms: u64) -> String {
    let at = utc(epoch_ms);
    let (weekday, month, day, year) = (at.weekday(), at.month(), at.day(), at.year());
    let (hour, minute, second) = at.time().as_hms();
    let half = if hour < 12 { "AM" } else { "PM" };
    let hour = (hour + 11) % 12 + 1;
    format!("{weekday}, {month} {day}, {year} {hour}:{minute:02}:{second:02} {half} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_out() {
        assert_eq!(long_date(1_532_551_694_000), "Wednesday, July 25, 2018 8:48:14 PM UTC");
        assert_eq!(long_date(0), "Thursday, January 1, 1970 12:00:00 AM UTC");
        assert_eq!(long_date(1_709_208_000_000), "Thursday, February 29, 2024 12:00:00 PM UTC");
    }
}
