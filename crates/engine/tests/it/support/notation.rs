//! Values in scripts: JSON with a few more brackets.
//!
//! `"text"`, `"x"*100` (repeated), `12.5`, `b"00ff"`, `true`, `null`, `[1, 2]`, `{"a": 1}`, and sets in angle brackets:
//! `<"a", "b">`, `<1, 2>`, `<b"00">`.

use std::fmt::Write;

use zenobe_value::{AttributeValue, Attributes, Number};

pub fn parse_item(text: &str) -> Attributes {
    match parse_value(text) {
        AttributeValue::M(attributes) => attributes,
        other => panic!("expected an item, found {other:?}"),
    }
}

pub fn parse_value(text: &str) -> AttributeValue {
    let mut parser = Parser { text, position: 0 };
    let value = parser.value();
    parser.skip_blanks();
    assert!(parser.rest().is_empty(), "unexpected {:?} in {text:?}", parser.rest());
    value
}

/// Splits a text that starts with an item after that item.
pub fn split_item(text: &str) -> (Attributes, &str) {
    let mut parser = Parser { text, position: 0 };
    let AttributeValue::M(item) = parser.value() else { panic!("expected an item: {text:?}") };
    (item, parser.rest().trim())
}

pub fn print_item(item: &Attributes) -> String {
    print_value(&AttributeValue::M(item.clone()))
}

pub fn print_value(value: &AttributeValue) -> String {
    match value {
        AttributeValue::S(text) => print_text(text),
        AttributeValue::N(number) => number.to_string(),
        AttributeValue::B(bytes) => print_bytes(bytes),
        AttributeValue::Bool(flag) => flag.to_string(),
        AttributeValue::Null => "null".into(),
        AttributeValue::Ss(set) => format!("<{}>", join(set.iter().map(|text| print_text(text)))),
        AttributeValue::Ns(set) => format!("<{}>", join(set.iter().map(Number::to_string))),
        AttributeValue::Bs(set) => {
            format!("<{}>", join(set.iter().map(|bytes| print_bytes(bytes))))
        }
        AttributeValue::L(list) => format!("[{}]", join(list.iter().map(print_value))),
        AttributeValue::M(map) => {
            let member = |(name, value): (&String, &_)| format!("{name:?}: {}", print_value(value));
            format!("{{{}}}", join(map.iter().map(member)))
        }
    }
}

fn print_text(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) if text.len() > 20 && characters.all(|other| other == first) => {
            format!("{:?}*{}", first.to_string(), text.chars().count())
        }
        _ => format!("{text:?}"),
    }
}

pub fn print_bytes(bytes: &[u8]) -> String {
    let mut text = String::from("b\"");
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all text");
    }
    text + "\""
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.position += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        let found = self.rest().starts_with(token);
        if found {
            self.position += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) {
        assert!(self.take(token), "expected {token:?} before {:?}", self.rest());
    }

    fn value(&mut self) -> AttributeValue {
        self.skip_blanks();
        if self.take("b\"") {
            AttributeValue::B(self.hexadecimal())
        } else if self.rest().starts_with('"') {
            AttributeValue::S(self.string())
        } else if self.take("true") {
            AttributeValue::Bool(true)
        } else if self.take("false") {
            AttributeValue::Bool(false)
        } else if self.take("null") {
            AttributeValue::Null
        } else if self.take("[") {
            AttributeValue::L(self.members("]"))
        } else if self.take("<") {
            set(self.members(">"))
        } else if self.take("{") {
            AttributeValue::M(self.map())
        } else {
            AttributeValue::N(self.number())
        }
    }

    fn members(&mut self, end: &str) -> Vec<AttributeValue> {
        let mut members = Vec::new();
        while !self.take(end) {
            members.push(self.value());
            self.take(",");
        }
        members
    }

    fn map(&mut self) -> Attributes {
        let mut map = Attributes::new();
        while !self.take("}") {
            self.skip_blanks();
            let name = self.string();
            self.expect(":");
            map.insert(name, self.value());
            self.take(",");
        }
        map
    }

    fn string(&mut self) -> String {
        self.expect("\"");
        let end = self.rest().find('"').expect("a closing quote");
        let text = &self.rest()[..end];
        self.position += end + 1;
        if self.rest().starts_with('*') {
            self.position += 1;
            let count = self.digits().parse().expect("a repetition count");
            return text.repeat(count);
        }
        text.replace("\\0", "\0")
    }

    fn hexadecimal(&mut self) -> Vec<u8> {
        let end = self.rest().find('"').expect("a closing quote");
        let digits = &self.rest()[..end];
        self.position += end + 1;
        (0..digits.len() / 2)
            .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("two digits"))
            .collect()
    }

    fn number(&mut self) -> Number {
        let text = self.digits();
        Number::parse(text).unwrap_or_else(|error| panic!("{text:?}: {error:?}"))
    }

    fn digits(&mut self) -> &'a str {
        let rest = self.rest();
        let is_part =
            |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }
}

fn set(members: Vec<AttributeValue>) -> AttributeValue {
    let wrong = || -> ! { panic!("a set has members of one scalar type") };
    match members.first() {
        Some(AttributeValue::S(_)) => AttributeValue::Ss(
            members
                .into_iter()
                .map(|member| if let AttributeValue::S(text) = member { text } else { wrong() })
                .collect(),
        ),
        Some(AttributeValue::N(_)) => AttributeValue::Ns(
            members
                .into_iter()
                .map(|member| if let AttributeValue::N(number) = member { number } else { wrong() })
                .collect(),
        ),
        Some(AttributeValue::B(_)) => AttributeValue::Bs(
            members
                .into_iter()
                .map(|member| if let AttributeValue::B(bytes) = member { bytes } else { wrong() })
                .collect(),
        ),
        _ => wrong(),
    }
}
