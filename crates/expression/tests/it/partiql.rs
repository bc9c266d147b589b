//! PartiQL: what statements mean, which are rejected, and that no text does harm.

use proptest::prelude::*;
use zenobe_expression::partiql::{
    Assignment, Image, InsertedItem, Parameters, Position, SelectStatement, Statement,
    StatementFault, StatementKind, Term, parse,
};
use zenobe_value::{AttributeType, AttributeValue, Attributes, EncodedItem, Number, NumberError};

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn number(number: i64) -> AttributeValue {
    AttributeValue::N(Number::from(number))
}

fn select(statement: &Statement) -> &SelectStatement {
    match &statement.kind {
        StatementKind::Select(select) => select,
        other => panic!("{other:?} is no SELECT"),
    }
}

fn item() -> EncodedItem {
    let members = Attributes::from([("k".to_owned(), number(2)), ("b".to_owned(), text("deep"))]);
    EncodedItem::encode(&Attributes::from([
        ("a".to_owned(), text("abc")),
        ("n".to_owned(), number(7)),
        ("flag".to_owned(), AttributeValue::Bool(true)),
        ("nothing".to_owned(), AttributeValue::Null),
        ("l".to_owned(), AttributeValue::L(vec![number(1), text("b")])),
        ("m".to_owned(), AttributeValue::M(members)),
        ("s".to_owned(), AttributeValue::Ss(["x".to_owned(), "y".to_owned()].into())),
        ("c d".to_owned(), number(1)),
    ]))
}

/// Whether a condition holds for the item.
#[track_caller]
fn holds(condition: &str, parameters: &[AttributeValue]) -> bool {
    let statement = parse(&format!("SELECT * FROM t WHERE {condition}")).unwrap();
    let parameters = Parameters::check(&statement, parameters).unwrap();
    let test = select(&statement).condition.as_ref().unwrap();
    test.bind(parameters).unwrap().lower().evaluate(Some(item().as_item()))
}

#[test]
fn conditions_hold_as_they_should() {
    for condition in [
        "a = 'abc' AND n = 7",
        "'abc' = a",
        "a <> 'x' and missing_one != 1",
        "n BETWEEN 7 AND 7.0 AND a BETWEEN 'a' AND 'b'",
        "n NOT BETWEEN 8 AND 9",
        "n IN [1, 7] AND n IN (7) AND n IN <<7, 8>>",
        "n NOT IN [1, 2]",
        "NOT n IN [1, 2]",
        "NOT absent = 1",
        "absent IS MISSING AND a IS NOT MISSING",
        "nothing IS NULL AND absent IS NOT NULL",
        "NOT absent IS NULL",
        "flag IS BOOL AND a IS STRING AND n IS INT4 AND n IS DECIMAL(10, 2) AND l IS LIST",
        "m IS STRUCT AND s IS BAG AND n IS DOUBLE PRECISION AND a IS CHARACTER VARYING(3)",
        "m.k = 2 AND m.\"b\" = 'deep' AND l[1] = 'b' AND \"c d\" = 1",
        "l[ - 0] = 1",
        "attribute_exists(m.k) AND ATTRIBUTE_NOT_EXISTS(m.z) AND attribute_type(n, 'N')",
        "begins_with(a, 'ab') AND contains(s, 'x') AND contains(l, 'b') AND size(a) = 3",
        "size('ab') < size(a)",
        "(a = 'abc') = true AND (a = 'x') = false AND (n = 7) = flag",
        "(a = 'abc') <> (n = 8)",
        "(n = 7) IN [true]",
        "begins_with(a, 'a') = begins_with(a, 'ab')",
        "flag AND true",
        "n = - - 7 AND n = +7 AND n = 70e-1 AND n <> -7",
        "l = [1, 'b'] AND s = <<'y', 'x'>> AND m = {'b': 'deep', 'k': 2}",
        "a = 'abc' OR a = 'x' AND n = 8",
        "a /* here */ = 'abc' -- there",
    ] {
        assert!(holds(condition, &[]), "{condition}");
    }
    for condition in [
        "absent = 1",
        "a < 1",
        "absent IS NULL",
        "nothing IS MISSING",
        "(a = 'abc' OR a = 'x') AND n = 8",
        "NOT flag",
        "n IS TIMESTAMP",
        "false",
    ] {
        assert!(!holds(condition, &[]), "{condition}");
    }
    let list = AttributeValue::L(vec![number(1), number(7)]);
    assert!(holds("a = ? AND n IN [?, 3] AND n IN ?", &[text("abc"), number(7), list]));
    assert!(holds("n IN ?", &[AttributeValue::Ns([Number::from(7)].into())]));
}

#[test]
fn statements_say_what_they_say() {
    let statement =
        parse("SELECT a.b, m.k[0], \"t\" FROM \"T 1\".\"i-2\" WHERE a=1 ORDER BY a DESC, b;");
    let statement = statement.unwrap();
    let read = select(&statement);
    let names: Vec<&str> = read.columns.iter().flatten().map(|column| &*column.name).collect();
    assert_eq!(names, ["b", "k[0]", "t"]);
    assert_eq!((&*read.source.table, read.source.index.as_deref()), ("T 1", Some("i-2")));
    let order: Vec<bool> = read.order.iter().map(|key| key.descending).collect();
    assert_eq!(order, [true, false]);

    let statement =
        parse("insert into t value {'a': ?, 'b': [1, {'c': <<'x'>>}], 'd': null}").unwrap();
    assert_eq!(statement.parameters, 1);
    let StatementKind::Insert(insert) = &statement.kind else { panic!("{statement:?}") };
    let InsertedItem::Fields(fields) = &insert.item else { panic!("{insert:?}") };
    assert_eq!(fields[0], ("a".to_owned(), Term::Parameter(0)));
    assert_eq!(insert.item(Parameters::check(&statement, &[text("x")]).unwrap()).unwrap().len(), 3);

    for text in [
        "UPDATE t SET a = n + 1, l = list_append(l, [1]) REMOVE b SET s = set_add(s, <<'z'>>) \
         WHERE p = 1 RETURNING MODIFIED NEW *",
        "FROM t WHERE p = 1 SET a = n + 1, l = list_append(l, [1]) REMOVE b \
         SET s = SET_ADD(s, <<'z'>>) RETURNING MODIFIED NEW *",
    ] {
        let statement = parse(text).unwrap();
        let StatementKind::Update(update) = &statement.kind else { panic!("{statement:?}") };
        assert_eq!(update.assignments.len(), 4);
        assert!(matches!(update.assignments[3], Assignment::AddToSet { .. }));
        let returning = update.returning.unwrap();
        assert!(returning.modified_only && returning.image == Image::New);
        update.bind(Parameters::check(&statement, &[]).unwrap()).unwrap();
    }

    let statement = parse("DELETE FROM t WHERE p = 1 RETURNING ALL OLD *").unwrap();
    assert!(matches!(&statement.kind, StatementKind::Delete(delete) if delete.returns_old));
    let statement = parse("EXISTS(SELECT * FROM t WHERE p = 1 AND a IS MISSING)").unwrap();
    assert!(matches!(statement.kind, StatementKind::Exists(_)));
}

/// Columns lose their parents. Of equal names the last counts.
#[test]
fn columns_are_named_after_the_end_of_their_path() {
    let projected = |columns: &str| {
        let statement = parse(&format!("SELECT {columns} FROM t")).unwrap();
        select(&statement).projection().unwrap().apply(item().as_item()).as_item().decode()
    };
    let names = |columns: &str| projected(columns).into_keys().collect::<Vec<_>>();
    assert_eq!(names("a, n"), ["a", "n"]);
    assert_eq!(names("m.k, l[0], absent, m.absent"), ["k", "l[0]"]);
    assert_eq!(projected("m.b, a")["b"], text("deep"));
    assert_eq!(projected("n, m.k, m.\"k\"")["k"], number(2));
    assert_eq!(names("m"), ["m"]);
}

#[track_caller]
fn fault(text: &str) -> StatementFault {
    match parse(text) {
        Err(fault) => fault,
        Ok(statement) => {
            let parameters = Parameters::check(&statement, &[]).unwrap();
            let bound = match &statement.kind {
                StatementKind::Select(select) => {
                    select.condition.as_ref().map(|test| test.bind(parameters).map(drop))
                }
                StatementKind::Update(update) => Some(update.bind(parameters).map(drop)),
                _ => None,
            };
            bound.unwrap_or(Ok(())).expect_err(text)
        }
    }
}

/// A statement may end anywhere, even in the middle of an alias or a clause.
#[test]
fn truncated_statements_are_parsed_or_rejected() {
    let statements = [
        "SELECT a AS b, c.d[1] FROM t.i x WHERE f(a, ?) = <<1, 'x'>> AND b IN [1, -2.5] ORDER BY a DESC, b ASC;",
        "SELECT * FROM \"t\".\"i\" AS x WHERE NOT (a BETWEEN 1 AND 2) OR b IS NOT MISSING",
        "EXISTS(SELECT * FROM t WHERE pk = 'a' AND begins_with(sk, 'b'))",
        "INSERT INTO t VALUE {'a': {'b': [1, TRUE, NULL, <<?>>]}}",
        "UPDATE t AS x SET a = list_append(a, [1]) + -2 SET b = ? REMOVE c[0].d WHERE pk = 1 RETURNING ALL OLD *",
        "DELETE FROM t AS x WHERE a IS NULL RETURNING MODIFIED NEW *",
    ];
    for statement in statements {
        for end in 0..=statement.len() {
            for suffix in ["", " AS", " *", "."] {
                let _ = parse(&format!("{}{suffix}", &statement[..end]));
            }
        }
    }
    assert_eq!(fault("SELECT a AS"), StatementFault::ExpectedFrom);
}

#[test]
fn syntax_comes_before_meaning_and_the_first_fault_before_others() {
    assert_eq!(fault("SELECT * FROM t x WHERE f(1) AND"), StatementFault::MissingRightHandSide);
    assert_eq!(fault("SELECT * FROM t x WHERE f(1) = 2"), StatementFault::Aliasing);
    let position = Position { line: 2, column: 7, length: 1 };
    assert_eq!(
        fault("SELECT * FROM t\nWHERE f(1) = g(2)"),
        StatementFault::UnknownFunction { function: "f".to_owned(), position }
    );
}

#[test]
fn faults_in_literals_name_their_position() {
    let number = |error, path: &str| StatementFault::Number { error, path: path.to_owned() };
    assert_eq!(fault("SELECT * FROM t WHERE a = 1e126"), number(NumberError::Overflow, "root"));
    assert_eq!(
        fault("UPDATE t SET a = {'x': [1, 1e-131]} WHERE p = 1"),
        number(NumberError::Underflow, "root.x[1]")
    );
    assert_eq!(fault("SELECT * FROM t WHERE a = <<>>"), StatementFault::EmptyBag);
    assert_eq!(fault("SELECT * FROM t WHERE a = <<1, 'a'>>"), StatementFault::MixedBag);
    let nested = |levels: usize| {
        let (open, close) = ("{'a': ".repeat(levels), "}".repeat(levels));
        format!("SELECT * FROM t WHERE x = {open}1{close}")
    };
    assert!(parse(&nested(31)).is_ok());
    let path = format!("root{}", ".a".repeat(31));
    assert_eq!(fault(&nested(32)), StatementFault::LiteralTooDeep { path });
}

#[test]
fn types_are_checked_once_they_are_known() {
    let statement = parse("SELECT * FROM t WHERE a between ? and 2").unwrap();
    let values = [AttributeValue::Bool(true)];
    let parameters = Parameters::check(&statement, &values).unwrap();
    let fault = select(&statement).condition.as_ref().unwrap().bind(parameters).unwrap_err();
    assert!(
        matches!(&fault, StatementFault::OperandType { operator, .. } if operator == "between"),
        "{fault:?}"
    );
    assert_eq!(Parameters::check(&statement, &[]).unwrap_err(), StatementFault::ParameterCount);
    let statement = parse("INSERT INTO t VALUE ?").unwrap();
    let StatementKind::Insert(insert) = &statement.kind else { panic!("{statement:?}") };
    let values = [number(1)];
    let fault = insert.item(Parameters::check(&statement, &values).unwrap()).unwrap_err();
    assert_eq!(fault, StatementFault::ItemNotMap { actual: AttributeType::N });
}

/// However deep and long a text is, a small stack suffices.
#[test]
fn no_text_exhausts_the_stack() {
    let texts = [
        "SELECT * FROM t WHERE ".to_owned() + &"(".repeat(8000),
        "SELECT * FROM t WHERE ".to_owned() + &"NOT ".repeat(2000) + "a",
        "SELECT * FROM t WHERE a".to_owned() + &" = a".repeat(2000),
        "SELECT * FROM t WHERE a = 1".to_owned() + &" OR a=1".repeat(1100),
        "SELECT * FROM t WHERE a = ".to_owned() + &"[".repeat(8000),
        "SELECT * FROM t WHERE a = ".to_owned() + &"{'a':".repeat(1600),
        "SELECT * FROM t WHERE a = ".to_owned() + &"- ".repeat(4000) + "1",
        "SELECT * FROM t WHERE ".to_owned() + &"size(".repeat(1600),
        "SELECT a".to_owned() + &".a".repeat(4000) + " FROM t",
        "SELECT * FROM t WHERE a IN [".to_owned() + &"?,".repeat(4000) + "?]",
        "UPDATE t SET a=1".to_owned() + &",a=1".repeat(2000) + " WHERE p = 1",
        "x".repeat(8193),
    ];
    for text in texts {
        let _ = parse(&text);
    }
}

const PIECES: [&str; 64] = [
    "SELECT ",
    "* ",
    "FROM ",
    "t ",
    "\"t\".\"i\" ",
    "WHERE ",
    "a ",
    "a.b[0] ",
    "= ",
    "<> ",
    "< ",
    "AND ",
    "OR ",
    "NOT ",
    "IN ",
    "BETWEEN ",
    "IS ",
    "MISSING ",
    "NULL ",
    "STRING ",
    "( ",
    ") ",
    "[",
    "] ",
    "{",
    "} ",
    "<<",
    ">> ",
    "'x' ",
    ": ",
    ", ",
    "1 ",
    "-",
    "+ ",
    ".5e3 ",
    "? ",
    "true ",
    "size(",
    "contains(",
    "begins_with(",
    "attribute_type(",
    "attribute_exists(",
    "list_append(",
    "set_add(",
    "set_delete(",
    "if_not_exists(",
    "INSERT INTO t VALUE ",
    "UPDATE t SET ",
    "SET ",
    "REMOVE ",
    "DELETE FROM t ",
    "RETURNING ",
    "ALL ",
    "MODIFIED ",
    "OLD ",
    "NEW ",
    "ORDER BY ",
    "DESC ",
    "EXISTS(",
    "; ",
    "-- x\n",
    "/* */",
    "\"c d\"",
    "'",
];

proptest! {
    #[test]
    fn any_pieces_are_parsed_or_rejected(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40),
    ) {
        let text = pieces.concat();
        if let Ok(statement) = parse(&text) {
            let values = vec![AttributeValue::L(vec![]); statement.parameters];
            let parameters = Parameters::check(&statement, &values).unwrap();
            if let StatementKind::Select(select) = &statement.kind
                && let Some(test) = &select.condition
                && let Ok(predicate) = test.bind(parameters)
            {
                let condition = predicate.lower();
                condition.evaluate(Some(item().as_item()));
                condition.evaluate(None);
            }
        }
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC{0,60}") {
        let _ = parse(&text);
    }
}
