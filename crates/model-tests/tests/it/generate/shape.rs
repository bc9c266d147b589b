//! The tables of every history, and the indexes that may join them.

use zenobe_engine::schema::{
    IndexKind, IndexProjection, KeyAttribute, KeySchema, ScalarType, StreamViewType,
};

use crate::twin::schema::NewIndex;

use super::Generator;
use crate::step::Step;

#[derive(Debug, Clone)]
pub struct Shape {
    pub name: String,
    pub keys: KeySchema,
    pub indexes: Vec<IndexShape>,
}

#[derive(Debug, Clone)]
pub struct IndexShape {
    pub name: String,
    pub kind: IndexKind,
    pub keys: KeySchema,
    pub projection: IndexProjection,
}

/// The types of attributes that are keys of something. Others have values of any type.
pub fn key_type(name: &str) -> Option<ScalarType> {
    match name {
        "a" => Some(ScalarType::S),
        "b" => Some(ScalarType::N),
        "c" => Some(ScalarType::B),
        _ => None,
    }
}

pub fn shapes() -> Vec<Shape> {
    use ScalarType::{B, N, S};
    let include = |names: &[&str]| {
        IndexProjection::Include(names.iter().map(|name| (*name).to_owned()).collect())
    };
    vec![
        Shape {
            name: "hash".to_owned(),
            keys: keys(&[("pk", S)], &[]),
            indexes: vec![
                global("by_a", keys(&[("a", S)], &[]), IndexProjection::All),
                global("by_b_c", keys(&[("b", N)], &[("c", B)]), include(&["x"])),
            ],
        },
        Shape {
            name: "range".to_owned(),
            keys: keys(&[("pk", S)], &[("sk", N)]),
            indexes: vec![
                local("local_keys", keys(&[("pk", S)], &[("a", S)]), IndexProjection::KeysOnly),
                local("local_all", keys(&[("pk", S)], &[("b", N)]), IndexProjection::All),
                local("local_some", keys(&[("pk", S)], &[("c", B)]), include(&["x", "m"])),
                global(
                    "multi",
                    keys(&[("a", S), ("b", N)], &[("c", B), ("sk", N)]),
                    include(&["x"]),
                ),
                global("by_sk", keys(&[("sk", N)], &[]), IndexProjection::KeysOnly),
            ],
        },
        Shape {
            name: "numbers".to_owned(),
            keys: keys(&[("pk", N)], &[("sk", B)]),
            indexes: vec![global("by_a_pk", keys(&[("a", S)], &[("pk", N)]), IndexProjection::All)],
        },
    ]
}

/// Indexes on attributes that hold any type: values that can't be keys must stay out of them.
pub fn late_indexes() -> Vec<NewIndex> {
    use ScalarType::{B, N, S};
    let attributes = |list: &[(&str, ScalarType)]| {
        list.iter().map(|(name, scalar_type)| ((*name).to_owned(), *scalar_type)).collect()
    };
    let late =
        |name: &str, partition: &[(&str, ScalarType)], sort: &[(&str, ScalarType)], projection| {
            NewIndex {
                name: name.to_owned(),
                partition: attributes(partition),
                sort: attributes(sort),
                projection,
            }
        };
    vec![
        late("late_1", &[("x", S)], &[], IndexProjection::All),
        late("late_1", &[("x", N)], &[("a", S)], IndexProjection::KeysOnly),
        late(
            "late_2",
            &[("a", S), ("x", S)],
            &[("b", N), ("y", N)],
            IndexProjection::Include(vec!["m".to_owned()]),
        ),
        late("late_2", &[("y", B)], &[("x", B)], IndexProjection::All),
    ]
}

impl Generator {
    pub fn add_index(&mut self) -> Step {
        let table = self.shape().name;
        let index = self.dice.pick(&late_indexes()).clone();
        Step::AddIndex { table, index }
    }

    pub fn drop_index(&mut self) -> Step {
        let table = self.shape().name;
        let index = *self.dice.pick(&["late_1", "late_1", "late_2", "late_2", "by_a", "local_all"]);
        Step::DropIndex { table, index: index.to_owned() }
    }
}

impl Generator {
    /// A step that concerns a whole table.
    pub fn table_step(&mut self) -> Step {
        use StreamViewType::{KeysOnly, NewAndOldImages, NewImage, OldImage};
        let table = self.shape().name;
        match self.dice.below(100) {
            0..20 => Step::DeleteTable { table },
            20..45 => Step::CreateTable { table },
            45..70 => Step::SetTimeToLive { table, enabled: self.dice.chance(70) },
            _ => {
                let views = [KeysOnly, NewImage, OldImage, NewAndOldImages, NewAndOldImages];
                let view_type = self.dice.chance(70).then(|| *self.dice.pick(&views));
                Step::SetStream { table, view_type }
            }
        }
    }
}

fn keys(partition: &[(&str, ScalarType)], sort: &[(&str, ScalarType)]) -> KeySchema {
    let attributes = |list: &[(&str, ScalarType)]| {
        let attribute = |(name, scalar_type): &(&str, ScalarType)| KeyAttribute {
            name: (*name).to_owned(),
            scalar_type: *scalar_type,
        };
        list.iter().map(attribute).collect()
    };
    KeySchema { partition: attributes(partition), sort: attributes(sort) }
}

fn local(name: &str, keys: KeySchema, projection: IndexProjection) -> IndexShape {
    IndexShape { name: name.to_owned(), kind: IndexKind::Local, keys, projection }
}

fn global(name: &str, keys: KeySchema, projection: IndexProjection) -> IndexShape {
    IndexShape { name: name.to_owned(), kind: IndexKind::Global, keys, projection }
}
