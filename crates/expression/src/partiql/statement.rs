//! The content of a statement. Names are resolved and literals are values; parameters are numbered
//! in text order.

use std::sync::Arc;

use zenobe_value::{AttributeType, AttributeValue, Path};

use super::fault::Position;
use crate::condition::Comparator;

#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub kind: StatementKind,
    /// How many parameters it has.
    pub parameters: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StatementKind {
    Select(SelectStatement),
    Insert(InsertStatement),
    Update(UpdateStatement),
    Delete(DeleteStatement),
    /// `EXISTS(SELECT …)`
    Exists(SelectStatement),
}

impl Statement {
    /// The table that the statement reads or writes, as named in its text.
    pub fn table(&self) -> &str {
        match &self.kind {
            StatementKind::Select(select) | StatementKind::Exists(select) => &select.source.table,
            StatementKind::Insert(insert) => &insert.table,
            StatementKind::Update(update) => &update.table,
            StatementKind::Delete(delete) => &delete.table,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SelectStatement {
    /// `None` is `*`.
    pub columns: Option<Vec<Column>>,
    pub source: TableReference,
    pub condition: Option<Test>,
    pub order: Vec<OrderKey>,
    /// The position of a column that is a function. It is rejected like any fault, but a fault of
    /// the table's index outranks it.
    pub function_column: Option<Position>,
}

/// A table, or one of its indexes after a dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReference {
    pub table: String,
    pub index: Option<String>,
}

/// A column is named after the last name of its path and the indexes after it.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub path: Path,
}

#[derive(Debug, Clone, PartialEq)]
pub struct OrderKey {
    pub path: Path,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct InsertStatement {
    pub table: String,
    pub item: InsertedItem,
}

#[derive(Debug, Clone, PartialEq)]
pub enum InsertedItem {
    /// In text order. Of equal names the last one counts.
    Fields(Vec<(String, Term)>),
    /// The number of the parameter that holds the whole item.
    Parameter(usize),
}

#[derive(Debug, Clone, PartialEq)]
pub struct UpdateStatement {
    pub table: String,
    /// In text order. Their targets neither overlap nor conflict.
    pub assignments: Vec<Assignment>,
    pub condition: Option<Test>,
    pub returning: Option<Returning>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DeleteStatement {
    pub table: String,
    pub condition: Option<Test>,
    /// `RETURNING ALL OLD *`, the only form there is.
    pub returns_old: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returning {
    /// Only the attributes that SET and REMOVE name.
    pub modified_only: bool,
    pub image: Image,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    Old,
    New,
}

/// A value from the text or from the request.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    Literal(Arc<AttributeValue>),
    Parameter(usize),
}

// ---- conditions ---------------------------------------------------------------------------------

#[derive(Debug, Clone, PartialEq)]
pub enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
    Compare {
        left: TestOperand,
        comparator: Comparator,
        right: TestOperand,
    },
    Between {
        operand: TestOperand,
        low: TestOperand,
        high: TestOperand,
        /// The operator as written, for messages.
        written: Box<str>,
    },
    In {
        operand: TestOperand,
        list: Vec<TestOperand>,
    },
    /// `IN ?`: the parameter is a list or a set.
    InParameter {
        operand: TestOperand,
        parameter: usize,
    },
    Is {
        operand: TestOperand,
        test: TypeTest,
    },
    Exists(Path),
    NotExists(Path),
    AttributeType {
        operand: TestOperand,
        name: TestOperand,
    },
    BeginsWith {
        operand: TestOperand,
        prefix: TestOperand,
    },
    Contains {
        container: TestOperand,
        element: TestOperand,
    },
    /// A value in place of a condition. It holds if the value is true.
    Value(TestOperand),
}

#[derive(Debug, Clone, PartialEq)]
pub enum TestOperand {
    Path(Path),
    Term(Term),
    Size(Box<TestOperand>),
    /// A condition as a BOOL value.
    Test(Box<Test>),
}

/// What `IS` tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeTest {
    Missing,
    /// One of these types. Empty for a type of SQL that DynamoDB lacks.
    OneOf(&'static [AttributeType]),
    /// Any type.
    Present,
}

// ---- assignments --------------------------------------------------------------------------------

#[derive(Debug, Clone, PartialEq)]
pub enum Assignment {
    Set {
        path: Path,
        value: AssignmentValue,
    },
    Remove {
        path: Path,
    },
    /// `argument` is the position of the function's first argument, which its faults name.
    AddToSet {
        path: Path,
        members: Term,
        argument: Position,
    },
    DeleteFromSet {
        path: Path,
        members: Term,
        argument: Position,
    },
}

impl Assignment {
    pub fn target(&self) -> &Path {
        match self {
            Assignment::Set { path, .. }
            | Assignment::Remove { path }
            | Assignment::AddToSet { path, .. }
            | Assignment::DeleteFromSet { path, .. } => path,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum AssignmentValue {
    Operand(AssignmentOperand),
    Add(AssignmentOperand, AssignmentOperand),
    Subtract(AssignmentOperand, AssignmentOperand),
}

#[derive(Debug, Clone, PartialEq)]
pub enum AssignmentOperand {
    Path(Path),
    Term(Term),
    ListAppend(Box<AssignmentOperand>, Box<AssignmentOperand>),
    IfNotExists(Path, Box<AssignmentOperand>),
}
