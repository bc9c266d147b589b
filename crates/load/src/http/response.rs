//! Finds the end of a response, and whether it succeeded.

use std::ops::Range;

/// Otherwise a response without a length and without an end would fill the memory.
const RESPONSE_BYTES_MAX: usize = 64 * 1024 * 1024;
const HEAD_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    /// Where the body is in the input. Chunks have been joined in place.
    pub body: Range<usize>,
    /// Whether the connection can't be used again.
    pub close: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    #[error("the answer is not HTTP/1.1")]
    NotHttp,
    #[error("the answer's length cannot be read")]
    Length,
    #[error("the answer's chunks cannot be read")]
    Chunks,
    #[error("the answer is too large")]
    Size,
    #[error("the connection was closed in the middle of an answer")]
    Closed,
}

/// Follows one response through a growing input.
#[derive(Debug, Default)]
pub struct ResponseParser {
    state: ParseState,
    /// Where the response starts: after interim responses, which have no body.
    start: usize,
}

#[derive(Debug, Default)]
enum ParseState {
    #[default]
    Head,
    Sized(Response),
    Chunked(Response, Chunks),
    UntilClose(Response),
}

impl ResponseParser {
    /// The response, once `input` holds all of it.
    pub fn advance(&mut self, input: &mut [u8]) -> Result<Option<Response>, ResponseError> {
        if input.len() > RESPONSE_BYTES_MAX {
            return Err(ResponseError::Size);
        }
        while let ParseState::Head = self.state {
            let Some((state, size)) = read_head(&input[self.start..], self.start)? else {
                let is_endless = input.len() - self.start > HEAD_BYTES_MAX;
                return if is_endless { Err(ResponseError::Size) } else { Ok(None) };
            };
            match &state {
                ParseState::Sized(Response { status: 100..200, .. }) => self.start += size,
                _ => self.state = state,
            }
        }
        Ok(match &mut self.state {
            ParseState::Sized(response) if input.len() >= response.body.end => {
                Some(response.clone())
            }
            ParseState::Chunked(response, chunks) => {
                let is_complete = chunks.advance(input, &mut response.body)?;
                is_complete.then(|| response.clone())
            }
            ParseState::Sized(_) | ParseState::UntilClose(_) | ParseState::Head => None,
        })
    }

    /// The response, if it ends with the input.
    pub fn end(self, input: &[u8]) -> Result<Response, ResponseError> {
        match self.state {
            ParseState::UntilClose(mut response) => {
                response.body.end = input.len();
                Ok(response)
            }
            _ => Err(ResponseError::Closed),
        }
    }

    /// How large the input will get, if known.
    pub fn size_expected(&self) -> Option<usize> {
        match &self.state {
            ParseState::Sized(response) => Some(response.body.end),
            _ => None,
        }
    }
}

/// The state after a head that starts at `start`, and the head's size. `None` until the head is
/// complete.
#[inline]
fn read_head(input: &[u8], start: usize) -> Result<Option<(ParseState, usize)>, ResponseError> {
    let mut lines = Lines { rest: input };
    let Some(first) = lines.next() else { return Ok(None) };
    let (status, mut close) = read_status(first)?;
    let (mut length, mut chunked) = (None, false);
    loop {
        let Some(line) = lines.next() else { return Ok(None) };
        if line.is_empty() {
            break;
        }
        if let Some(value) = value_of(line, b"content-length:") {
            length = Some(decimal(value).ok_or(ResponseError::Length)?);
        } else if let Some(value) = value_of(line, b"transfer-encoding:") {
            chunked = value.eq_ignore_ascii_case(b"chunked");
        } else if let Some(value) = value_of(line, b"connection:") {
            close = value.eq_ignore_ascii_case(b"close")
                || close && !value.eq_ignore_ascii_case(b"keep-alive");
        }
    }
    let size = input.len() - lines.rest.len();
    let body_start = start + size;
    let body = body_start..body_start;
    let has_no_body = matches!(status, 100..200 | 204 | 304);
    let state = match length {
        _ if has_no_body => ParseState::Sized(Response { status, body, close }),
        _ if chunked => {
            ParseState::Chunked(Response { status, body, close }, Chunks::new(body_start))
        }
        Some(length) => {
            let end = body_start.checked_add(length).filter(|end| *end <= RESPONSE_BYTES_MAX);
            let body = body_start..end.ok_or(ResponseError::Size)?;
            ParseState::Sized(Response { status, body, close })
        }
        None => ParseState::UntilClose(Response { status, body, close: true }),
    };
    Ok(Some((state, size)))
}

/// The status, and whether the connection closes by default.
fn read_status(line: &[u8]) -> Result<(u16, bool), ResponseError> {
    match line {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor, b' ', a, b, c, ..] => {
            let status = decimal(&[*a, *b, *c]).ok_or(ResponseError::NotHttp)?;
            Ok((status as u16, *minor == b'0'))
        }
        _ => Err(ResponseError::NotHttp),
    }
}

/// Complete lines, without their line breaks.
struct Lines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.rest)?;
        let line = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// The value, if the line is this header. `name` is lower-case and ends in a colon.
#[inline]
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    // The position of the colon rules out most headers.
    let is_candidate = line.get(name.len() - 1) == Some(&b':');
    let (start, value) = line.split_at_checked(name.len()).filter(|_| is_candidate)?;
    start.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn decimal(digits: &[u8]) -> Option<usize> {
    let add = |number: usize, digit: &u8| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    };
    digits.iter().try_fold(0, add).filter(|_| !digits.is_empty())
}

/// Joins the chunks in place.
#[derive(Debug)]
struct Chunks {
    read_to: usize,
    /// The bytes of the current chunk that are still missing, including the line break after it.
    open: Option<usize>,
    /// Lines follow the last chunk, up to an empty one.
    in_trailer: bool,
}

impl Chunks {
    fn new(read_to: usize) -> Chunks {
        Chunks { read_to, open: None, in_trailer: false }
    }

    /// Appends the new input to the body. Returns whether the body is complete.
    fn advance(
        &mut self,
        input: &mut [u8],
        body: &mut Range<usize>,
    ) -> Result<bool, ResponseError> {
        loop {
            if let Some(rest) = self.open {
                let taken = rest.min(input.len() - self.read_to);
                input.copy_within(self.read_to..self.read_to + taken, body.end);
                body.end += taken;
                self.read_to += taken;
                self.open = Some(rest - taken);
                let Some(line_end) = input.get(self.read_to..self.read_to + 2) else {
                    return Ok(false);
                };
                if rest > taken {
                    return Ok(false);
                }
                if line_end != b"\r\n" {
                    return Err(ResponseError::Chunks);
                }
                self.read_to += 2;
                self.open = None;
            }
            let rest = &input[self.read_to..];
            let Some(line) = memchr::memchr(b'\n', rest).map(|at| &rest[..at]) else {
                return Ok(false);
            };
            let line = line.strip_suffix(b"\r").ok_or(ResponseError::Chunks)?;
            self.read_to += line.len() + 2;
            match self.in_trailer {
                true if line.is_empty() => return Ok(true),
                true => (),
                false => match chunk_size(line)? {
                    0 => self.in_trailer = true,
                    size => self.open = Some(size),
                },
            }
        }
    }
}

fn chunk_size(line: &[u8]) -> Result<usize, ResponseError> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let digits = std::str::from_utf8(digits).map_err(|_| ResponseError::Chunks)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let size = usize::from_str_radix(digits, 16)
        .ok()
        .filter(|_| is_number)
        .ok_or(ResponseError::Chunks)?;
    if size > RESPONSE_BYTES_MAX { Err(ResponseError::Size) } else { Ok(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the bytes in pieces of the given size, then closes.
    fn read(bytes: &[u8], piece: usize) -> Result<(u16, Vec<u8>, bool), ResponseError> {
        let mut parser = ResponseParser::default();
        let mut input = Vec::new();
        for piece in bytes.chunks(piece) {
            input.extend_from_slice(piece);
            if let Some(response) = parser.advance(&mut input)? {
                return Ok((response.status, input[response.body].to_vec(), response.close));
            }
        }
        let response = parser.end(&input)?;
        Ok((response.status, input[response.body].to_vec(), response.close))
    }

    fn check(text: &str, expected: Result<(u16, &str, bool), ResponseError>) {
        let expected =
            expected.map(|(status, body, close)| (status, body.as_bytes().to_vec(), close));
        for piece in [1, 2, 3, 7, 20, text.len()] {
            assert_eq!(read(text.as_bytes(), piece), expected, "{text:?} in pieces of {piece}");
        }
    }

    #[test]
    fn responses_are_framed_wherever_they_are_split() {
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Ok((200, "{}", false)));
        check("HTTP/1.1 400 \r\ncontent-length:0\r\n\r\n", Ok((400, "", false)));
        check("HTTP/1.1 204 No Content\r\n\r\n", Ok((204, "", false)));
        check(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}",
            Ok((200, "{}", true)),
        );
        check("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", Ok((200, "{}", true)));
        check(
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\n{}",
            Ok((200, "{}", false)),
        );
        check("HTTP/1.1 200 OK\r\n\r\nuntil the end", Ok((200, "until the end", true)));
        check(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
            Ok((200, "x", false)),
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;a=b\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n",
            Ok((200, "Wikipedia", false)),
        );
        check(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n\r\n34567890\r\n0\r\nTrailer: x\r\n\r\n",
            Ok((200, "\r\n34567890", false)),
        );
    }

    #[test]
    fn responses_that_cannot_be_framed_are_errors() {
        check("HTTP/2 200\r\n\r\n", Err(ResponseError::NotHttp));
        check("HTTP/1.1 2x0 OK\r\n\r\n", Err(ResponseError::NotHttp));
        check("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Err(ResponseError::Length));
        check("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", Err(ResponseError::Size));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", Err(ResponseError::Closed));
        check("HTTP/1.1 200 OK\r\nConten", Err(ResponseError::Closed));
        let chunked =
            |chunks| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        check(&chunked("x\r\n"), Err(ResponseError::Chunks));
        check(&chunked("+1\r\na\r\n"), Err(ResponseError::Chunks));
        check(&chunked("1\r\nab\r\n"), Err(ResponseError::Chunks));
        check(&chunked("3\r\nab"), Err(ResponseError::Closed));
        check(&chunked("FFFFFFFFF\r\n"), Err(ResponseError::Size));
    }
}
