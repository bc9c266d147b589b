//! Random writes and index changes: whatever happens, entries, counts and sizes follow from the
//! items.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::block_on;
use crate::support::commands::Script;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_table_stays_consistent(commands in vec(command(), 1..40)) {
        block_on(async {
            let mut script = Script::new().await;
            let create = [
                "create t pk:S sk:N",
                "lsi local_keys a:S keys",
                "lsi local_all b:N all",
                "gsi global_some a:S b:N c",
                "gsi global_all b:N - all",
            ];
            assert_eq!(script.run(&create).await, "ok\n");
            for command in &commands {
                let lines: Vec<&str> = command.lines().collect();
                // Conditions may fail and indexes may exist already; neither may leave anything
                // behind.
                script.run(&lines).await;
            }
            script.check_consistency().await;
            script.run(&["work"]).await;
            script.check_consistency().await;
        });
    }
}

fn command() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => write(),
        3 => vec(write(), 1..4).prop_map(|writes| format!("transact-write\n{}", writes.join("\n"))),
        1 => Just("add-index t late a:S c:S b".to_owned()),
        1 => Just("add-index t late c:S - keys".to_owned()),
        1 => Just("drop-index t late".to_owned()),
        1 => Just("work".to_owned()),
    ]
}

fn write() -> impl Strategy<Value = String> {
    let key = (0..2u8, 0..3u8).prop_map(|(pk, sk)| format!(r#""pk": "{pk}", "sk": {sk}"#));
    let attributes = (value(r#""x""#, r#""y""#), value("1", "2"), value(r#""c""#, r#""cc""#));
    let condition = prop_oneof![
        4 => Just(""),
        1 => Just("\nif attribute_exists(a)"),
        1 => Just("\nif attribute_not_exists(pk)"),
    ];
    (0..4u8, key, attributes, condition).prop_map(|(which, key, (a, b, c), condition)| {
        let named = [("a", &a), ("b", &b), ("c", &c)];
        let present = named.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let command = match which {
            0 => format!("delete t {{{key}}}"),
            1 => {
                let parts: Vec<String> = present
                    .map(|(name, value)| format!("SET {name} = `{value}`"))
                    .take(1)
                    .collect();
                format!("update t {{{key}}} {} REMOVE extra", parts.join(""))
            }
            2 => {
                let absent = named.iter().find(|(_, value)| value.is_none());
                format!("update t {{{key}}} REMOVE {}", absent.map_or("extra", |(name, _)| name))
            }
            _ => {
                let parts: String =
                    present.map(|(name, value)| format!(r#", "{name}": {value}"#)).collect();
                format!("put t {{{key}{parts}}}")
            }
        };
        command + condition
    })
}

fn value(one: &'static str, other: &'static str) -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![Just(None), Just(Some(one)), Just(Some(other))]
}
