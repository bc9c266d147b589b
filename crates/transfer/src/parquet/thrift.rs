//! Thrift's compact protocol, as far as Parquet's descriptions need it.

/// Writes structures field by field. Fields must come in the order of their ids.
#[derive(Default)]
pub(super) struct Thrift {
    out: Vec<u8>,
    /// The id of the last field of each structure that is open.
    last: Vec<i16>,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Type {
    I32 = 5,
    I64 = 6,
    Binary = 8,
    List = 9,
    Structure = 12,
}

impl Thrift {
    /// The bytes of one structure.
    pub fn structure(fields: impl FnOnce(&mut Thrift)) -> Vec<u8> {
        let mut thrift = Thrift::default();
        thrift.members(fields);
        thrift.out
    }

    pub fn i32(&mut self, id: i16, value: i32) {
        self.header(id, Type::I32);
        self.varint(zigzag(value.into()));
    }

    pub fn i64(&mut self, id: i16, value: i64) {
        self.header(id, Type::I64);
        self.varint(zigzag(value));
    }

    pub fn text(&mut self, id: i16, text: &str) {
        self.header(id, Type::Binary);
        self.bytes(text.as_bytes());
    }

    pub fn nested(&mut self, id: i16, fields: impl FnOnce(&mut Thrift)) {
        self.header(id, Type::Structure);
        self.members(fields);
    }

    pub fn structures<T>(&mut self, id: i16, of: &[T], mut fields: impl FnMut(&mut Thrift, &T)) {
        self.list(id, Type::Structure, of.len());
        for each in of {
            self.members(|thrift| fields(thrift, each));
        }
    }

    pub fn i32s(&mut self, id: i16, values: &[i32]) {
        self.list(id, Type::I32, values.len());
        values.iter().for_each(|value| self.varint(zigzag((*value).into())));
    }

    pub fn texts(&mut self, id: i16, texts: &[String]) {
        self.list(id, Type::Binary, texts.len());
        texts.iter().for_each(|text| self.bytes(text.as_bytes()));
    }

    fn members(&mut self, fields: impl FnOnce(&mut Thrift)) {
        self.last.push(0);
        fields(self);
        self.last.pop();
        self.out.push(0);
    }

    fn header(&mut self, id: i16, of: Type) {
        let last = self.last.last_mut().expect("fields are written inside a structure");
        let step = id - *last;
        *last = id;
        assert!((1..=15).contains(&step), "fields come in order, and no gap is wide");
        self.out.push(((step as u8) << 4) | of as u8);
    }

    fn list(&mut self, id: i16, of: Type, length: usize) {
        self.header(id, Type::List);
        match length {
            0..15 => self.out.push(((length as u8) << 4) | of as u8),
            _ => {
                self.out.push(0xF0 | of as u8);
                self.varint(length as u64);
            }
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.varint(bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    fn varint(&mut self, value: u64) {
        push_varint(&mut self.out, value);
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Seven bits per byte, the lowest first.
pub(super) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
