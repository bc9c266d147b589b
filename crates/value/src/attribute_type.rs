//! The ten types an attribute value can have.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttributeType {
    S,
    N,
    B,
    Bool,
    Null,
    Ss,
    Ns,
    Bs,
    L,
    M,
}

impl AttributeType {
    pub const ALL: [AttributeType; 10] = [
        AttributeType::S,
        AttributeType::N,
        AttributeType::B,
        AttributeType::Bool,
        AttributeType::Null,
        AttributeType::Ss,
        AttributeType::Ns,
        AttributeType::Bs,
        AttributeType::L,
        AttributeType::M,
    ];

    /// The name DynamoDB gives the type, as in `attribute_type(a, :type)`.
    pub const fn name(self) -> &'static str {
        match self {
            AttributeType::S => "S",
            AttributeType::N => "N",
            AttributeType::B => "B",
            AttributeType::Bool => "BOOL",
            AttributeType::Null => "NULL",
            AttributeType::Ss => "SS",
            AttributeType::Ns => "NS",
            AttributeType::Bs => "BS",
            AttributeType::L => "L",
            AttributeType::M => "M",
        }
    }

    /// Names are case-sensitive.
    pub fn from_name(name: &str) -> Option<AttributeType> {
        Some(match name {
            "S" => AttributeType::S,
            "N" => AttributeType::N,
            "B" => AttributeType::B,
            "BOOL" => AttributeType::Bool,
            "NULL" => AttributeType::Null,
            "SS" => AttributeType::Ss,
            "NS" => AttributeType::Ns,
            "BS" => AttributeType::Bs,
            "L" => AttributeType::L,
            "M" => AttributeType::M,
            _ => return None,
        })
    }

    /// Only these types can be part of a key.
    pub const fn is_key_type(self) -> bool {
        matches!(self, AttributeType::S | AttributeType::N | AttributeType::B)
    }

    pub const fn is_set(self) -> bool {
        matches!(self, AttributeType::Ss | AttributeType::Ns | AttributeType::Bs)
    }
}

impl fmt::Display for AttributeType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_by_their_names() {
        for attribute_type in AttributeType::ALL {
            assert_eq!(AttributeType::from_name(attribute_type.name()), Some(attribute_type));
        }
        for name in ["", "s", "Bool", "SSS", "X"] {
            assert_eq!(AttributeType::from_name(name), None, "{name}");
        }
    }
}
