use std::collections::HashMap;

use super::*;

fn points(values: &[(u64, f64)]) -> Points {
    values.iter().copied().collect()
}

/// Evaluates over three minutes, with `m1` in all of them and `m2` in the first and the last.
fn value(text: &str) -> Result<Operand, String> {
    let series = HashMap::from([
        ("m1".to_owned(), vec![points(&[(0, 1.0), (60_000, 2.0), (120_000, 3.0)])]),
        ("m2".to_owned(), vec![points(&[(0, 10.0), (120_000, 0.0)])]),
    ]);
    let metrics = ["m1".to_owned(), "m2".to_owned()];
    let scope = Scope {
        series: &series,
        metrics: &metrics,
        from_ms: 0,
        to_ms: 180_000,
        period_ms: 60_000,
        budget: &Budget::new(10_000),
    };
    evaluate(&parse(text)?, &scope)
}

#[test]
fn expressions_are_worth_what_cloudwatch_says() {
    let series = |values: &[(u64, f64)]| Ok(Operand::Series(points(values)));
    let cases = [
        ("m1+m2", series(&[(0, 11.0), (120_000, 3.0)])),
        ("m1/m2*100", series(&[(0, 10.0)])),
        ("-m1 ^ 2", series(&[(0, 1.0), (60_000, 4.0), (120_000, 9.0)])),
        ("2*(m1 - 1)", series(&[(0, 0.0), (60_000, 2.0), (120_000, 4.0)])),
        ("m1 > 1 && m1 < 3", series(&[(0, 0.0), (60_000, 1.0), (120_000, 0.0)])),
        ("SUM([m1,m2])", series(&[(0, 11.0), (60_000, 2.0), (120_000, 3.0)])),
        ("SUM(METRICS())", series(&[(0, 11.0), (60_000, 2.0), (120_000, 3.0)])),
        ("MAX(METRICS(\"2\"))", series(&[(0, 10.0), (120_000, 0.0)])),
        ("AVG(m1)", Ok(Operand::Scalar(2.0))),
        ("MIN(m1) + MAX(m1)", Ok(Operand::Scalar(4.0))),
        ("FILL(m2, 7)", series(&[(0, 10.0), (60_000, 7.0), (120_000, 0.0)])),
        ("FILL(m2, REPEAT)", series(&[(0, 10.0), (60_000, 10.0), (120_000, 0.0)])),
        ("FILL(m2, LINEAR)", series(&[(0, 10.0), (60_000, 5.0), (120_000, 0.0)])),
        ("m1/PERIOD(m1)*60", series(&[(0, 1.0), (60_000, 2.0), (120_000, 3.0)])),
        ("IF(m1 >= 2, m1, 0)", series(&[(0, 0.0), (60_000, 2.0), (120_000, 3.0)])),
        ("DIFF(m1)", series(&[(60_000, 1.0), (120_000, 1.0)])),
        ("RATE(m1) * 60", series(&[(60_000, 1.0), (120_000, 1.0)])),
        ("RUNNING_SUM(m1)", series(&[(0, 1.0), (60_000, 3.0), (120_000, 6.0)])),
        ("METRIC_COUNT(METRICS())", Ok(Operand::Scalar(2.0))),
        ("CEIL(m1 / 2)", series(&[(0, 1.0), (60_000, 1.0), (120_000, 2.0)])),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn broken_expressions_say_what_is_wrong() {
    for (text, expected) in [
        ("m1+", "Unexpected end of expression"),
        ("m1+m3", "Undefined variable: m3"),
        ("(m1", "Expected ')' before 'the end'"),
        ("m1 m2", "Unexpected 'm'"),
        (
            "SEARCH('{AWS/DynamoDB}', 'Sum', 60)",
            "The function SEARCH with 3 arguments is not supported by Zenobe",
        ),
        ("\"x\"", "A text stands where a value is expected"),
        ("\"x", "A text has no end"),
        ("1.2.3", "'1.2.3' is not a number"),
        ("é", "Unexpected 'é'"),
        ("[m1]+[m2]", "Operators don't combine two arrays"),
    ] {
        assert_eq!(value(text), Err(expected.to_owned()), "{text}");
    }
    let nested = "(".repeat(1_000) + "1" + &")".repeat(1_000);
    assert_eq!(value(&nested), Err("The expression is nested too deeply".to_owned()));
    assert!(value(&"-".repeat(1_000)).is_err());
}

#[test]
fn all_that_makes_series_is_paid_for() {
    let too_much = Err(
        "The expressions compute too many values; use fewer of them, a shorter time or longer periods"
            .to_owned(),
    );
    for part in ["m1", "TIME_SERIES(1)", "FILL(m1, REPEAT)", "IF(1, 1)", "m1 + [m1, m1]"] {
        assert!(value(&format!("[{part}, SUM(METRICS())]")).is_ok(), "{part}");
        let many = vec![part; 200].join(", ");
        assert_eq!(value(&format!("SUM([{many}])")), too_much, "{part}");
    }
    assert_eq!(value(&vec!["METRIC_COUNT(METRICS())"; 80].join("+")), too_much);
}

#[test]
fn ids_are_found() {
    let expression = parse("SUM([m1, e2]) / FILL(m3, REPEAT)").unwrap();
    let mut ids = Vec::new();
    expression.ids(&mut ids);
    assert_eq!(ids, ["m1", "e2", "m3"]);
}
