//! Stream settings.

use zenobe_engine::command::StreamChange;
use zenobe_engine::schema::StreamViewType;

use super::shapes::StreamSpecification;
use crate::constraints::Violations;
use crate::error::ApiError;
use crate::messages::table;
use crate::operations::enumerations::STREAM_VIEW_TYPE;

/// A stream specification that passed its constraints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamInput {
    enabled: bool,
    view_type: Option<StreamViewType>,
}

impl StreamInput {
    pub(crate) fn constrain(
        specification: &StreamSpecification,
        violations: &mut Violations,
    ) -> StreamInput {
        let path = "streamSpecification.streamEnabled";
        let enabled = violations.required(specification.stream_enabled, path);
        let view_type = violations.enumeration(
            specification.stream_view_type.as_deref(),
            "streamSpecification.streamViewType",
            &STREAM_VIEW_TYPE,
        );
        StreamInput { enabled, view_type }
    }

    /// The stream of a new table.
    pub(crate) fn created(self) -> Result<Option<StreamViewType>, ApiError> {
        match (self.enabled, self.view_type) {
            (true, None) => Err(table::created_stream_without_view_type()),
            (false, Some(_)) => Err(table::created_without_stream_but_view_type()),
            (_, view_type) => Ok(view_type),
        }
    }

    /// The change of an existing table's stream.
    pub(crate) fn changed(self) -> Result<StreamChange, ApiError> {
        match (self.enabled, self.view_type) {
            (true, Some(view_type)) => Ok(StreamChange::Enable(view_type)),
            (true, None) => Err(table::enabled_stream_without_view_type()),
            (false, Some(_)) => Err(table::disabled_stream_with_view_type()),
            (false, None) => Ok(StreamChange::Disable),
        }
    }
}
