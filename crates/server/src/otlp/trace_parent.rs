//! The header `traceparent` of the W3C's Trace Context: in which trace a caller makes a request.

/// The caller's span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace_id: u128,
    pub span_id: u64,
    /// Whether the caller records this trace.
    pub is_sampled: bool,
}

impl TraceParent {
    /// `None` if the header is not valid: the request then begins a trace of its own.
    pub fn parse(header: &str) -> Option<TraceParent> {
        let mut fields = header.trim().split('-');
        let (version, trace_id) = (fields.next()?, fields.next()?);
        let (span_id, flags) = (fields.next()?, fields.next()?);
        // Later versions may append fields. 255 is not a version.
        let version = hexadecimal(version, 2)?;
        if version == 0xFF || version == 0 && fields.next().is_some() {
            return None;
        }
        let parent = TraceParent {
            trace_id: hexadecimal(trace_id, 32)?,
            span_id: u64::try_from(hexadecimal(span_id, 16)?).ok()?,
            is_sampled: hexadecimal(flags, 2)? & 1 == 1,
        };
        (parent.trace_id != 0 && parent.span_id != 0).then_some(parent)
    }
}

/// Lower-case digits only, as the standard says.
fn hexadecimal(text: &str, length: usize) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_valid = text.len() == length && text.bytes().all(is_digit);
    is_valid.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_name_the_callers_span() {
        let parent = TraceParent::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(
            parent,
            Some(TraceParent {
                trace_id: 0x0af7651916cd43dd8448eb211c80319c,
                span_id: 0xb7ad6b7169203331,
                is_sampled: true,
            })
        );
        let later = "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-what-comes";
        assert!(!TraceParent::parse(later).unwrap().is_sampled);
    }

    #[test]
    fn invalid_headers_begin_a_trace() {
        for header in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7-b7ad6b7169203331-01",
        ] {
            assert_eq!(TraceParent::parse(header), None, "{header}");
        }
    }
}
