//! The messages that a client of PostgreSQL sends, which may come in pieces.

#[derive(Default)]
pub struct Messages {
    rest: Vec<u8>,
    has_begun: bool,
    /// Another protocol passes through here.
    is_foreign: bool,
}

/// No message of PostgreSQL's is longer. The first letters of HTTP, taken for a length, are.
const LENGTH_MAX: usize = 1 << 30;

impl Messages {
    /// How many statements end in these bytes.
    pub fn statements_in(&mut self, sent: &[u8]) -> usize {
        if self.is_foreign {
            return 0;
        }
        self.rest.extend_from_slice(sent);
        let mut statements = 0;
        loop {
            // Only the first message has no letter in front of its length.
            let letter = usize::from(self.has_begun);
            let Some(length) = self.rest.get(letter..letter + 4) else { return statements };
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if length > LENGTH_MAX {
                (self.is_foreign, self.rest) = (true, Vec::new());
                return statements;
            }
            if self.rest.len() < letter + length {
                return statements;
            }
            let is_statement = self.has_begun && matches!(self.rest[0], b'S' | b'Q');
            statements += usize::from(is_statement);
            self.rest.drain(..letter + length);
            self.has_begun = true;
        }
    }
}
