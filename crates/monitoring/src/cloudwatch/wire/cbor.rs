//! CBOR (RFC 8949), as far as Smithy's RPC protocol uses it.
//!
//! It is hand-written: the part that we need is a page of code, decodes into our own tree, and bounds
//! depth and number of values while it reads. CBOR crates bring derive macros or serde, and bound
//! neither.

use super::{DecodeBudget, Malformed, Value};

const TAG_EPOCH: u64 = 1;
const BREAK: u8 = 0xff;
const INDEFINITE: u8 = 31;

/// Decodes one value. Nothing may follow it.
pub fn decode(bytes: &[u8]) -> Result<Value, Malformed> {
    let mut decoder = Decoder { rest: bytes, budget: DecodeBudget::new() };
    let value = decoder.value(0)?;
    match decoder.rest.is_empty() {
        true => Ok(value),
        false => Err(Malformed("something follows the CBOR value")),
    }
}

pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, value);
    out
}

struct Decoder<'a> {
    rest: &'a [u8],
    budget: DecodeBudget,
}

impl<'a> Decoder<'a> {
    fn value(&mut self, depth: usize) -> Result<Value, Malformed> {
        self.budget.take(depth)?;
        let (major, information) = self.initial()?;
        match major {
            0 => Ok(integer(self.argument(information)?)),
            1 => self.argument(information).map(negative),
            3 => self.text(information).map(Value::Text),
            4 => self.list(information, depth),
            5 => self.map(information, depth),
            6 => self.tagged(information, depth),
            7 => self.simple(information),
            _ => Err(Malformed("no member of a request is a byte string")),
        }
    }

    fn initial(&mut self) -> Result<(u8, u8), Malformed> {
        let [byte] = self.take::<1>()?;
        Ok((byte >> 5, byte & 0x1f))
    }

    fn take<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn argument(&mut self, information: u8) -> Result<u64, Malformed> {
        match information {
            0..24 => Ok(u64::from(information)),
            24 => self.take::<1>().map(|[byte]| u64::from(byte)),
            25 => self.take().map(|bytes| u64::from(u16::from_be_bytes(bytes))),
            26 => self.take().map(|bytes| u64::from(u32::from_be_bytes(bytes))),
            27 => self.take().map(u64::from_be_bytes),
            _ => Err(Malformed("a CBOR length that does not exist")),
        }
    }

    fn text(&mut self, information: u8) -> Result<String, Malformed> {
        if information != INDEFINITE {
            return self.chunk(information).map(str::to_owned);
        }
        let mut text = String::new();
        while !self.ends_here()? {
            match self.initial()? {
                (3, information) if information != INDEFINITE => {
                    text.push_str(self.chunk(information)?);
                }
                _ => return Err(Malformed("a CBOR text of other things than texts")),
            }
        }
        Ok(text)
    }

    fn chunk(&mut self, information: u8) -> Result<&'a str, Malformed> {
        let length = usize::try_from(self.argument(information)?).map_err(|_| CUT)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        str::from_utf8(bytes).map_err(|_| Malformed("a CBOR text that is not UTF-8"))
    }

    fn list(&mut self, information: u8, depth: usize) -> Result<Value, Malformed> {
        let mut left = self.length(information)?;
        let mut list = Vec::new();
        while self.has_more(&mut left)? {
            list.push(self.value(depth + 1)?);
        }
        Ok(Value::List(list))
    }

    fn map(&mut self, information: u8, depth: usize) -> Result<Value, Malformed> {
        let mut left = self.length(information)?;
        let mut members = Vec::new();
        while self.has_more(&mut left)? {
            let (3, information) = self.initial()? else {
                return Err(Malformed("a CBOR map with a key that is not a text"));
            };
            let name = self.text(information)?;
            members.push((name.into(), self.value(depth + 1)?));
        }
        Ok(Value::Structure(members))
    }

    /// How many elements follow, unless a break ends them. An announced length allocates nothing.
    fn length(&mut self, information: u8) -> Result<Option<u64>, Malformed> {
        match information {
            INDEFINITE => Ok(None),
            _ => self.argument(information).map(Some),
        }
    }

    fn has_more(&mut self, left: &mut Option<u64>) -> Result<bool, Malformed> {
        match left {
            None => self.ends_here().map(|ends| !ends),
            Some(0) => Ok(false),
            Some(left) => {
                *left -= 1;
                Ok(true)
            }
        }
    }

    fn ends_here(&mut self) -> Result<bool, Malformed> {
        let is_break = *self.rest.first().ok_or(CUT)? == BREAK;
        if is_break {
            self.rest = &self.rest[1..];
        }
        Ok(is_break)
    }

    fn tagged(&mut self, information: u8, depth: usize) -> Result<Value, Malformed> {
        let tag = self.argument(information)?;
        let value = self.value(depth + 1)?;
        if tag != TAG_EPOCH {
            return Err(Malformed("a CBOR tag other than that of times"));
        }
        let seconds = match value {
            Value::Integer(seconds) => seconds as f64,
            Value::Float(seconds) if seconds.is_finite() => seconds,
            _ => return Err(Malformed("a CBOR time that is not a number")),
        };
        // `as` saturates.
        Ok(Value::Timestamp((seconds * 1_000.0).round() as i64))
    }

    fn simple(&mut self, information: u8) -> Result<Value, Malformed> {
        match information {
            20 => Ok(Value::Bool(false)),
            21 => Ok(Value::Bool(true)),
            22 | 23 => Ok(Value::Null),
            25 => self.take().map(|bytes| Value::Float(half(u16::from_be_bytes(bytes)))),
            26 => self.take().map(|bytes| Value::Float(f64::from(f32::from_be_bytes(bytes)))),
            27 => self.take().map(|bytes| Value::Float(f64::from_be_bytes(bytes))),
            _ => Err(Malformed("a simple CBOR value that does not exist")),
        }
    }
}

const CUT: Malformed = Malformed("the CBOR value is cut off");

fn integer(number: u64) -> Value {
    i64::try_from(number).map_or(Value::Float(number as f64), Value::Integer)
}

fn negative(number: u64) -> Value {
    i64::try_from(number).map_or(Value::Float(-1.0 - number as f64), |it| Value::Integer(-1 - it))
}

/// A number of half precision, in which SDKs send infinities and NaN.
fn half(bits: u16) -> f64 {
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1_024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.push(0xf6),
        Value::Bool(flag) => out.push(if *flag { 0xf5 } else { 0xf4 }),
        Value::Integer(number) => write_integer(out, *number),
        Value::Float(number) => write_float(out, *number),
        Value::Text(text) | Value::Form(text) => write_text(out, text),
        Value::Timestamp(at_ms) => {
            out.push(0xc0 | TAG_EPOCH as u8);
            match at_ms % 1_000 {
                0 => write_integer(out, at_ms / 1_000),
                _ => write_float(out, *at_ms as f64 / 1_000.0),
            }
        }
        Value::List(list) => {
            write_head(out, 4, list.len() as u64);
            list.iter().for_each(|value| write(out, value));
        }
        Value::Structure(members) => {
            write_head(out, 5, members.len() as u64);
            members.iter().for_each(|(name, value)| write_member(out, name, value));
        }
        Value::Dictionary(entries) => {
            write_head(out, 5, entries.len() as u64);
            entries.iter().for_each(|(name, value)| write_member(out, name, value));
        }
    }
}

fn write_member(out: &mut Vec<u8>, name: &str, value: &Value) {
    write_text(out, name);
    write(out, value);
}

fn write_integer(out: &mut Vec<u8>, number: i64) {
    match u64::try_from(number) {
        Ok(number) => write_head(out, 0, number),
        Err(_) => write_head(out, 1, number.unsigned_abs() - 1),
    }
}

fn write_float(out: &mut Vec<u8>, number: f64) {
    out.push(0xfb);
    out.extend(number.to_be_bytes());
}

fn write_text(out: &mut Vec<u8>, text: &str) {
    write_head(out, 3, text.len() as u64);
    out.extend(text.as_bytes());
}

fn write_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let major = major << 5;
    match argument {
        0..24 => out.push(major | argument as u8),
        24..=0xff => out.extend([major | 24, argument as u8]),
        0x100..=0xffff => {
            out.push(major | 25);
            out.extend((argument as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(major | 26);
            out.extend((argument as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend(argument.to_be_bytes());
        }
    }
}
