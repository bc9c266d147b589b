//! The order in which Java's `HashSet` lists names: DynamoDB prints sets of attributes so.

/// Sorts distinct names by their hashes, modulo a power of two. Names with the same remainder keep their order.
pub(crate) fn sort<S: AsRef<str>>(names: &mut [S]) {
    let mut buckets: usize = 16;
    while names.len() * 4 > buckets * 3 {
        buckets *= 2;
    }
    let bucket = |name: &S| {
        let units = name.as_ref().encode_utf16();
        let hash =
            units.fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
        (hash ^ (hash >> 16)) as usize & (buckets - 1)
    };
    names.sort_by_key(bucket);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_have_the_order_of_their_hashes() {
        let sorted = |mut names: [&'static str; 3]| {
            sort(&mut names);
            names
        };
        // Single letters hash to their codes: b is 98, which is 2 modulo 16.
        assert_eq!(sorted(["c", "b", "a"]), ["a", "b", "c"]);
        assert_eq!(sorted(["p", "o", "a"]), ["p", "a", "o"]);
        assert_eq!(sorted(["pk", "sk", "a"]), ["a", "sk", "pk"]);
    }

    #[test]
    fn a_set_that_is_three_quarters_full_grows() {
        let sorted = |count: u8| {
            let mut names: Vec<String> =
                (0..count).map(|at| char::from(b'q' - at).to_string()).collect();
            sort(&mut names);
            names.concat()
        };
        assert_eq!(sorted(12), "pqfghijklmno");
        assert_eq!(sorted(13), "efghijklmnopq");
    }
}
