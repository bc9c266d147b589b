//! Every request gets a response, and never an internal error: sends the requests of all cases with
//! some of their tokens replaced.

use std::ops::Range;

use crate::cases::{self, World};

/// What replaces a token. Strings among them are names, types, numbers and expressions at once.
const REPLACEMENTS: [&str; 18] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "9999999999999",
    "[]",
    "{}",
    "[null]",
    "\"\"",
    "\"S\"",
    "\"N\"",
    "\"pk\"",
    "\"Pair\"",
    "\"-0.0e1\"",
    "\"#a = :b AND size(c[1].d) < :e\"",
    "\"\\ud83d\\ude00\"",
    "{\"L\":[{\"M\":{}}]}",
];

const MUTATIONS_PER_REQUEST: usize = 12;

#[tokio::test]
async fn mutated_requests_are_answered() {
    let mut random = Random(0x5eed);
    for file in cases::files() {
        let mut world = World::new().await;
        for line in cases::text(&file).lines() {
            let request = line.strip_prefix("> ").or_else(|| line.strip_prefix("@ given "));
            if line.starts_with("##") {
                world = World::new().await;
            } else if let Some((operation, body)) = request.and_then(|line| line.split_once(' ')) {
                send_mutations(&world, operation, body, &mut random).await;
                world.answer(operation, body).await;
            }
        }
    }
}

async fn send_mutations(world: &World, operation: &str, body: &str, random: &mut Random) {
    let tokens = tokens(body);
    if tokens.is_empty() {
        return;
    }
    for _ in 0..MUTATIONS_PER_REQUEST {
        let mut mutated = body.to_owned();
        let token = random.choose(&tokens).clone();
        let replacement: &&str = random.choose(&REPLACEMENTS);
        mutated.replace_range(token, replacement);
        let shown = ShownOnPanic { operation, body: &mutated };
        let answer = world.answer(operation, &mutated).await;
        // DynamoDB itself fails on some degenerate requests, with an InternalFailure.
        assert!(!answer.contains("InternalServerError"), "{answer}");
        drop(shown);
    }
}

/// The positions of a JSON text's strings (names included) and other scalars.
fn tokens(body: &str) -> Vec<Range<usize>> {
    let bytes = body.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let length = match bytes[at] {
            b'"' => string_length(&bytes[at..]),
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                bytes[at..].iter().take_while(|byte| word(byte)).count()
            }
            _ => 0,
        };
        if length > 0 {
            tokens.push(at..at + length);
        }
        at += length.max(1);
    }
    tokens
}

fn string_length(bytes: &[u8]) -> usize {
    let mut at = 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Shows the current request when the test fails.
struct ShownOnPanic<'r> {
    operation: &'r str,
    body: &'r str,
}

impl Drop for ShownOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("> {} {}", self.operation, self.body);
        }
    }
}

/// A linear congruential generator: the same choices in every run.
struct Random(u64);

impl Random {
    fn choose<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        &choices[(self.0 >> 33) as usize % choices.len()]
    }
}
