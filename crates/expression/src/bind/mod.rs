//! From parsed text to bound expressions: static checks in DynamoDB's order of priority, then
//! resolving placeholders and recording their use.

mod condition;
mod leaf;
mod path_set;
mod static_checks;
mod update;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use zenobe_value::{AttributeValue, Path, PathElement};

use crate::condition::Condition;
use crate::error::{ExpressionError, ExpressionFault, ExpressionKind, Unused};
use crate::key_condition::{KeyCondition, key_conditions};
use crate::lexer::is_word_part;
use crate::limits;
use crate::parser::{parse_condition, parse_projection, parse_update};
use crate::projection::Projection;
use crate::syntax::{RawElement, RawLeaf, RawName, RawPath, RawUpdate, Span, Tree};
use crate::syntax_cache::SyntaxCache;
use crate::update::Update;
pub(crate) use leaf::{Leaf, LeafOperand};
pub(crate) use path_set::check_disjoint;

/// Binds the expressions of one request and tracks which placeholders they use.
pub struct Binder<'a> {
    names: Option<&'a BTreeMap<String, String>>,
    values: Option<&'a BTreeMap<String, AttributeValue>>,
    /// The placeholders with the names that they stand for. Each name is copied once, however often
    /// it is used.
    used_names: Vec<(&'a str, Arc<str>)>,
    /// One entry per use. The length of expressions bounds how many there can be.
    used_values: Vec<&'a str>,
    /// Copied at the first use in an update, then shared.
    shared_values: BTreeMap<&'a str, Arc<AttributeValue>>,
}

impl<'a> Binder<'a> {
    /// The maps must be valid: keys are placeholders and values are legal.
    pub fn new(
        names: Option<&'a BTreeMap<String, String>>,
        values: Option<&'a BTreeMap<String, AttributeValue>>,
    ) -> Binder<'a> {
        Binder {
            names,
            values,
            used_names: Vec::new(),
            used_values: Vec::new(),
            shared_values: BTreeMap::new(),
        }
    }

    pub fn update(&mut self, text: &str) -> Result<Update, ExpressionError> {
        self.bind_update(text).map_err(in_kind(ExpressionKind::Update))
    }

    /// Binds a condition or a filter, depending on the kind.
    pub fn condition(
        &mut self,
        kind: ExpressionKind,
        text: &str,
    ) -> Result<Condition, ExpressionError> {
        self.bind_leaves(text).map(condition::lower).map_err(in_kind(kind))
    }

    pub fn key_condition(&mut self, text: &str) -> Result<Vec<KeyCondition>, ExpressionError> {
        self.bind_leaves(text)
            .and_then(|tree| key_conditions(&tree))
            .map_err(in_kind(ExpressionKind::KeyCondition))
    }

    pub fn projection(&mut self, text: &str) -> Result<Projection, ExpressionError> {
        self.bind_projection(text).map_err(in_kind(ExpressionKind::Projection))
    }

    /// Checks that some expression used every placeholder.
    pub fn finish(self) -> Result<(), Unused> {
        let used_names = self.used_names.into_iter().map(|(placeholder, _)| placeholder).collect();
        let names = unused(self.names, used_names);
        if !names.is_empty() {
            return Err(Unused::Names(names));
        }
        let values = unused(self.values, self.used_values);
        if !values.is_empty() {
            return Err(Unused::Values(values));
        }
        Ok(())
    }

    fn bind_update(&mut self, text: &str) -> Result<Update, ExpressionFault> {
        let update = UPDATES.with(|updates| updates.get_or_parse(text, checked_update))?;
        self.scope(text).update_actions(&update.actions)
    }

    fn bind_leaves(&mut self, text: &str) -> Result<Tree<Leaf<'a>>, ExpressionFault> {
        let tree = CONDITIONS.with(|trees| trees.get_or_parse(text, checked_condition))?;
        let mut scope = self.scope(text);
        tree.try_map(&mut |leaf| scope.leaf(leaf))
    }

    fn bind_projection(&mut self, text: &str) -> Result<Projection, ExpressionFault> {
        let paths =
            PROJECTIONS.with(|projections| projections.get_or_parse(text, checked_paths))?;
        let mut scope = self.scope(text);
        let paths = paths.iter().map(|path| scope.path(path));
        let paths: Vec<Path> = paths.collect::<Result<_, _>>()?;
        check_disjoint(&paths)?;
        Ok(Projection::new(paths))
    }

    fn scope<'b>(&'b mut self, text: &'b str) -> Scope<'b, 'a> {
        Scope { binder: self, text }
    }
}

thread_local! {
    static UPDATES: SyntaxCache<Rc<RawUpdate>> = SyntaxCache::new();
    static CONDITIONS: SyntaxCache<Rc<Tree<RawLeaf>>> = SyntaxCache::new();
    static PROJECTIONS: SyntaxCache<Rc<Vec<RawPath>>> = SyntaxCache::new();
}

fn checked_update(text: &str) -> Result<RawUpdate, ExpressionFault> {
    let parsed = parse_update(text)?;
    static_checks::check_update(text, &parsed)?;
    Ok(parsed.syntax)
}

fn checked_condition(text: &str) -> Result<Tree<RawLeaf>, ExpressionFault> {
    let parsed = parse_condition(text)?;
    static_checks::check_condition(text, &parsed)?;
    Ok(parsed.syntax)
}

fn checked_paths(text: &str) -> Result<Vec<RawPath>, ExpressionFault> {
    let parsed = parse_projection(text)?;
    static_checks::check_paths(text, &parsed.syntax)?;
    Ok(parsed.syntax)
}

/// A binder working on one text.
struct Scope<'b, 'a> {
    binder: &'b mut Binder<'a>,
    text: &'b str,
}

impl<'b, 'a> Scope<'b, 'a> {
    fn path(&mut self, raw: &RawPath) -> Result<Path, ExpressionFault> {
        let root = self.name(raw.root)?;
        let below = raw.below.iter().map(|element| self.path_element(element));
        Ok(Path::new(root, below.collect::<Result<_, _>>()?))
    }

    fn path_element(&mut self, raw: &RawElement) -> Result<PathElement, ExpressionFault> {
        match raw {
            RawElement::Name(name) => self.name(*name).map(PathElement::Name),
            RawElement::Index(digits) => list_index(digits.of(self.text)).map(PathElement::Index),
        }
    }

    fn name(&mut self, raw: RawName) -> Result<Arc<str>, ExpressionFault> {
        match raw {
            RawName::Word(word) => Ok(word.of(self.text).into()),
            RawName::Placeholder(placeholder) => self.shared_name(placeholder).map(Arc::clone),
        }
    }

    fn check_name(&mut self, raw: RawName) -> Result<(), ExpressionFault> {
        match raw {
            RawName::Word(_) => Ok(()),
            RawName::Placeholder(placeholder) => self.shared_name(placeholder).map(drop),
        }
    }

    fn shared_name(&mut self, placeholder: Span) -> Result<&Arc<str>, ExpressionFault> {
        let placeholder = placeholder.of(self.text);
        let defined = self.binder.names.and_then(|names| names.get_key_value(placeholder));
        let Some((key, name)) = defined else {
            return Err(ExpressionFault::UndefinedName { placeholder: placeholder.to_owned() });
        };
        // A placeholder is identified by its address in the map, which is cheap to compare.
        let used = &mut self.binder.used_names;
        let known = used.iter().position(|(known, _)| std::ptr::eq(*known, key.as_str()));
        let position = known.unwrap_or_else(|| {
            used.push((key, name.as_str().into()));
            used.len() - 1
        });
        Ok(&used[position].1)
    }

    fn shared_value(&mut self, placeholder: Span) -> Result<Arc<AttributeValue>, ExpressionFault> {
        let (key, value) = self.entry(placeholder)?;
        let shared = self.binder.shared_values.entry(key);
        Ok(Arc::clone(shared.or_insert_with(|| Arc::new(value.clone()))))
    }

    fn value(&mut self, placeholder: Span) -> Result<&'a AttributeValue, ExpressionFault> {
        self.entry(placeholder).map(|(_, value)| value)
    }

    fn entry(
        &mut self,
        placeholder: Span,
    ) -> Result<(&'a str, &'a AttributeValue), ExpressionFault> {
        let placeholder = placeholder.of(self.text);
        let defined = self.binder.values.and_then(|values| values.get_key_value(placeholder));
        let Some((key, value)) = defined else {
            return Err(ExpressionFault::UndefinedValue { placeholder: placeholder.to_owned() });
        };
        self.binder.used_values.push(key);
        Ok((key, value))
    }
}

/// Whether a text can be the key of ExpressionAttributeNames.
pub fn is_name_placeholder(text: &str) -> bool {
    is_placeholder(text, '#')
}

/// Whether a text can be the key of ExpressionAttributeValues.
pub fn is_value_placeholder(text: &str) -> bool {
    is_placeholder(text, ':')
}

fn is_placeholder(text: &str, prefix: char) -> bool {
    text.len() <= limits::PLACEHOLDER_SIZE_BYTES_MAX
        && text
            .strip_prefix(prefix)
            .is_some_and(|word| !word.is_empty() && word.bytes().all(is_word_part))
}

fn in_kind(kind: ExpressionKind) -> impl Fn(ExpressionFault) -> ExpressionError {
    move |fault| ExpressionError { kind, fault }
}

fn unused<Value>(defined: Option<&BTreeMap<String, Value>>, mut used: Vec<&str>) -> Vec<String> {
    let keys = defined.into_iter().flat_map(BTreeMap::keys).map(String::as_str);
    let unused: Vec<&str> = if used.len() <= FEW {
        keys.filter(|key| !used.contains(key)).collect()
    } else {
        used.sort_unstable();
        keys.filter(|key| used.binary_search(key).is_err()).collect()
    };
    unused.into_iter().map(str::to_owned).collect()
}

/// Up to this many placeholders, a linear search is cheaper than sorting.
const FEW: usize = 8;

fn list_index(digits: &str) -> Result<usize, ExpressionFault> {
    match digits.parse() {
        Ok(index) if index <= limits::LIST_INDEX_MAX => Ok(index),
        _ => Err(ExpressionFault::IndexOutOfRange { index: digits.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_have_a_prefix_and_word_characters() {
        for word in ["a", "0", "_", "a_0", &"x".repeat(254)] {
            assert!(is_name_placeholder(&format!("#{word}")), "{word}");
            assert!(is_value_placeholder(&format!(":{word}")), "{word}");
        }
        for text in ["", "#", "a", ":a", "#a-b", "#ä", "# a", &format!("#{}", "x".repeat(255))] {
            assert!(!is_name_placeholder(text), "{text}");
        }
    }
}
