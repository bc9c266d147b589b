//! Times for people.

use zenobe_engine::clock;

/// For example `2026-10-09T05:53:25.330Z`.
pub fn iso8601(at_ms: u64) -> String {
    clock::iso8601_without_zone(at_ms) + "Z"
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
