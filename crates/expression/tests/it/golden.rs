//! Runs the scripts of `tests/cases/expression`. A line that starts with `>` is a command, the lines below it are
//! its output. `ZENOBE_BLESS=1` rewrites the outputs.
//!
//! | command | |
//! |---|---|
//! | `names #a='x'…`, `values :v=1…` | the placeholders of the commands that follow |
//! | `item {…}`, `item none` | the item of the commands that follow; its key is the attribute `pk` |
//! | `condition …` | the result on the item, or the fault |
//! | `key …`, `projection …`, `update …` | the result or the fault |
//! | `unused …` | what a condition leaves unused |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use zenobe_expression::{
    Binder, ExpressionError, ExpressionKind, KeyCondition, KeyOperator, Update,
};
use zenobe_value::{AttributeValue, Attributes, EncodedItem};

use crate::notation::{parse_bindings, parse_item, print_item, print_value};

#[test]
fn condition_faults() {
    check("condition-faults");
}

#[test]
fn conditions() {
    check("conditions");
}

#[test]
fn key_conditions() {
    check("key-conditions");
}

#[test]
fn projections() {
    check("projections");
}

#[test]
fn syntax() {
    check("syntax");
}

#[test]
fn update_faults() {
    check("update-faults");
}

#[test]
fn updates() {
    check("updates");
}

#[test]
fn unused_placeholders() {
    check("unused-placeholders");
}

fn check(name: &str) {
    let path = cases().join(name).with_extension("txt");
    let script = std::fs::read_to_string(&path).expect("the script can be read");
    let rerun = run(&script);
    if std::env::var_os("ZENOBE_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, rerun).expect("the script can be written");
        return;
    }
    for (line, (expected, actual)) in script.lines().zip(rerun.lines()).enumerate() {
        assert_eq!(expected, actual, "{}:{}", path.display(), line + 1);
    }
    assert_eq!(script.lines().count(), rerun.lines().count(), "{}", path.display());
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/expression")
}

/// Keeps comments, blank lines and commands, and recomputes every output.
fn run(script: &str) -> String {
    let mut context = Context::default();
    let mut result = String::new();
    for line in script.lines() {
        if line.is_empty() || line.starts_with('#') {
            result.push_str(&format!("{line}\n"));
        } else if let Some(command) = line.strip_prefix("> ") {
            result.push_str(&format!("{line}\n"));
            for output in context.run(command) {
                result.push_str(&format!("{output}\n"));
            }
        }
    }
    result
}

#[derive(Default)]
struct Context {
    names: Option<BTreeMap<String, String>>,
    values: Option<BTreeMap<String, AttributeValue>>,
    item: Option<Attributes>,
}

impl Context {
    fn run(&mut self, command: &str) -> Vec<String> {
        let (verb, text) = command.split_once(' ').unwrap_or((command, ""));
        let outcome = match verb {
            "names" => {
                let name = |value| match value {
                    AttributeValue::S(name) => name,
                    other => panic!("{other:?} is no name"),
                };
                let bindings = parse_bindings(text).into_iter();
                self.names = Some(bindings.map(|(key, value)| (key, name(value))).collect());
                Ok(Vec::new())
            }
            "values" => {
                self.values = Some(parse_bindings(text).into_iter().collect());
                Ok(Vec::new())
            }
            "item" => {
                self.item = (text != "none").then(|| parse_item(text));
                Ok(Vec::new())
            }
            "condition" => self.condition(text),
            "key" => self.binder().key_condition(text).map(|conditions| print_keys(&conditions)),
            "projection" => self.projection(text),
            "update" => self.binder().update(text).map(|update| self.update(&update)),
            "unused" => self.unused(text),
            other => panic!("{other} is no command"),
        };
        outcome.unwrap_or_else(|error| vec![format!("{:?}", error.fault)])
    }

    fn binder(&self) -> Binder<'_> {
        Binder::new(self.names.as_ref(), self.values.as_ref())
    }

    fn condition(&self, text: &str) -> Result<Vec<String>, ExpressionError> {
        let condition = self.binder().condition(ExpressionKind::Condition, text)?;
        let item = self.item.as_ref().map(EncodedItem::encode);
        Ok(vec![condition.evaluate(item.as_ref().map(EncodedItem::as_item)).to_string()])
    }

    fn projection(&self, text: &str) -> Result<Vec<String>, ExpressionError> {
        let projection = self.binder().projection(text)?;
        let item = EncodedItem::encode(&self.item.clone().unwrap_or_default());
        Ok(vec![print_item(&projection.apply(item.as_item()).as_item().decode())])
    }

    fn update(&self, update: &Update) -> Vec<String> {
        let key = [("pk".to_owned(), AttributeValue::S("k".to_owned()))].into();
        let new = match update.apply(self.item.as_ref(), &key) {
            Ok(Some(new)) => new,
            Ok(None) => return vec!["nothing".to_owned()],
            Err(error) => return vec![format!("error {error:?}")],
        };
        let old = self.item.clone().unwrap_or_default();
        vec![
            format!("new {}", print_item(&new)),
            format!("updated old {}", print_item(&update.fragments(&old))),
            format!("updated new {}", print_item(&update.fragments(&new))),
            format!("size allowance {}", update.size_allowance_bytes()),
        ]
    }

    fn unused(&self, text: &str) -> Result<Vec<String>, ExpressionError> {
        let mut binder = self.binder();
        binder.condition(ExpressionKind::Filter, text)?;
        Ok(vec![format!("{:?}", binder.finish())])
    }
}

fn print_keys(conditions: &[KeyCondition]) -> Vec<String> {
    let print = |condition: &KeyCondition| {
        let operator = match condition.operator {
            KeyOperator::Equal(_) => "=",
            KeyOperator::Less(_) => "<",
            KeyOperator::LessOrEqual(_) => "<=",
            KeyOperator::Greater(_) => ">",
            KeyOperator::GreaterOrEqual(_) => ">=",
            KeyOperator::Between(..) => "between",
            KeyOperator::Within { .. } => "within",
            KeyOperator::BeginsWith(_) => "begins with",
            KeyOperator::NotIndexable => "not indexable",
        };
        let values: Vec<String> = condition.operator.values().map(print_value).collect();
        format!("{} {operator} {}", condition.attribute, values.join(" "))
    };
    conditions.iter().map(print).collect()
}
