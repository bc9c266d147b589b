//! Dates as some texts spell them out.

/// `Wednesday, July 25, 2018 8:48:14 PM UTC`
pub(super) fn long_date(epoch_ms: u64) -> String {
    const WEEKDAYS: [&str; 7] =
        ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let seconds = epoch_ms / 1_000;
    let days = seconds / 86_400;
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let half = if hour < 12 { "AM" } else { "PM" };
    let weekday = WEEKDAYS[(days % 7) as usize];
    let month = MONTHS[month - 1];
    let hour = (hour + 11) % 12 + 1;
    format!("{weekday}, {month} {day}, {year} {hour}:{minute:02}:{second:02} {half} UTC")
}

/// Year, month and day of a day after the epoch, by counting in eras of 400 years from 1 March 0000.
fn civil_date(days_since_epoch: u64) -> (u64, usize, u64) {
    let days = days_since_epoch + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month as usize, day)
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
