//! JSON, as awsJson1.0 uses it: times are seconds since the epoch.

use serde_json::{Map, Number, Value as Json};

use super::{DecodeBudget, Malformed, Value};

/// The parser itself bounds the depth, at 128 levels.
pub fn decode(bytes: &[u8]) -> Result<Value, Malformed> {
    let json =
        serde_json::from_slice(bytes).map_err(|_| Malformed("the body is not valid JSON"))?;
    convert(json, 0, &mut DecodeBudget::new())
}

fn convert(json: Json, depth: usize, budget: &mut DecodeBudget) -> Result<Value, Malformed> {
    budget.take(depth)?;
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(flag),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Integer(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(elements) => {
            let elements = elements.into_iter().map(|element| convert(element, depth + 1, budget));
            Value::List(elements.collect::<Result<_, _>>()?)
        }
        Json::Object(members) => {
            let member = |(name, value): (String, Json)| {
                Ok((name.into(), convert(value, depth + 1, budget)?))
            };
            Value::Structure(members.into_iter().map(member).collect::<Result<_, Malformed>>()?)
        }
    })
}

pub fn encode(value: &Value) -> Vec<u8> {
    render(value).to_string().into_bytes()
}

fn render(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Integer(number) => Json::from(*number),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Text(text) | Value::Form(text) => Json::from(text.as_str()),
        Value::Timestamp(at_ms) => match at_ms % 1_000 {
            0 => Json::from(at_ms / 1_000),
            _ => Json::from(*at_ms as f64 / 1_000.0),
        },
        Value::List(list) => Json::Array(list.iter().map(render).collect()),
        Value::Structure(members) => {
            let members = members.iter().map(|(name, value)| (name.to_string(), render(value)));
            Json::Object(members.collect::<Map<_, _>>())
        }
        Value::Dictionary(entries) => {
            let entries = entries.iter().map(|(name, value)| (name.clone(), render(value)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
    }
}
