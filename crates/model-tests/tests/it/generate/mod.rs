//! Random histories: few keys and few names, so that steps interact, and values of every type.

mod dice;
mod expressions;
mod reads;
mod shape;
mod values;
mod writes;

use rand::rngs::StdRng;
use zenobe_engine::schema::StreamViewType;
use zenobe_testing::Seed;

use crate::step::Step;
use crate::twin::transaction::TOKEN_LIFETIME_MS;
use crate::twin::write::Write;

use self::dice::Dice;
pub use self::shape::{IndexShape, Shape, shapes};

/// The settings of a whole history, drawn with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// A small limit makes writes reach it; the default is never reached.
    pub collection_size_bytes_max: u64,
}

/// Most are around the ten minutes for which a token is remembered.
const INTERVALS_MS: [u64; 5] =
    [1_000, 300_000, TOKEN_LIFETIME_MS - 1, TOKEN_LIFETIME_MS - 1, TOKEN_LIFETIME_MS];

pub struct History {
    pub settings: Settings,
    pub steps: Vec<Step>,
}

pub fn history(seed: Seed, part: u64, length: usize) -> History {
    let mut generator = Generator::new(seed.generator(part));
    // Every history should have these for a while.
    let first = [
        Step::SetTimeToLive { table: "hash".to_owned(), enabled: true },
        Step::SetStream {
            table: "range".to_owned(),
            view_type: Some(StreamViewType::NewAndOldImages),
        },
    ];
    let others = (first.len()..length).map(|_| generator.step());
    let steps = first.iter().cloned().chain(others).collect();
    History { settings: generator.settings, steps }
}

pub struct Generator {
    dice: Dice,
    shapes: Vec<Shape>,
    settings: Settings,
    /// Transactions with a token, to be repeated.
    tokened: Vec<(String, Vec<(String, Write)>)>,
}

impl Generator {
    fn new(random: StdRng) -> Generator {
        let mut dice = Dice(random);
        let tight = dice.chance(50);
        let collection_size_bytes_max = if tight { 3_000 } else { 10 << 30 };
        let settings = Settings { collection_size_bytes_max };
        Generator { dice, shapes: shapes(), settings, tokened: Vec::new() }
    }

    fn step(&mut self) -> Step {
        let step = self.plain_step();
        let has_statement = matches!(
            step,
            Step::Write { .. } | Step::Get { .. } | Step::Query(_) | Step::TransactWrite { .. }
        );
        if has_statement && self.dice.one_in(5) { Step::Statement(Box::new(step)) } else { step }
    }

    fn plain_step(&mut self) -> Step {
        match self.dice.below(1000) {
            0..352 => self.single_write(),
            352..360 => self.table_step(),
            360..420 => self.get(),
            420..590 => self.query(),
            590..650 => self.scan(),
            650..690 => self.batch_get(),
            690..740 => self.batch_write(),
            740..880 => self.transact_write(),
            880..920 => self.transact_get(),
            920..940 => self.add_index(),
            940..952 => self.drop_index(),
            952..972 => Step::Work,
            972..982 => Step::AdvanceClock { by_ms: *self.dice.pick(&INTERVALS_MS) },
            982..989 => Step::Check,
            989..993 => self.table_step(),
            993..996 => Step::Reopen,
            _ => Step::Crash,
        }
    }

    /// A table's shape, or rarely one that no table has.
    fn shape(&mut self) -> Shape {
        let mut shape = self.dice.pick(&self.shapes).clone();
        if self.dice.one_in(200) {
            shape.name = "missing".to_owned();
        }
        shape
    }
}
