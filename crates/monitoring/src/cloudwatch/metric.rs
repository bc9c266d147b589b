//! What identifies a metric, and its units.

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::error::CloudWatchError;
use super::wire::{Members, Structure, Value};

/// The namespace of DynamoDB's own metrics.
pub const DYNAMODB: &str = "AWS/DynamoDB";
/// The namespace of what services use of their quotas.
const USAGE: &str = "AWS/Usage";

const DIMENSIONS_MAX: usize = 30;

/// A metric: what CloudWatch keeps a series of data points for. Dimensions are sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Metric {
    pub namespace: String,
    pub name: String,
    pub dimensions: Vec<Dimension>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Dimension {
    pub name: String,
    pub value: String,
}

/// Identifies a metric in keys.
pub type SeriesId = [u8; 16];

impl Metric {
    pub fn dynamodb(name: &str, dimensions: &[(&str, &str)]) -> Metric {
        Metric::of_aws(DYNAMODB, name, dimensions)
    }

    /// How much of a quota of DynamoDB is used.
    pub fn usage(resource: &str) -> Metric {
        let dimensions = [
            ("Service", "DynamoDB"),
            ("Type", "Resource"),
            ("Resource", resource),
            ("Class", "None"),
        ];
        Metric::of_aws(USAGE, "ResourceCount", &dimensions)
    }

    fn of_aws(namespace: &str, name: &str, dimensions: &[(&str, &str)]) -> Metric {
        let dimension = |(name, value): &(&str, &str)| Dimension {
            name: (*name).into(),
            value: (*value).into(),
        };
        let mut dimensions: Vec<Dimension> = dimensions.iter().map(dimension).collect();
        dimensions.sort();
        Metric { namespace: namespace.to_owned(), name: name.to_owned(), dimensions }
    }

    pub fn series_id(&self) -> SeriesId {
        let mut identity = Vec::with_capacity(128);
        let dimensions = self.dimensions.iter().flat_map(|it| [&it.name, &it.value]);
        for text in [&self.namespace, &self.name].into_iter().chain(dimensions) {
            identity.extend((text.len() as u32).to_be_bytes());
            identity.extend(text.as_bytes());
        }
        xxh3_128(&identity).to_be_bytes()
    }

    /// Where a namespace's metrics lie in the catalogue, and where those with one name do.
    pub fn place(namespace: &str, name: Option<&str>) -> Vec<u8> {
        let mut place = xxh3_64(namespace.as_bytes()).to_be_bytes().to_vec();
        place.extend(name.map(|name| xxh3_64(name.as_bytes()).to_be_bytes()).into_iter().flatten());
        place
    }

    pub fn dimension(&self, name: &str) -> Option<&str> {
        let found = self.dimensions.iter().find(|dimension| dimension.name == name);
        found.map(|dimension| dimension.value.as_str())
    }

    /// The members `Namespace`, `MetricName` and `Dimensions` of a request.
    pub fn read(members: Members<'_>) -> Result<Metric, CloudWatchError> {
        let namespace = members.required_text("Namespace")?;
        let name = members.required_text("MetricName")?;
        Metric::with(namespace, name, Dimension::read_all(members)?)
    }

    pub fn with(
        namespace: &str,
        name: &str,
        dimensions: Vec<Dimension>,
    ) -> Result<Metric, CloudWatchError> {
        check_length("Namespace", namespace, 255)?;
        check_length("MetricName", name, 255)?;
        if namespace.starts_with(':') {
            return Err(CloudWatchError::invalid(
                "The value : for parameter Namespace is invalid.",
            ));
        }
        Ok(Metric { namespace: namespace.to_owned(), name: name.to_owned(), dimensions })
    }

    /// Checks the characters of a new metric's namespace. Metrics of stored alarms are not checked again.
    pub fn check_namespace(&self) -> Result<(), CloudWatchError> {
        check_ascii("Namespace", &self.namespace)
    }

    pub fn render(&self) -> Structure {
        vec![
            ("Namespace".into(), Value::from(self.namespace.as_str())),
            ("MetricName".into(), Value::from(self.name.as_str())),
            ("Dimensions".into(), Dimension::render_all(&self.dimensions)),
        ]
    }
}

impl Dimension {
    /// The member `Dimensions` of a request, sorted.
    pub fn read_all(members: Members<'_>) -> Result<Vec<Dimension>, CloudWatchError> {
        let given = members.structures("Dimensions")?;
        if given.len() > DIMENSIONS_MAX {
            let message = "The collection Dimensions must not have a size greater than 30.";
            return Err(CloudWatchError::invalid(message));
        }
        let read = |members: &Members<'_>| {
            let dimension = Dimension {
                name: members.required_text("Name")?.to_owned(),
                value: members.required_text("Value")?.to_owned(),
            };
            check_length(&members.path("Name"), &dimension.name, 255)?;
            check_length(&members.path("Value"), &dimension.value, 1_024)?;
            Ok(dimension)
        };
        let mut dimensions = given.iter().map(read).collect::<Result<Vec<_>, CloudWatchError>>()?;
        dimensions.sort();
        if dimensions.windows(2).any(|pair| pair[0].name == pair[1].name) {
            return Err(CloudWatchError::invalid("No two dimensions may have the same name."));
        }
        Ok(dimensions)
    }

    /// Checks the characters of the member `Dimensions` of a request that creates something.
    pub fn check_all(members: Members<'_>) -> Result<(), CloudWatchError> {
        for dimension in members.structures("Dimensions")? {
            for member in ["Name", "Value"] {
                let text = dimension.required_text(member)?;
                check_ascii(&dimension.path(member), text)?;
                // AWS treats blanks as nothing.
                if text.trim().is_empty() {
                    return Err(dimension.missing(member));
                }
            }
            let name = dimension.required_text("Name")?;
            if name.starts_with(':') {
                let member = dimension.path("Name");
                return Err(CloudWatchError::invalid(format!(
                    "The value {name} for parameter {member} is invalid."
                )));
            }
        }
        Ok(())
    }

    pub fn render_all(dimensions: &[Dimension]) -> Value {
        let render = |it: &Dimension| -> Structure {
            vec![
                ("Name".into(), Value::from(it.name.as_str())),
                ("Value".into(), Value::from(it.value.as_str())),
            ]
        };
        Value::structures(dimensions.iter().map(render))
    }
}

/// Names have ASCII characters only, without those for control.
fn check_ascii(name: &str, text: &str) -> Result<(), CloudWatchError> {
    match text.chars().all(|it| it.is_ascii() && !it.is_ascii_control()) {
        true => Ok(()),
        false => Err(CloudWatchError::invalid(format!(
            "The value of {name} must have ASCII characters only, and no control characters."
        ))),
    }
}

pub fn check_length(name: &str, text: &str, length_max: usize) -> Result<(), CloudWatchError> {
    match text.chars().count() > length_max {
        true => Err(CloudWatchError::invalid(format!(
            "The value of {name} must not have more than {length_max} characters."
        ))),
        false => Ok(()),
    }
}

/// One of CloudWatch's units, by its position in the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unit(u8);

/// Part of stored keys: never change the order.
const UNITS: [&str; 27] = [
    "Seconds",
    "Microseconds",
    "Milliseconds",
    "Bytes",
    "Kilobytes",
    "Megabytes",
    "Gigabytes",
    "Terabytes",
    "Bits",
    "Kilobits",
    "Megabits",
    "Gigabits",
    "Terabits",
    "Percent",
    "Count",
    "Bytes/Second",
    "Kilobytes/Second",
    "Megabytes/Second",
    "Gigabytes/Second",
    "Terabytes/Second",
    "Bits/Second",
    "Kilobits/Second",
    "Megabits/Second",
    "Gigabits/Second",
    "Terabits/Second",
    "Count/Second",
    "None",
];

impl Unit {
    pub const MILLISECONDS: Unit = Unit(2);
    pub const BYTES: Unit = Unit(3);
    pub const PERCENT: Unit = Unit(13);
    pub const COUNT: Unit = Unit(14);
    pub const NONE: Unit = Unit(26);

    pub fn name(self) -> &'static str {
        UNITS[usize::from(self.0)]
    }

    pub fn byte(self) -> u8 {
        self.0
    }

    pub fn from_byte(byte: u8) -> Option<Unit> {
        (usize::from(byte) < UNITS.len()).then_some(Unit(byte))
    }

    /// The member `Unit` of a request.
    pub fn read(members: Members<'_>) -> Result<Option<Unit>, CloudWatchError> {
        let Some(name) = members.text("Unit")? else { return Ok(None) };
        Unit::parse(name).map(Some).ok_or_else(|| CloudWatchError::not_in_set("unit", name, &UNITS))
    }

    pub fn parse(name: &str) -> Option<Unit> {
        let position = UNITS.iter().position(|unit| *unit == name);
        position.and_then(|position| u8::try_from(position).ok()).map(Unit)
    }

    /// All units, as AWS lists them in a message.
    pub fn listed() -> String {
        UNITS.join(", ")
    }
}
