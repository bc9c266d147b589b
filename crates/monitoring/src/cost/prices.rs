//! Prices by region, from a file.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// The prices that come with this version.
const BUILT_IN: &str = include_str!("../../prices.toml");

/// Prices in US dollars.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceFile {
    /// The date of the prices.
    pub date: String,
    regions: BTreeMap<String, RegionPrices>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegionPrices {
    pub standard: ClassPrices,
    pub infrequent_access: ClassPrices,
    pub point_in_time_recovery_gb_month: f64,
    pub backup_gb_month: f64,
    pub restore_gb: f64,
    pub export_gb: f64,
    pub import_gb: f64,
    pub stream_reads_100k: f64,
}

/// What depends on the class of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClassPrices {
    pub read_request_units_million: f64,
    pub write_request_units_million: f64,
    pub read_capacity_unit_hour: f64,
    pub write_capacity_unit_hour: f64,
    pub storage_gb_month: f64,
}

/// The class of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StorageClass {
    #[default]
    Standard,
    InfrequentAccess,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PriceError {
    #[error("{0}")]
    Toml(String),
    #[error("there is no `{place}`; it must be {expected}")]
    Missing { place: String, expected: &'static str },
    #[error("`{place}` is not known")]
    Unknown { place: String },
    #[error("`{place}` has the prices of `{region}`, which has none of its own in the file")]
    SameAs { place: String, region: String },
    #[error(
        "the prices of the region {region} are not known; known are {known}. Write a file with yours, \
         in the form of {FORM}, and give it with --prices"
    )]
    Region { region: String, known: String },
}

/// The page that documents the file.
const FORM: &str = "docs/cost.md#prices";

impl RegionPrices {
    pub fn of(&self, class: StorageClass) -> &ClassPrices {
        match class {
            StorageClass::Standard => &self.standard,
            StorageClass::InfrequentAccess => &self.infrequent_access,
        }
    }
}

impl PriceFile {
    /// The prices that come with this version.
    pub fn built_in() -> PriceFile {
        PriceFile::parse(BUILT_IN).expect("a test parses the file")
    }

    pub fn parse(text: &str) -> Result<PriceFile, PriceError> {
        let file: Table = text.parse().map_err(|error| PriceError::Toml(format!("{error}")))?;
        check_names(&file, "", &["date", "regions"])?;
        let date = match file.get("date") {
            Some(Value::String(date)) if !date.is_empty() => date.clone(),
            _ => return Err(missing("date", "a text: when the prices held")),
        };
        let Some(Value::Table(given)) = file.get("regions") else {
            return Err(missing("regions", "a table with a section for each region"));
        };
        let mut regions = BTreeMap::new();
        for (name, section) in given {
            let place = format!("regions.{name}");
            let own = table(section, &place)?;
            let prices = match own.get("same-as") {
                None => region(own, &place)?,
                Some(other) => {
                    check_names(own, &place, &["same-as"])?;
                    let other = other.as_str().unwrap_or_default();
                    let section = given.get(other).and_then(Value::as_table);
                    let section = section.filter(|section| !section.contains_key("same-as"));
                    let section = section.ok_or_else(|| PriceError::SameAs {
                        place: place.clone(),
                        region: other.to_owned(),
                    })?;
                    region(section, &format!("regions.{other}"))?
                }
            };
            regions.insert(name.clone(), prices);
        }
        Ok(PriceFile { date, regions })
    }

    pub fn region(&self, name: &str) -> Result<&RegionPrices, PriceError> {
        self.regions.get(name).ok_or_else(|| PriceError::Region {
            region: name.to_owned(),
            known: self.regions.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        })
    }
}

const REGION_NAMES: [&str; 8] = [
    "standard",
    "infrequent-access",
    "point-in-time-recovery-gb-month",
    "backup-gb-month",
    "restore-gb",
    "export-gb",
    "import-gb",
    "stream-reads-100k",
];

fn region(section: &Table, place: &str) -> Result<RegionPrices, PriceError> {
    check_names(section, place, &REGION_NAMES)?;
    let class = |name: &str| {
        let place = format!("{place}.{name}");
        match section.get(name) {
            Some(section) => class(table(section, &place)?, &place),
            None => Err(missing(&place, "a section of prices")),
        }
    };
    let price = |name: &str| price(section, place, name);
    Ok(RegionPrices {
        standard: class("standard")?,
        infrequent_access: class("infrequent-access")?,
        point_in_time_recovery_gb_month: price("point-in-time-recovery-gb-month")?,
        backup_gb_month: price("backup-gb-month")?,
        restore_gb: price("restore-gb")?,
        export_gb: price("export-gb")?,
        import_gb: price("import-gb")?,
        stream_reads_100k: price("stream-reads-100k")?,
    })
}

const CLASS_NAMES: [&str; 5] = [
    "read-request-units-million",
    "write-request-units-million",
    "read-capacity-unit-hour",
    "write-capacity-unit-hour",
    "storage-gb-month",
];

fn class(section: &Table, place: &str) -> Result<ClassPrices, PriceError> {
    check_names(section, place, &CLASS_NAMES)?;
    let [read_request, write_request, read_hour, write_hour, storage] = CLASS_NAMES;
    Ok(ClassPrices {
        read_request_units_million: price(section, place, read_request)?,
        write_request_units_million: price(section, place, write_request)?,
        read_capacity_unit_hour: price(section, place, read_hour)?,
        write_capacity_unit_hour: price(section, place, write_hour)?,
        storage_gb_month: price(section, place, storage)?,
    })
}

fn table<'t>(value: &'t Value, place: &str) -> Result<&'t Table, PriceError> {
    value.as_table().ok_or_else(|| missing(place, "a section of prices"))
}

fn price(section: &Table, place: &str, name: &str) -> Result<f64, PriceError> {
    let price = match section.get(name) {
        Some(Value::Float(price)) => Some(*price),
        Some(Value::Integer(price)) => Some(*price as f64),
        _ => None,
    };
    price
        .filter(|price| price.is_finite() && *price >= 0.0)
        .ok_or_else(|| missing(&format!("{place}.{name}"), "a price in dollars"))
}

/// Refuses unknown names: a misspelt one would otherwise go unnoticed.
fn check_names(section: &Table, place: &str, known: &[&str]) -> Result<(), PriceError> {
    match section.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) if place.is_empty() => Err(PriceError::Unknown { place: name.clone() }),
        Some(name) => Err(PriceError::Unknown { place: format!("{place}.{name}") }),
    }
}

fn missing(place: &str, expected: &'static str) -> PriceError {
    PriceError::Missing { place: place.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prices_are_those_of_aws() {
        let prices = PriceFile::built_in();
        assert_eq!(prices.date, "2024-11-01");
        let region = prices.region("us-east-1").unwrap();
        assert_eq!(region.standard.read_request_units_million, 0.125);
        assert_eq!(region.standard.write_request_units_million, 0.625);
        assert_eq!(region.of(StorageClass::InfrequentAccess).write_capacity_unit_hour, 0.000_81);
        assert_eq!(prices.region("us-west-2").unwrap(), region);
    }

    #[test]
    fn an_unknown_region_says_what_is_known_and_what_to_do() {
        let error = PriceFile::built_in().region("mars-north-1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the prices of the region mars-north-1 are not known; known are us-east-1, us-east-2, us-west-2. \
             Write a file with yours, in the form of docs/cost.md#prices, and give it with --prices"
        );
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        let check = |from: &str, to: &str, expected: &str| {
            let file = BUILT_IN.replacen(from, to, 1);
            assert_ne!(file, BUILT_IN, "{from}");
            assert_eq!(PriceFile::parse(&file).unwrap_err().to_string(), expected);
        };
        check("date = ", "day = ", "`day` is not known");
        check(
            "restore-gb = 0.15",
            "restore-gb = -1",
            "there is no `regions.us-east-1.restore-gb`; it must be a price in dollars",
        );
        check(
            "storage-gb-month = 0.25",
            "storage-gb = 0.25",
            "`regions.us-east-1.standard.storage-gb` is not known",
        );
        check(
            "same-as = \"us-east-1\"",
            "same-as = \"us-west-2\"",
            "`regions.us-east-2` has the prices of `us-west-2`, which has none of its own in the file",
        );
        assert!(matches!(PriceFile::parse("date = "), Err(PriceError::Toml(_))));
    }
}
