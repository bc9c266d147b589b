//! Labels of streams: the time of enabling, such as `2026-10-09T05:53:25.330`. Labels are unique
//! per table, because a table and a label identify a stream.

use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};

use crate::clock::iso8601_without_zone;

/// The label of a stream enabled now on a table whose latest stream has the label `latest`. Within
/// the same millisecond, or after the clock went back, it is the first free label after `latest`.
pub(crate) fn next(latest: Option<&str>, now_ms: u64) -> String {
    let after_latest_ms = latest.and_then(parse).map_or(0, |latest_ms| latest_ms + 1);
    iso8601_without_zone(now_ms.max(after_latest_ms))
}

fn parse(label: &str) -> Option<u64> {
    let field = |range: std::ops::Range<usize>| label.get(range)?.parse::<u8>().ok();
    let year = label.get(0..4)?.parse().ok()?;
    let date = Date::from_calendar_date(year, field(5..7)?.try_into().ok()?, field(8..10)?).ok()?;
    let millisecond = label.get(20..23)?.parse().ok()?;
    let time = Time::from_hms_milli(field(11..13)?, field(14..16)?, field(17..19)?, millisecond);
    let at = PrimitiveDateTime::new(date, time.ok()?).assume_utc();
    u64::try_from((at - OffsetDateTime::UNIX_EPOCH).whole_milliseconds()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_times_without_a_zone() {
        let check = |at_ms, label: &str| {
            assert_eq!(iso8601_without_zone(at_ms), label);
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
