//! The parameters that expressions replaced, lowered to the same types that expressions bind to.

pub(crate) mod attribute_updates;
pub(crate) mod attributes_to_get;
pub(crate) mod conditions;
pub(crate) mod expected;
pub(crate) mod filters;
pub(crate) mod key_conditions;
