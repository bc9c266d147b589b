//! Which compression a client accepts, by DynamoDB's interpretation of `Accept-Encoding`.

use hyper::header::{ACCEPT_ENCODING, HeaderMap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    Gzip,
    /// In the zlib format (RFC 1950).
    Deflate,
}

impl Coding {
    pub fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Deflate => "deflate",
        }
    }
}

/// The client's preferred coding. Of several header lines only the first counts.
pub fn accepted(headers: &HeaderMap) -> Option<Coding> {
    preferred(headers.get(ACCEPT_ENCODING)?.to_str().ok()?)
}

/// The rank of a coding. At equal quality a name beats `*`, and an earlier entry a later one.
#[derive(Debug, Clone, Copy)]
struct Preference {
    quality: f64,
    is_named: bool,
    position: usize,
}

impl Preference {
    fn outdoes(&self, other: &Preference) -> bool {
        let rank =
            |preference: &Preference| (preference.is_named, usize::MAX - preference.position);
        match self.quality.total_cmp(&other.quality) {
            std::cmp::Ordering::Equal => rank(self) > rank(other),
            order => order.is_gt(),
        }
    }
}

fn preferred(line: &str) -> Option<Coding> {
    let line = line.to_ascii_lowercase();
    let of = |name: &str, is_named: bool| best(&line, name, is_named);
    // A coding that is not listed ranks as `*`.
    let liked = |coding: Coding| of(coding.name(), true).or_else(|| of("*", false));
    let mut chosen: Option<(Coding, Preference)> = None;
    for coding in [Coding::Gzip, Coding::Deflate] {
        let Some(preference) = liked(coding).filter(|preference| preference.quality > 0.0) else {
            continue;
        };
        if chosen.is_none_or(|(_, best)| preference.outdoes(&best)) {
            chosen = Some((coding, preference));
        }
    }
    chosen.map(|(coding, _)| coding)
}

/// The best entry with that name. Any other spelling, quoted or with a space, names another coding.
fn best(line: &str, name: &str, is_named: bool) -> Option<Preference> {
    let mut best: Option<Preference> = None;
    for (position, entry) in line.split(',').enumerate() {
        let mut parts = entry.split(';').map(str::trim);
        if parts.next() != Some(name) {
            continue;
        }
        let preference = Preference { quality: quality(parts), is_named, position };
        if best.is_none_or(|best| preference.outdoes(&best)) {
            best = Some(preference);
        }
    }
    best
}

/// The first q counts, from 0 to 1. Without one, or if it is not a number, the quality is 1.
fn quality<'p>(mut parameters: impl Iterator<Item = &'p str>) -> f64 {
    let given = parameters.find_map(|parameter| parameter.strip_prefix("q="));
    match given.and_then(|text| text.trim().parse::<f64>().ok()) {
        Some(quality) if !quality.is_nan() => quality.clamp(0.0, 1.0),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    /// Recorded on AWS.
    #[test]
    fn codings_are_chosen_as_on_aws() {
        let gzip = Some(Coding::Gzip);
        let deflate = Some(Coding::Deflate);
        for (line, expected) in [
            ("gzip", gzip),
            ("GZIP", gzip),
            ("deflate", deflate),
            ("deflate, GZIP;q=0.5", deflate),
            ("deflate;q=0.4, gzip;q=0.5", gzip),
            ("deflate, gzip", deflate),
            ("gzip, deflate", gzip),
            ("identity;q=1, gzip;q=0.1", gzip),
            ("br;q=1, deflate;q=0.1", deflate),
            ("*", gzip),
            ("*;q=0", None),
            ("*, deflate;q=0.5", gzip),
            ("*, gzip;q=0.5", deflate),
            ("*, deflate", deflate),
            ("*, gzip;q=0", deflate),
            ("gzip;q=0", None),
            ("gzip; q=0.000", None),
            ("gzip;q=2, deflate;q=1", gzip),
            ("deflate;q=1, gzip;q=2", deflate),
            ("gzip;q=0.5;q=1, deflate;q=0.6", deflate),
            ("gzip;q=0.x, deflate;q=0.9", gzip),
            ("gzip;q=-1", None),
            ("gzip;q=0, gzip;q=0.5", gzip),
            ("gzip;q =0", gzip),
            ("identity", None),
            ("\"gzip\"", None),
            ("x-gzip", None),
            ("gzip br", None),
            ("gzip:q=1", None),
            ("", None),
        ] {
            assert_eq!(preferred(line), expected, "{line}");
        }
    }

    #[test]
    fn only_the_first_line_counts() {
        let mut headers = HeaderMap::new();
        assert_eq!(accepted(&headers), None);
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.append(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        assert_eq!(accepted(&headers), None);
    }
}
