//! The distribution of values, in buckets that grow by 5 %: percentiles are accurate to within 5 %,
//! whatever the values are.

/// How many buckets are kept. Latencies from a microsecond to ten seconds take 330.
const BUCKETS_MAX: usize = 512;
const GROWTH: f64 = 1.05;
/// The bucket of zero, below all others.
const ZERO: i16 = i16::MIN;

/// Buckets in order, with the number of values in each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distribution(Vec<(i16, u64)>);

impl Distribution {
    /// `count` times the same value. Negative values have no distribution, as on AWS.
    pub fn of(value: f64, count: f64) -> Option<Distribution> {
        Some(Distribution(vec![(bucket_of(value)?, whole(count))]))
    }

    /// From buckets in any order; `None` if there are too many.
    pub fn from_buckets(buckets: impl IntoIterator<Item = (i16, u64)>) -> Option<Distribution> {
        let mut all: Vec<(i16, u64)> = buckets.into_iter().collect();
        all.sort_by_key(|(bucket, _)| *bucket);
        all.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            is_same
        });
        (all.len() <= BUCKETS_MAX).then_some(Distribution(all))
    }

    pub fn from_values(values: impl IntoIterator<Item = (f64, f64)>) -> Option<Distribution> {
        let bucket = |(value, count)| Some((bucket_of(value)?, whole(count)));
        let buckets = values.into_iter().map(bucket).collect::<Option<Vec<_>>>()?;
        Distribution::from_buckets(buckets)
    }

    pub fn buckets(&self) -> &[(i16, u64)] {
        &self.0
    }

    pub fn merge(mut self, other: &Distribution) -> Option<Distribution> {
        if let ([(mine, count)], [(others, more)]) = (&mut self.0[..], &other.0[..])
            && mine == others
        {
            *count = count.saturating_add(*more);
            return Some(self);
        }
        Distribution::from_buckets(self.0.into_iter().chain(other.0.iter().copied()))
    }

    /// The value below which a share of the values lies.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total: f64 = self.0.iter().map(|(_, count)| *count as f64).sum();
        let rank = share * total;
        let mut below = 0.0;
        for (position, (bucket, count)) in self.0.iter().enumerate() {
            let count = *count as f64;
            if below + count >= rank || position + 1 == self.0.len() {
                let inside =
                    if count > 0.0 { ((rank - below) / count).clamp(0.0, 1.0) } else { 0.0 };
                let (low, high) = bounds(*bucket);
                return Some(low + (high - low) * inside);
            }
            below += count;
        }
        None
    }
}

fn bucket_of(value: f64) -> Option<i16> {
    match value {
        0.0 => Some(ZERO),
        _ if value > 0.0 && value.is_finite() => Some((value.ln() / GROWTH.ln()).floor() as i16),
        _ => None,
    }
}

fn bounds(bucket: i16) -> (f64, f64) {
    match bucket {
        ZERO => (0.0, 0.0),
        _ => (GROWTH.powi(i32::from(bucket)), GROWTH.powi(i32::from(bucket) + 1)),
    }
}

/// Counts may be fractions; a bucket has at least one value.
fn whole(count: f64) -> u64 {
    (count.round() as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_within_a_bucket() {
        let values = (1..=10_000).map(|value| (f64::from(value) / 100.0, 1.0));
        let all = Distribution::from_values(values).unwrap();
        for (share, expected) in
            [(0.5, 50.0), (0.9, 90.0), (0.99, 99.0), (0.999, 99.9), (0.01, 1.0)]
        {
            let found = all.quantile(share).unwrap();
            assert!((found / expected - 1.0).abs() < 0.05, "{share}: {found}");
        }
    }

    #[test]
    fn zero_and_extremes_have_buckets() {
        let all = Distribution::from_values([(0.0, 3.0), (f64::MAX, 1.0), (5e-324, 1.0)]).unwrap();
        assert_eq!(all.quantile(0.5), Some(0.0));
        assert!(all.quantile(1.0).unwrap() > 1e300);
        for without in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Distribution::of(without, 1.0), None);
        }
        assert_eq!(Distribution::default().quantile(0.5), None);
    }

    #[test]
    fn a_distribution_is_bounded() {
        let wide = (0..2_000).map(|power| (1.05_f64.powi(power) * 1.01, 1.0));
        assert_eq!(Distribution::from_values(wide), None);
        let narrow = Distribution::of(1.5, 2.0).unwrap();
        assert_eq!(narrow.clone().merge(&narrow).unwrap().buckets(), [(8, 4)]);
    }
}
