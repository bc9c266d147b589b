//! The model's trees as expression text, bound like a client's text.

use std::collections::BTreeMap;

use zenobe_expression::{
    Binder, Condition, ExpressionError, ExpressionKind, KeyCondition, Projection, Update,
    is_reserved_word,
};
use zenobe_value::{AttributeType, AttributeValue};

use crate::render::Render;
use crate::twin::condition::Test;
use crate::twin::page::KeyTest;
use crate::twin::route::Route;
use crate::twin::update::Update as ModelUpdate;

/// The expressions of one request, with the placeholders that they share.
#[derive(Debug, Default)]
pub struct Text {
    names: BTreeMap<String, String>,
    values: BTreeMap<String, AttributeValue>,
}

/// The bound expressions; `None` for those that were not requested.
#[derive(Debug, Default)]
pub struct Bound {
    pub update: Option<Update>,
    pub condition: Option<Condition>,
    pub key_conditions: Vec<KeyCondition>,
    pub filter: Option<Condition>,
    pub projection: Option<Projection>,
}

/// The model's side of a request's expressions.
#[derive(Debug, Default, Clone, Copy)]
pub struct Trees<'m> {
    pub update: Option<&'m ModelUpdate>,
    pub condition: Option<&'m Test>,
    pub key_conditions: Option<&'m [(String, KeyTest)]>,
    pub filter: Option<&'m Test>,
    pub projection: Option<&'m [Route]>,
}

impl Trees<'_> {
    /// # Panics
    /// If an expression is rejected: the generator only creates valid ones.
    pub fn bind(self) -> Bound {
        let mut text = Text::default();
        let update = self.update.map(|update| text.update(update));
        let condition = self.condition.map(|test| text.test(test));
        let key_conditions = self.key_conditions.map(|tests| text.key_tests(tests).join(" AND "));
        let filter = self.filter.map(|test| text.test(test));
        let projection = self.projection.map(|routes| text.routes(routes));
        let names = (!text.names.is_empty()).then_some(&text.names);
        let values = (!text.values.is_empty()).then_some(&text.values);
        let mut binder = Binder::new(names, values);
        let bound = Bound {
            update: update.map(|text| valid(&text, binder.update(&text))),
            condition: condition
                .map(|text| valid(&text, binder.condition(ExpressionKind::Condition, &text))),
            key_conditions: key_conditions
                .map(|text| valid(&text, binder.key_condition(&text)))
                .unwrap_or_default(),
            filter: filter
                .map(|text| valid(&text, binder.condition(ExpressionKind::Filter, &text))),
            projection: projection.map(|text| valid(&text, binder.projection(&text))),
        };
        assert_eq!(binder.finish(), Ok(()), "every placeholder is used");
        bound
    }
}

fn valid<T>(text: &str, bound: Result<T, ExpressionError>) -> T {
    bound.unwrap_or_else(|error| panic!("`{text}` was refused: {error:?}"))
}

impl Text {
    /// The text of a condition with its values inline, for people.
    pub fn describe_test(test: &Test) -> String {
        let mut text = Text::default();
        let rendered = text.test(test);
        text.inlined(rendered)
    }

    pub fn describe_update(update: &ModelUpdate) -> String {
        let mut text = Text::default();
        let rendered = text.update(update);
        text.inlined(rendered)
    }

    pub fn describe_key_tests(tests: &[(String, KeyTest)]) -> String {
        let mut text = Text::default();
        let rendered = text.key_tests(tests).join(" AND ");
        text.inlined(rendered)
    }

    fn inlined(&self, mut rendered: String) -> String {
        for (placeholder, name) in self.names.iter().rev() {
            rendered = rendered.replace(placeholder, name);
        }
        for (placeholder, value) in self.values.iter().rev() {
            rendered = rendered.replace(placeholder, &format!("`{}`", show(value)));
        }
        rendered
    }

    fn update(&mut self, update: &ModelUpdate) -> String {
        let mut sections = Vec::new();
        let mut section = |keyword: &str, actions: Vec<String>| {
            if !actions.is_empty() {
                sections.push(format!("{keyword} {}", actions.join(", ")));
            }
        };
        let removes = update.removes.iter().map(|route| self.route(route)).collect();
        section("REMOVE", removes);
        let sets = update.sets.iter().map(|(target, source)| {
            let target = self.route(target);
            format!("{target} = {}", self.source(source))
        });
        section("SET", sets.collect());
        let mut with_value = |actions: &[(Route, AttributeValue)]| -> Vec<String> {
            let action = |(target, value): &(Route, AttributeValue)| {
                let target = self.route(target);
                format!("{target} {}", self.value(value))
            };
            actions.iter().map(action).collect()
        };
        section("ADD", with_value(&update.adds));
        section("DELETE", with_value(&update.deletes));
        sections.join(" ")
    }
}

impl Render for Text {
    /// The name itself, every other time, if the grammar allows it. Otherwise a placeholder.
    fn name(&mut self, name: &str) -> String {
        let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|character| character.is_ascii_alphanumeric())
            && !is_reserved_word(name);
        if is_plain && (self.names.len() + self.values.len()).is_multiple_of(2) {
            return name.to_owned();
        }
        let placeholder = format!("#n{:03}", self.names.len());
        self.names.insert(placeholder.clone(), name.to_owned());
        placeholder
    }

    fn value(&mut self, value: &AttributeValue) -> String {
        let placeholder = format!(":v{:03}", self.values.len());
        self.values.insert(placeholder.clone(), value.clone());
        placeholder
    }

    fn missing(path: &str) -> String {
        format!("attribute_not_exists({path})")
    }

    fn has_type(&mut self, path: &str, expected: AttributeType) -> String {
        format!("attribute_type({path}, {})", self.value(&AttributeValue::S(expected.to_string())))
    }

    fn list(members: &str) -> String {
        format!("({members})")
    }

    fn nested(&mut self, test: &Test) -> String {
        let text = self.test(test);
        match test {
            Test::And(_) | Test::Or(_) => format!("({text})"),
            _ => text,
        }
    }
}

/// A value for people: with a letter for its type where it isn't obvious, and long ones truncated.
pub fn show(value: &AttributeValue) -> String {
    let list = |elements: Vec<String>| elements.join(", ");
    let text = match value {
        AttributeValue::S(text) => format!("{:?}", cut(text)),
        AttributeValue::N(number) => number.to_string(),
        AttributeValue::B(bytes) => format!("0x{}", cut(&hex::encode(bytes))),
        AttributeValue::Bool(value) => value.to_string(),
        AttributeValue::Null => "null".to_owned(),
        AttributeValue::Ss(members) => format!("<<{members:?}>>"),
        AttributeValue::Ns(members) => {
            format!("<<{}>>", list(members.iter().map(ToString::to_string).collect()))
        }
        AttributeValue::Bs(members) => {
            format!("<<{}>>", list(members.iter().map(hex::encode).collect()))
        }
        AttributeValue::L(elements) => format!("[{}]", list(elements.iter().map(show).collect())),
        AttributeValue::M(members) => show_item(members),
    };
    cut(&text)
}

pub fn show_item(item: &zenobe_value::Attributes) -> String {
    let members: Vec<String> =
        item.iter().map(|(name, value)| format!("{name}: {}", show(value))).collect();
    format!("{{{}}}", members.join(", "))
}

fn cut(text: &str) -> String {
    const SHOWN_MAX: usize = 300;
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
