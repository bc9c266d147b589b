//! Time zones. There is no database of zones here, so only those that never change are known.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zone {
    hours_ahead: i64,
}

impl Zone {
    pub(crate) const UTC: Zone = Zone { hours_ahead: 0 };

    /// UTC under its names, and `Etc/GMT+9`, which is nine hours behind UTC.
    pub(crate) fn parse(name: &str) -> Option<Zone> {
        let utc = ["UTC", "Etc/UTC", "GMT", "Etc/GMT", "Etc/UCT", "Zulu", "Etc/Zulu"];
        if utc.contains(&name) {
            return Some(Zone::UTC);
        }
        let offset = name.strip_prefix("Etc/GMT")?;
        let (digits, sign, most) = match offset.strip_prefix('+') {
            Some(digits) => (digits, -1, 12),
            None => (offset.strip_prefix('-')?, 1, 14),
        };
        let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.starts_with('0');
        let hours: i64 = digits.parse().ok().filter(|hours| is_plain && *hours <= most)?;
        Some(Zone { hours_ahead: sign * hours })
    }

    pub(crate) fn ahead_ms(self) -> i64 {
        self.hours_ahead * 3_600 * 1_000
    }
}
