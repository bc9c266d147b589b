//! A compact JSON writer into a byte vector. It inserts commas by itself.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::plain::plain_length;

#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
    /// Whether a value precedes this position on the same level.
    after_value: bool,
}

impl Writer {
    pub(crate) fn new() -> Writer {
        Writer::default()
    }

    pub(crate) fn with_capacity(bytes: usize) -> Writer {
        Writer { out: Vec::with_capacity(bytes), after_value: false }
    }

    /// Appends to what is there already.
    pub(crate) fn behind(out: Vec<u8>) -> Writer {
        Writer { out, after_value: false }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn begin_object(&mut self) {
        self.separate();
        self.out.push(b'{');
        self.after_value = false;
    }

    pub(crate) fn end_object(&mut self) {
        self.out.push(b'}');
        self.after_value = true;
    }

    pub(crate) fn begin_array(&mut self) {
        self.separate();
        self.out.push(b'[');
        self.after_value = false;
    }

    pub(crate) fn end_array(&mut self) {
        self.out.push(b']');
        self.after_value = true;
    }

    /// An object whose members `members` writes.
    pub(crate) fn object(&mut self, members: impl FnOnce(&mut Writer)) {
        self.begin_object();
        members(self);
        self.end_object();
    }

    /// An array with one element per item, each written by `element`.
    pub(crate) fn array<T>(
        &mut self,
        items: impl IntoIterator<Item = T>,
        mut element: impl FnMut(&mut Writer, T),
    ) {
        self.begin_array();
        for item in items {
            element(self, item);
        }
        self.end_array();
    }

    /// The name of a member. The caller writes its value next.
    pub(crate) fn name(&mut self, name: &str) -> &mut Writer {
        self.utf8_name(name.as_bytes())
    }

    /// A name given as bytes, which are UTF-8 like all incoming strings.
    pub(crate) fn utf8_name(&mut self, name: &[u8]) -> &mut Writer {
        self.enclosed("\"", name, "\":");
        self.after_value = false;
        self
    }

    pub(crate) fn string(&mut self, text: &str) {
        self.utf8_string(text.as_bytes());
    }

    /// A string given as UTF-8 bytes.
    pub(crate) fn utf8_string(&mut self, text: &[u8]) {
        self.enclosed("\"", text, "\"");
    }

    /// A value whose JSON is `before`, the rest of a string, and `after`. The bytes are UTF-8.
    ///
    /// Inlined, so that parts of a few known bytes are stored directly instead of copied by a call.
    #[inline(always)]
    pub(crate) fn enclosed(&mut self, before: &'static str, text: &[u8], after: &'static str) {
        self.separate();
        self.out.extend_from_slice(before.as_bytes());
        self.escaped(text);
        self.out.extend_from_slice(after.as_bytes());
        self.after_value = true;
    }

    pub(crate) fn base64(&mut self, bytes: &[u8]) {
        self.separate();
        self.out.push(b'"');
        let start = self.out.len();
        let length = base64::encoded_len(bytes.len(), true).unwrap_or_default();
        self.out.resize(start + length, 0);
        let written = STANDARD.encode_slice(bytes, &mut self.out[start..]).unwrap_or_default();
        debug_assert_eq!(written, length);
        self.out.push(b'"');
        self.after_value = true;
    }

    pub(crate) fn bool(&mut self, flag: bool) {
        self.raw(if flag { "true" } else { "false" });
    }

    pub(crate) fn integer(&mut self, number: impl itoa::Integer) {
        self.raw(itoa::Buffer::new().format(number));
    }

    /// Half units as a JSON double: `0.5`, `1.0`.
    pub(crate) fn halves(&mut self, halves: u64) {
        self.separate();
        self.out.extend_from_slice(itoa::Buffer::new().format(halves / 2).as_bytes());
        self.out.extend_from_slice(if halves.is_multiple_of(2) { b".0" } else { b".5" });
        self.after_value = true;
    }

    /// A point in time as epoch seconds with up to three decimals.
    pub(crate) fn timestamp(&mut self, epoch_ms: u64) {
        let fraction = format!("{:03}", epoch_ms % 1_000);
        let fraction = fraction.trim_end_matches('0');
        let seconds = epoch_ms / 1_000;
        match fraction {
            "" => self.raw(&seconds.to_string()),
            _ => self.raw(&format!("{seconds}.{fraction}")),
        }
    }

    /// A value that is JSON already.
    pub(crate) fn raw(&mut self, text: &str) {
        self.separate();
        self.out.extend_from_slice(text.as_bytes());
        self.after_value = true;
    }

    fn separate(&mut self) {
        if self.after_value {
            self.out.push(b',');
        }
    }

    #[inline]
    fn escaped(&mut self, text: &[u8]) {
        let (plain, special) = text.split_at(plain_length(text));
        self.out.extend_from_slice(plain);
        if !special.is_empty() {
            self.escaped_from(special);
        }
    }

    /// Text whose first byte needs an escape. A separate function, which keeps the common path
    /// small.
    #[cold]
    fn escaped_from(&mut self, special: &[u8]) {
        let mut rest = special;
        while let Some((byte, after)) = rest.split_first() {
            match byte {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'\n' => self.out.extend_from_slice(b"\\n"),
                b'\r' => self.out.extend_from_slice(b"\\r"),
                b'\t' => self.out.extend_from_slice(b"\\t"),
                control => self.out.extend_from_slice(format!("\\u{control:04x}").as_bytes()),
            }
            let (plain, special) = after.split_at(plain_length(after));
            self.out.extend_from_slice(plain);
            rest = special;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Writer)) -> String {
        let mut writer = Writer::new();
        write(&mut writer);
        String::from_utf8(writer.finish()).unwrap()
    }

    #[test]
    fn commas_stand_between_values_only() {
        let text = written(|writer| {
            writer.object(|writer| {
                writer.name("a").array([1, 2], Writer::integer);
                writer.name("b").object(|_| {});
                writer.name("c").bool(false);
            });
        });
        assert_eq!(text, r#"{"a":[1,2],"b":{},"c":false}"#);
    }

    #[test]
    fn scalars_have_their_wire_form() {
        assert_eq!(written(|w| w.string("é\"\\\n\u{1}\u{7f}")), "\"é\\\"\\\\\\n\\u0001\u{7f}\"");
        assert_eq!(written(|w| w.base64(b"ab")), "\"YWI=\"");
        assert_eq!(written(|w| w.base64(b"")), "\"\"");
        assert_eq!(written(|w| w.halves(1)), "0.5");
        assert_eq!(written(|w| w.halves(20)), "10.0");
        assert_eq!(written(|w| w.timestamp(1_363_729_002_358)), "1363729002.358");
        assert_eq!(written(|w| w.timestamp(1_363_729_002_300)), "1363729002.3");
        assert_eq!(written(|w| w.timestamp(1_363_729_002_000)), "1363729002");
    }
}
