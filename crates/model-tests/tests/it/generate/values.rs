//! Values, keys and items.

use std::collections::BTreeSet;

use zenobe_engine::schema::{KeyAttribute, ScalarType};
use zenobe_value::limits::ITEM_SIZE_BYTES_MAX;
use zenobe_value::{AttributeValue, Attributes, Number};

use crate::run::START_MS;
use crate::twin::life::EXPIRY;
use crate::twin::value::item_size_bytes;

use super::Generator;
use super::dice::Dice;
use super::shape::{Shape, key_type};

/// Neighbours in key order, and bytes that could break an encoding.
const TEXTS: [&str; 8] = ["a", "ab", "b", "a\0", "a\0\u{1}", "a\u{1}", "é", "\u{10000}"];
const BINARIES: [&[u8]; 7] = [&[0], &[0, 0], &[0, 255], &[0, 1], &[1], &[255], &[255, 255]];
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "-1",
    "2",
    "10",
    "1.5",
    "-1.5",
    "100",
    "0.001",
    "-100",
    "123456789.25",
    "1e125",
    "-1e-130",
    "99999999999999999999999999999999999999",
];
/// Around the sizes at which one more unit is charged.
const TEXT_SIZES: [usize; 6] = [900, 1024, 1100, 3000, 4096, 9000];
const HUGE_TEXT_SIZES: [usize; 2] = [200_000, 300_000];

impl Generator {
    /// A key of the table, or something close to one.
    pub fn key(&mut self, shape: &Shape) -> Attributes {
        let mut key = self.valid_key(shape);
        if self.dice.one_in(60) {
            match self.dice.below(3) {
                0 => drop(key.pop_first()),
                1 => drop(key.insert("extra".to_owned(), AttributeValue::Bool(true))),
                _ => {
                    let value = self.any_value();
                    key.insert("pk".to_owned(), value);
                }
            }
        }
        key
    }

    pub fn valid_key(&mut self, shape: &Shape) -> Attributes {
        let attributes: Vec<&KeyAttribute> = shape.keys.attributes().collect();
        let key = |attribute: &&KeyAttribute| {
            (attribute.name.clone(), few_scalars(&mut self.dice, attribute.scalar_type))
        };
        attributes.iter().map(key).collect()
    }

    pub fn item(&mut self, shape: &Shape) -> Attributes {
        let mut item = self.key(shape);
        // Attributes other than the key are missing about half of the time, which keeps indexes
        // sparse.
        for name in ["a", "b", "c", "x", "y", "m", "l", "t", "n", "odd.name"] {
            if self.dice.chance(45) {
                let value = self.attribute(name);
                item.insert(name.to_owned(), value);
            }
        }
        if self.dice.chance(30) {
            let value = self.expiry();
            item.insert(EXPIRY.to_owned(), value);
        }
        item
    }

    /// Usually a second that passes while the history runs.
    fn expiry(&mut self) -> AttributeValue {
        match self.dice.below(10) {
            0 => self.any_value(),
            1 => AttributeValue::N(Number::from(START_MS / 1_000 + 1_000_000)),
            _ => {
                let second = START_MS / 1_000 + self.dice.below(3_000) as u64;
                AttributeValue::N(Number::from(second))
            }
        }
    }

    /// An item that is too large, or that almost no update can make larger.
    pub fn nearly_too_large(&mut self, shape: &Shape) -> Attributes {
        let mut item = self.valid_key(shape);
        let name = "odd.name";
        let space = ITEM_SIZE_BYTES_MAX - item_size_bytes(&item) as usize - name.len();
        let text = "x".repeat(space + 3 - self.dice.below(60));
        item.insert(name.to_owned(), AttributeValue::S(text));
        item
    }

    /// Lists in lists, this many levels deep.
    pub fn nested(&mut self, levels: usize) -> AttributeValue {
        (1..levels).fold(AttributeValue::Null, |value, _| AttributeValue::L(vec![value]))
    }

    /// A value that the attribute usually has.
    pub fn attribute(&mut self, name: &str) -> AttributeValue {
        if let Some(scalar_type) = key_type(name) {
            return match self.dice.below(100) {
                0..2 => self.any_value(),
                2 => empty(scalar_type),
                3 => long(scalar_type),
                _ => scalar(&mut self.dice, scalar_type),
            };
        }
        match name {
            "m" => AttributeValue::M(self.members(2)),
            "l" => AttributeValue::L(self.elements(2)),
            "n" => number(&mut self.dice),
            "t" => self.set(),
            "x" if self.dice.chance(60) => scalar(&mut self.dice, ScalarType::S),
            "y" if self.dice.chance(30) => scalar(&mut self.dice, ScalarType::B),
            _ => self.any_value(),
        }
    }

    pub fn any_value(&mut self) -> AttributeValue {
        self.value_of_depth(2)
    }

    fn value_of_depth(&mut self, depth: usize) -> AttributeValue {
        match self.dice.below(if depth == 0 { 70 } else { 100 }) {
            0..15 => self.text(),
            15..30 => number(&mut self.dice),
            30..40 => scalar(&mut self.dice, ScalarType::B),
            40..45 => AttributeValue::Bool(self.dice.chance(50)),
            45..50 => AttributeValue::Null,
            50..70 => self.set(),
            70..85 => AttributeValue::L(self.elements(depth)),
            _ => AttributeValue::M(self.members(depth)),
        }
    }

    fn text(&mut self) -> AttributeValue {
        let size = match self.dice.below(300) {
            0 => *self.dice.pick(&HUGE_TEXT_SIZES),
            1..40 => *self.dice.pick(&TEXT_SIZES),
            40..60 => 0,
            _ => return scalar(&mut self.dice, ScalarType::S),
        };
        AttributeValue::S("x".repeat(size))
    }

    pub fn set(&mut self) -> AttributeValue {
        let count = self.dice.between(1, 3);
        match self.dice.below(3) {
            0 => AttributeValue::Ss(
                (0..count).map(|_| (*self.dice.pick(&TEXTS)).to_owned()).collect(),
            ),
            1 => AttributeValue::Ns((0..count).map(|_| some_number(&mut self.dice)).collect()),
            _ => AttributeValue::Bs(
                (0..count).map(|_| self.dice.pick(&BINARIES).to_vec()).collect::<BTreeSet<_>>(),
            ),
        }
    }

    fn elements(&mut self, depth: usize) -> Vec<AttributeValue> {
        (0..self.dice.below(4)).map(|_| self.value_of_depth(depth - 1)).collect()
    }

    fn members(&mut self, depth: usize) -> Attributes {
        let mut members = Attributes::new();
        for name in ["k", "l", "n", "z"] {
            if self.dice.chance(50) {
                members.insert(name.to_owned(), self.value_of_depth(depth - 1));
            }
        }
        members
    }
}

/// So few that two draws are often equal.
pub fn few_scalars(dice: &mut Dice, scalar_type: ScalarType) -> AttributeValue {
    match scalar_type {
        ScalarType::S => AttributeValue::S((*dice.pick(&TEXTS[..4])).to_owned()),
        ScalarType::N => AttributeValue::N(parse(dice.pick::<&str>(&NUMBERS[..6]))),
        ScalarType::B => AttributeValue::B(dice.pick(&BINARIES[..4]).to_vec()),
    }
}

pub fn scalar(dice: &mut Dice, scalar_type: ScalarType) -> AttributeValue {
    match scalar_type {
        ScalarType::S => AttributeValue::S((*dice.pick(&TEXTS)).to_owned()),
        ScalarType::N => number(dice),
        ScalarType::B => AttributeValue::B(dice.pick(&BINARIES).to_vec()),
    }
}

pub fn number(dice: &mut Dice) -> AttributeValue {
    AttributeValue::N(some_number(dice))
}

fn some_number(dice: &mut Dice) -> Number {
    // Usually small ones, for which arithmetic succeeds.
    let choices = if dice.one_in(20) { &NUMBERS[..] } else { &NUMBERS[..11] };
    parse(dice.pick::<&str>(choices))
}

fn parse(text: &str) -> Number {
    Number::parse(text).expect("a valid number")
}

fn empty(scalar_type: ScalarType) -> AttributeValue {
    match scalar_type {
        ScalarType::S => AttributeValue::S(String::new()),
        ScalarType::B | ScalarType::N => AttributeValue::B(Vec::new()),
    }
}

/// Longer than any key may be.
fn long(scalar_type: ScalarType) -> AttributeValue {
    match scalar_type {
        ScalarType::S | ScalarType::N => AttributeValue::S("long".repeat(520)),
        ScalarType::B => AttributeValue::B(vec![7; 1025]),
    }
}
