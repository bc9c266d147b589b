//! A cache of parsed expressions. Applications send the same few texts again and again, with
//! different values.

use std::cell::RefCell;
use std::collections::HashMap;

/// One thread's cache for one kind of expression, by text. `Shared` is a counted pointer to the
/// syntax.
pub(crate) struct SyntaxCache<Shared> {
    by_text: RefCell<HashMap<Box<str>, Shared>>,
}

/// A full cache is dropped as a whole: clients that overfill it don't repeat their texts.
const TEXTS_MAX: usize = 128;

/// Longer texts come from programs rather than people, and rarely repeat.
const TEXT_SIZE_BYTES_MAX: usize = 512;

impl<Shared: Clone> SyntaxCache<Shared> {
    pub fn new() -> SyntaxCache<Shared> {
        SyntaxCache { by_text: RefCell::default() }
    }

    /// Returns the cached syntax, or parses the text. Faulty texts are not cached.
    pub fn get_or_parse<Syntax, Fault>(
        &self,
        text: &str,
        parse: impl FnOnce(&str) -> Result<Syntax, Fault>,
    ) -> Result<Shared, Fault>
    where
        Shared: From<Syntax>,
    {
        if let Some(known) = self.by_text.borrow().get(text) {
            return Ok(known.clone());
        }
        let parsed = Shared::from(parse(text)?);
        if text.len() <= TEXT_SIZE_BYTES_MAX {
            let mut by_text = self.by_text.borrow_mut();
            if by_text.len() >= TEXTS_MAX {
                by_text.clear();
            }
            by_text.insert(text.into(), parsed.clone());
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::error::ExpressionFault;

    #[test]
    fn a_text_is_parsed_once_unless_it_is_faulty() {
        let cache: SyntaxCache<Rc<usize>> = SyntaxCache::new();
        let parse = |text: &str| {
            cache.get_or_parse(text, |text| Ok::<usize, ExpressionFault>(text.len())).unwrap()
        };
        let first = parse("a = b");
        assert!(Rc::ptr_eq(&first, &parse("a = b")));
        assert_eq!(*parse("a = bc"), 6);
        let fault =
            cache.get_or_parse("a b", |_| Err::<usize, ExpressionFault>(ExpressionFault::Empty));
        assert_eq!(fault, Err(ExpressionFault::Empty));
        assert_eq!(*parse("a b"), 3);
    }

    #[test]
    fn no_more_is_kept_than_the_limits_say() {
        let cache: SyntaxCache<Rc<usize>> = SyntaxCache::new();
        let long = "x".repeat(TEXT_SIZE_BYTES_MAX + 1);
        let texts = (0..3 * TEXTS_MAX).map(|number| number.to_string()).chain([long.clone()]);
        for text in texts {
            cache.get_or_parse(&text, |text| Ok::<usize, ExpressionFault>(text.len())).unwrap();
            assert!(cache.by_text.borrow().len() <= TEXTS_MAX);
        }
        assert!(!cache.by_text.borrow().contains_key(&*long));
    }
}
