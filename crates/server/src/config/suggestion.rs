//! "Did you mean …?"

/// clap's threshold for flags. Anything less similar is a guess.
const SIMILARITY_MIN: f64 = 0.7;

/// The known name most similar to the given one, if any is similar enough.
pub fn suggest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rated = known.into_iter().map(|name| (strsim::jaro(given, name), name));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.filter(|(similarity, _)| *similarity > SIMILARITY_MIN).map(|(_, name)| name)
}

/// The end of a message about an unknown name.
pub fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_name_is_suggested() {
        let known = ["cache-mb", "memory", "listen"];
        assert_eq!(suggest("cache-md", known), Some("cache-mb"));
        assert_eq!(suggest("memroy", known), Some("memory"));
        assert_eq!(suggest("colour", known), None);
    }
}
