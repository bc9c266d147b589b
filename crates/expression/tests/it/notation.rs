//! A short notation for values in golden scripts: `'text'`, `1.5`, `x'00ff'`, `true`, `null`, `<1, 2>` for sets,
//! `[1, 'a']`, `{name: 'a', 'other name': 1}`.

use std::iter::Peekable;
use std::str::Chars;

use zenobe_value::{AttributeValue, Attributes, Number};

pub fn parse_value(text: &str) -> AttributeValue {
    let mut reader = Reader::new(text);
    let value = reader.value();
    reader.finish();
    value
}

pub fn parse_item(text: &str) -> Attributes {
    match parse_value(text) {
        AttributeValue::M(attributes) => attributes,
        other => panic!("{text} is not an item but {other:?}"),
    }
}

/// `:a=1 :b='x'`
pub fn parse_bindings(text: &str) -> Vec<(String, AttributeValue)> {
    let mut reader = Reader::new(text);
    let mut bindings = Vec::new();
    while reader.skip_blanks().is_some() {
        let name = reader.take_while(|character| character != '=');
        reader.expect('=');
        bindings.push((name, reader.value()));
    }
    bindings
}

pub fn print_item(item: &Attributes) -> String {
    let members = item.iter().map(|(name, value)| format!("{name}: {}", print_value(value)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

pub fn print_value(value: &AttributeValue) -> String {
    fn list<T>(members: impl IntoIterator<Item = T>, print: impl Fn(T) -> String) -> String {
        members.into_iter().map(print).collect::<Vec<_>>().join(", ")
    }
    let hex = |bytes: &Vec<u8>| format!("x'{}'", list(bytes, |byte| format!("{byte:02x}")));
    let hex = |bytes: &Vec<u8>| hex(bytes).replace(", ", "");
    match value {
        AttributeValue::S(text) => format!("'{text}'"),
        AttributeValue::N(number) => number.to_string(),
        AttributeValue::B(bytes) => hex(bytes),
        AttributeValue::Bool(flag) => flag.to_string(),
        AttributeValue::Null => "null".to_owned(),
        AttributeValue::Ss(members) => format!("<{}>", list(members, |text| format!("'{text}'"))),
        AttributeValue::Ns(members) => format!("<{}>", list(members, Number::to_string)),
        AttributeValue::Bs(members) => format!("<{}>", list(members, hex)),
        AttributeValue::L(elements) => format!("[{}]", list(elements, print_value)),
        AttributeValue::M(members) => print_item(members),
    }
}

struct Reader<'t> {
    text: &'t str,
    characters: Peekable<Chars<'t>>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Reader<'t> {
        Reader { text, characters: text.chars().peekable() }
    }

    fn value(&mut self) -> AttributeValue {
        match self.skip_blanks() {
            Some('\'') => AttributeValue::S(self.quoted()),
            Some('[') => AttributeValue::L(self.members('[', ']', Reader::value)),
            Some('<') => self.set(),
            Some('{') => {
                let members = self.members('{', '}', |reader| {
                    let name = reader.name();
                    reader.expect(':');
                    (name, reader.value())
                });
                AttributeValue::M(members.into_iter().collect())
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) -> AttributeValue {
        let word = self.take_while(|character| {
            character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '+')
        });
        match word.as_str() {
            "true" => AttributeValue::Bool(true),
            "false" => AttributeValue::Bool(false),
            "null" => AttributeValue::Null,
            "x" => AttributeValue::B(unhex(&self.quoted())),
            number => match Number::parse(number) {
                Ok(number) => AttributeValue::N(number),
                Err(error) => panic!("{number:?} in {}: {error:?}", self.text),
            },
        }
    }

    fn set(&mut self) -> AttributeValue {
        let members = self.members('<', '>', Reader::value);
        match &members[0] {
            AttributeValue::S(_) => AttributeValue::Ss(
                members
                    .into_iter()
                    .map(|member| match member {
                        AttributeValue::S(text) => text,
                        other => panic!("{other:?} in a string set"),
                    })
                    .collect(),
            ),
            AttributeValue::N(_) => AttributeValue::Ns(
                members
                    .into_iter()
                    .map(|member| match member {
                        AttributeValue::N(number) => number,
                        other => panic!("{other:?} in a number set"),
                    })
                    .collect(),
            ),
            _ => AttributeValue::Bs(
                members
                    .into_iter()
                    .map(|member| match member {
                        AttributeValue::B(bytes) => bytes,
                        other => panic!("{other:?} in a binary set"),
                    })
                    .collect(),
            ),
        }
    }

    fn members<T>(
        &mut self,
        open: char,
        close: char,
        member: impl Fn(&mut Reader<'t>) -> T,
    ) -> Vec<T> {
        self.expect(open);
        let mut members = Vec::new();
        while self.skip_blanks() != Some(close) {
            members.push(member(self));
            if self.skip_blanks() == Some(',') {
                self.characters.next();
            }
        }
        self.expect(close);
        members
    }

    fn name(&mut self) -> String {
        match self.skip_blanks() {
            Some('\'') => self.quoted(),
            _ => self.take_while(|character| character.is_alphanumeric() || character == '_'),
        }
    }

    fn quoted(&mut self) -> String {
        self.expect('\'');
        let text = self.take_while(|character| character != '\'');
        self.expect('\'');
        text
    }

    fn take_while(&mut self, matches: impl Fn(char) -> bool) -> String {
        std::iter::from_fn(|| self.characters.next_if(|character| matches(*character))).collect()
    }

    fn skip_blanks(&mut self) -> Option<char> {
        while self.characters.next_if_eq(&' ').is_some() {}
        self.characters.peek().copied()
    }

    fn expect(&mut self, expected: char) {
        let found = self.skip_blanks();
        assert_eq!(found, Some(expected), "in {}", self.text);
        self.characters.next();
    }

    fn finish(&mut self) {
        assert_eq!(self.skip_blanks(), None, "after the value in {}", self.text);
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("hexadecimal digits")).collect()
}
