//! Rules that replace values, so that production data can be used in tests.
//!
//! A replacement depends on the value and on a key, and on nothing else: the same customer has the
//! same replacement in every table and every run with the same key, so joins still work. Nobody
//! without the key can find out whose it is by trying.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zenobe_value::{AttributeValue, Attributes, EncodedValue, Number};

/// What to replace, and how.
#[derive(Debug, Clone, Default)]
pub struct AnonymiseRules {
    rules: Vec<AnonymiseRule>,
    key: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AnonymiseRule {
    /// The names on the way to the value. Lists on the way are entered.
    path: Vec<String>,
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// A digest of the value, of the same type.
    Hash,
    /// Asterisks, except for the last characters of a value that has more than these.
    Mask { kept: usize },
    /// Something that looks real.
    Fake(Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Email,
    Phone,
    City,
    Street,
    Company,
    Uuid,
    Word,
}

const KINDS: [(&str, Kind); 8] = [
    ("name", Kind::Name),
    ("email", Kind::Email),
    ("phone", Kind::Phone),
    ("city", Kind::City),
    ("street", Kind::Street),
    ("company", Kind::Company),
    ("uuid", Kind::Uuid),
    ("word", Kind::Word),
];

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a rule; write ATTRIBUTE=hash, ATTRIBUTE=mask, ATTRIBUTE=mask:4 or ATTRIBUTE=fake:KIND with one of \
     name, email, phone, city, street, company, uuid, word"
)]
pub struct AnonymiseRuleError(String);

impl AnonymiseRules {
    /// Reads rules such as `email=fake:email` or `address.street=mask`.
    ///
    /// # Errors
    /// If a text is not a rule.
    pub fn parse(texts: &[String], key: &[u8]) -> Result<AnonymiseRules, AnonymiseRuleError> {
        let rules =
            texts.iter().map(|text| parse(text).ok_or_else(|| AnonymiseRuleError(text.clone())));
        Ok(AnonymiseRules { rules: rules.collect::<Result<_, _>>()?, key: key.to_vec() })
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// A fingerprint of the rules and the key that reveals neither; empty if there are no rules.
    pub fn fingerprint(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        hex::encode(&self.digest(&AttributeValue::S(format!("{:?}", self.rules)))[..16])
    }

    pub fn apply(&self, item: &mut Attributes) {
        for rule in &self.rules {
            self.apply_in(item, &rule.path, rule.action);
        }
    }

    fn apply_in(&self, members: &mut Attributes, path: &[String], action: Action) {
        let [name, rest @ ..] = path else { return };
        if let Some(value) = members.get_mut(name) {
            self.apply_to(value, rest, action);
        }
    }

    fn apply_to(&self, value: &mut AttributeValue, path: &[String], action: Action) {
        match value {
            AttributeValue::L(members) => {
                members.iter_mut().for_each(|member| self.apply_to(member, path, action));
            }
            AttributeValue::M(members) if !path.is_empty() => self.apply_in(members, path, action),
            AttributeValue::M(members) => {
                members.values_mut().for_each(|member| self.apply_to(member, path, action));
            }
            _ if !path.is_empty() => {}
            AttributeValue::Ss(set) => *set = set.iter().map(|it| self.text(it, action)).collect(),
            AttributeValue::Ns(set) => {
                *set = set.iter().map(|it| self.number(it, action)).collect();
            }
            AttributeValue::Bs(set) => *set = set.iter().map(|it| self.bytes(it, action)).collect(),
            AttributeValue::S(text) => *text = self.text(text, action),
            AttributeValue::N(number) => *number = self.number(number, action),
            AttributeValue::B(bytes) => *bytes = self.bytes(bytes, action),
            // They reveal too little to need hiding.
            AttributeValue::Bool(_) | AttributeValue::Null => {}
        }
    }

    fn digest(&self, value: &AttributeValue) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key may have any length");
        mac.update(EncodedValue::encode(value).as_value().encoded());
        mac.finalize().into_bytes().into()
    }

    fn text(&self, text: &str, action: Action) -> String {
        if text.is_empty() {
            return String::new();
        }
        let digest = self.digest(&AttributeValue::S(text.to_owned()));
        match action {
            Action::Hash => hex::encode(&digest[..16]),
            Action::Mask { kept } => {
                let hidden = hidden(text.chars().count(), kept);
                let character = |(at, shown)| if at < hidden { '*' } else { shown };
                text.chars().enumerate().map(character).collect()
            }
            Action::Fake(kind) => fake(kind, &digest),
        }
    }

    /// A masked number is zero: it has no characters to hide one by one.
    fn number(&self, number: &Number, action: Action) -> Number {
        match action {
            Action::Mask { .. } => Number::ZERO,
            Action::Hash | Action::Fake(_) => {
                let digest = self.digest(&AttributeValue::N(*number));
                Number::from(pick(&digest, 0) % 1_000_000_000_000_000)
            }
        }
    }

    fn bytes(&self, bytes: &[u8], action: Action) -> Vec<u8> {
        match action {
            Action::Mask { kept } => {
                let hidden = hidden(bytes.len(), kept);
                let byte = |(at, byte): (usize, &u8)| if at < hidden { b'*' } else { *byte };
                bytes.iter().enumerate().map(byte).collect()
            }
            Action::Hash | Action::Fake(_) => {
                self.digest(&AttributeValue::B(bytes.to_vec()))[..16].to_vec()
            }
        }
    }
}

/// How much of a value a mask hides. One that it would show whole is hidden whole.
fn hidden(length: usize, kept: usize) -> usize {
    if length > kept { length - kept } else { length }
}

fn parse(text: &str) -> Option<AnonymiseRule> {
    let (path, action) = text.split_once('=')?;
    let path: Vec<String> = path.split('.').map(|name| name.trim().to_owned()).collect();
    let action = match action.trim().split_once(':').unwrap_or((action.trim(), "")) {
        ("hash", "") => Action::Hash,
        ("mask", "") => Action::Mask { kept: 0 },
        ("mask", kept) => Action::Mask { kept: kept.parse().ok()? },
        ("fake", kind) => {
            Action::Fake(KINDS.iter().find(|(name, _)| *name == kind).map(|(_, kind)| *kind)?)
        }
        _ => return None,
    };
    path.iter().all(|name| !name.is_empty()).then_some(AnonymiseRule { path, action })
}

fn fake(kind: Kind, digest: &[u8; 32]) -> String {
    let one_of = |words: &[&'static str], part: usize| {
        words[(pick(digest, part) % words.len() as u64) as usize]
    };
    let first = one_of(&FIRST_NAMES, 0);
    let last = one_of(&LAST_NAMES, 1);
    // Keeps emails distinct, as UUIDs are. There are 1.6 billion phone numbers, and few of the other kinds.
    let number = pick(digest, 2) % 1_000_000_000_000;
    match kind {
        Kind::Name => format!("{first} {last}"),
        Kind::Email => {
            format!("{}.{}.{number}@example.com", first.to_lowercase(), last.to_lowercase())
        }
        // Nobody has such a number: exchanges begin with 2 or more.
        Kind::Phone => {
            let area = 200 + pick(digest, 3) % 800;
            let exchange = number / 10_000 % 200;
            format!("+1-{area}-{exchange:03}-{:04}", number % 10_000)
        }
        Kind::City => one_of(&CITIES, 0).to_owned(),
        Kind::Street => format!("{} {last} Street", 1 + number % 999),
        Kind::Company => format!("{last} & {}", one_of(&LAST_NAMES, 3)),
        Kind::Word => one_of(&WORDS, 0).to_owned(),
        Kind::Uuid => {
            let hex = hex::encode(&digest[..16]);
            let (variant, rest) = ("8", &hex[17..20]);
            format!(
                "{}-{}-4{}-{variant}{rest}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[13..16],
                &hex[20..]
            )
        }
    }
}

/// Eight bytes of a digest as a number.
fn pick(digest: &[u8; 32], part: usize) -> u64 {
    let (parts, _) = digest.as_chunks();
    u64::from_be_bytes(parts[part % parts.len()])
}

const FIRST_NAMES: [&str; 16] = [
    "Ada", "Amir", "Bela", "Carla", "Chen", "Dario", "Elif", "Femi", "Grace", "Hana", "Ivo",
    "June", "Kofi", "Lena", "Marco", "Nadia",
];
const LAST_NAMES: [&str; 16] = [
    "Abbot", "Berg", "Costa", "Diaz", "Eriksen", "Fischer", "Grant", "Haas", "Ito", "Jansen",
    "Kaya", "Lopez", "Moreau", "Novak", "Okafor", "Petrov",
];
const CITIES: [&str; 12] = [
    "Ashford",
    "Brookfield",
    "Clearwater",
    "Dunmore",
    "Eastvale",
    "Fairview",
    "Glenwood",
    "Harborview",
    "Kingsport",
    "Lakeside",
    "Midvale",
    "Northgate",
];
const WORDS: [&str; 12] = [
    "amber", "basil", "cedar", "dune", "ember", "fjord", "grove", "heron", "indigo", "juniper",
    "kelp", "lagoon",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn text(text: &str) -> AttributeValue {
        AttributeValue::S(text.to_owned())
    }

    fn applied(rule: &str, value: AttributeValue) -> AttributeValue {
        let rules = AnonymiseRules::parse(&[rule.to_owned()], b"key").unwrap();
        let mut item = Attributes::from([("a".to_owned(), value)]);
        rules.apply(&mut item);
        item.remove("a").unwrap()
    }

    #[test]
    fn the_same_value_has_the_same_replacement() {
        let one = applied("a=hash", text("ada@x.org"));
        assert_eq!(one, applied("a=hash", text("ada@x.org")));
        assert_ne!(one, applied("a=hash", text("bob@x.org")));
        let AttributeValue::S(hash) = one else { panic!() };
        assert_eq!(hash.len(), 32);
        let other = AnonymiseRules::parse(&["a=hash".to_owned()], b"other").unwrap();
        let mut item = Attributes::from([("a".to_owned(), text("ada@x.org"))]);
        other.apply(&mut item);
        assert_ne!(item["a"], text(&hash), "it depends on the key");
        assert!(matches!(applied("a=hash", AttributeValue::N(7.into())), AttributeValue::N(_)));
        let bytes = applied("a=hash", AttributeValue::B(vec![1]));
        assert!(matches!(bytes, AttributeValue::B(bytes) if bytes.len() == 16));
    }

    #[test]
    fn masks_keep_the_end() {
        assert_eq!(applied("a=mask:4", text("4111 1111 é234")), text("**********é234"));
        assert_eq!(applied("a=mask", text("abc")), text("***"));
        for short in ["abc", "abcdefghi"] {
            assert_eq!(applied("a=mask:9", text(short)), text(&"*".repeat(short.len())));
        }
        assert_eq!(applied("a=mask:9", text("abcdefghij")), text("*bcdefghij"));
        let bytes = |bytes: &[u8]| AttributeValue::B(bytes.to_vec());
        assert_eq!(applied("a=mask:2", bytes(b"ab")), bytes(b"**"));
        assert_eq!(applied("a=mask:2", bytes(b"abc")), bytes(b"*bc"));
        assert_eq!(
            applied("a=mask", AttributeValue::N(12.into())),
            AttributeValue::N(Number::ZERO)
        );
        let set = AttributeValue::Ss(BTreeSet::from(["ab".to_owned(), "cb".to_owned()]));
        let masked = AttributeValue::Ss(BTreeSet::from(["*b".to_owned()]));
        assert_eq!(applied("a=mask:1", set), masked);
    }

    #[test]
    fn fakes_look_real() {
        for (kind, _) in KINDS {
            let AttributeValue::S(fake) = applied(&format!("a=fake:{kind}"), text("secret")) else {
                panic!("{kind}");
            };
            assert!(!fake.contains("secret") && fake.len() > 3, "{kind}: {fake}");
        }
        let AttributeValue::S(uuid) = applied("a=fake:uuid", text("x")) else { panic!() };
        assert_eq!((uuid.len(), &uuid[14..15], &uuid[19..20]), (36, "4", "8"));
        let AttributeValue::S(email) = applied("a=fake:email", text("x")) else { panic!() };
        assert!(email.ends_with("@example.com"), "{email}");
    }

    #[test]
    fn emails_phones_and_uuids_are_many() {
        for kind in ["email", "phone", "uuid"] {
            let fakes: BTreeSet<String> = (0..2_000)
                .map(|number| {
                    let value = text(&number.to_string());
                    let AttributeValue::S(fake) = applied(&format!("a=fake:{kind}"), value) else {
                        panic!("{kind}");
                    };
                    fake
                })
                .collect();
            assert_eq!(fakes.len(), 2_000, "{kind}");
        }
        let AttributeValue::S(phone) = applied("a=fake:phone", text("x")) else { panic!() };
        let parts: Vec<&str> = phone.split('-').collect();
        let ["+1", area, exchange, line] = parts[..] else { panic!("{phone}") };
        assert_eq!((area.len(), exchange.len(), line.len()), (3, 3, 4), "{phone}");
        assert!(area >= "200" && exchange < "200", "{phone}");
    }

    #[test]
    fn paths_lead_through_maps_and_lists() {
        let person = |name: &str| {
            AttributeValue::M(Attributes::from([
                ("name".to_owned(), text(name)),
                ("role".to_owned(), text("x")),
            ]))
        };
        let list = AttributeValue::L(vec![person("ada"), person("bob"), text("plain")]);
        let masked = AttributeValue::L(vec![person("***"), person("***"), text("plain")]);
        assert_eq!(applied("a.name=mask", list), masked);
        assert_eq!(applied("b=mask", text("x")), text("x"));
    }

    #[test]
    fn what_is_no_rule_is_rejected() {
        for rule in ["a", "a=", "=hash", "a=fake:nothing", "a=mask:x", "a..b=hash", "a=hash:2"] {
            assert!(AnonymiseRules::parse(&[rule.to_owned()], b"").is_err(), "{rule}");
        }
    }
}
