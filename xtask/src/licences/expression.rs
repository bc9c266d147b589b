//! The part of SPDX expressions that crates use: names, OR (also written as a slash), AND, WITH and
//! parentheses.

/// Whether the licences that `is_allowed` accepts satisfy the expression.
pub fn is_satisfied(expression: &str, is_allowed: &dyn Fn(&str) -> bool) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, is_allowed };
    let satisfied = parser.any_of();
    satisfied && parser.words.is_empty()
}

struct Parser<'a> {
    words: &'a [&'a str],
    is_allowed: &'a dyn Fn(&str) -> bool,
}

impl Parser<'_> {
    fn any_of(&mut self) -> bool {
        let mut satisfied = self.all_of();
        while self.take("OR") {
            satisfied |= self.all_of();
        }
        satisfied
    }

    fn all_of(&mut self) -> bool {
        let mut satisfied = self.one();
        while self.take("AND") {
            satisfied &= self.one();
        }
        satisfied
    }

    fn one(&mut self) -> bool {
        if self.take("(") {
            let satisfied = self.any_of();
            return self.take(")") && satisfied;
        }
        let Some((name, rest)) = self.words.split_first() else { return false };
        self.words = rest;
        if self.take("WITH") {
            // An exception only adds permissions.
            self.words = self.words.get(1..).unwrap_or_default();
        }
        let name = name.strip_suffix("-or-later").or(name.strip_suffix('+')).unwrap_or(name);
        (self.is_allowed)(name)
    }

    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_satisfied_by_what_is_allowed() {
        let cases = [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("MIT/GPL-3.0", true),
            ("(MIT OR GPL-3.0) AND ISC", true),
            ("(GPL-3.0) AND ISC", false),
            ("ISC AND MIT OR GPL-3.0", true),
            ("MIT WITH LLVM-exception OR GPL-3.0", true),
            ("ISC+", true),
            ("", false),
            ("MIT MIT", false),
            ("(MIT", false),
        ];
        for (expression, expected) in cases {
            let is_allowed = |name: &str| matches!(name, "MIT" | "ISC");
            assert_eq!(is_satisfied(expression, &is_allowed), expected, "{expression}");
        }
    }
}
