//! Numbers for people.

use std::time::Duration;

/// `1,234,567`
pub fn human_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three digits and a unit, such as `1.23 ms`.
pub fn human_time(time: Duration) -> String {
    let nanoseconds = time.as_nanos() as f64;
    match nanoseconds {
        ..999.5 => format!("{nanoseconds:.0} ns"),
        ..999.5e3 => three_digits(nanoseconds / 1e3, "µs"),
        ..999.5e6 => three_digits(nanoseconds / 1e6, "ms"),
        _ => three_digits(nanoseconds / 1e9, "s"),
    }
}

/// Three digits and a unit, such as `12.3 MB`.
pub fn human_bytes(bytes: f64) -> String {
    match bytes {
        ..999.5 => format!("{bytes:.0} B"),
        ..999.5e3 => three_digits(bytes / 1e3, "kB"),
        ..999.5e6 => three_digits(bytes / 1e6, "MB"),
        ..999.5e9 => three_digits(bytes / 1e9, "GB"),
        _ => three_digits(bytes / 1e12, "TB"),
    }
}

/// Three digits and the unit.
pub fn three_digits(value: f64, unit: &str) -> String {
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        for (count, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(human_count(count), text);
        }
        for (nanoseconds, text) in [
            (12, "12 ns"),
            (1234, "1.23 µs"),
            (99_960, "100 µs"),
            (999_600, "1.00 ms"),
            (45_600_000, "45.6 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(human_time(Duration::from_nanos(nanoseconds)), text);
        }
        for (bytes, text) in [(0.0, "0 B"), (1500.0, "1.50 kB"), (2.5e9, "2.50 GB")] {
            assert_eq!(human_bytes(bytes), text);
        }
    }
}
