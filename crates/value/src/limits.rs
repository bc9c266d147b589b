//! DynamoDB's limits on values, by name. Limits on requests live with the requests.

/// The largest size that an item may have.
pub const ITEM_SIZE_BYTES_MAX: usize = 409_600;

/// Counted from the value of a top-level attribute, which is level 1.
pub const NESTING_LEVELS_MAX: usize = 32;

/// How deep stored bytes may nest before they count as damaged. An update can set a value of
/// [`NESTING_LEVELS_MAX`] levels at a path of as many elements, hence twice that limit.
pub const STORED_NESTING_LEVELS_MAX: usize = 2 * NESTING_LEVELS_MAX;

pub const PARTITION_KEY_SIZE_BYTES_MAX: usize = 2_048;
pub const SORT_KEY_SIZE_BYTES_MAX: usize = 1_024;

pub const ATTRIBUTE_NAME_SIZE_BYTES_MAX: usize = 65_535;
/// For the names of key attributes, of projected non-key attributes and of the TTL attribute.
pub const KEY_ATTRIBUTE_NAME_SIZE_BYTES_MAX: usize = 255;

/// What DynamoDB adds to the size of an item, or of an index entry, when it bills storage.
pub const STORAGE_OVERHEAD_BYTES: usize = 100;

pub const NUMBER_DIGITS_MAX: usize = 38;
/// The largest exponent of a number's first digit: 9.99…E+125 is the largest number.
pub const NUMBER_EXPONENT_MAX: i32 = 125;
/// The smallest exponent of a number's first digit: 1E-130 is the smallest magnitude.
pub const NUMBER_EXPONENT_MIN: i32 = -130;
/// The longest canonical text: a sign, `0.`, 129 zeros and 38 digits.
pub const NUMBER_TEXT_BYTES_MAX: usize = 170;
