//! Binds statements to their parameters, and reports faults that only a parameter's type reveals.

use std::sync::Arc;

use zenobe_value::{AttributeType, AttributeValue, Attributes, EncodedValue};

use super::fault::{Position, StatementFault};
use super::predicate::{Predicate, PredicateOperand};
use super::statement::{
    Assignment, AssignmentOperand, AssignmentValue, InsertStatement, InsertedItem, SelectStatement,
    Statement, Term, Test, TestOperand, TypeTest, UpdateStatement,
};
use crate::error::OperandType;
use crate::evaluate::size_of;
use crate::projection::Projection;
use crate::update::{Action, SetOperand, SetValue};

/// The values of a request's parameters, at least as many as the statement uses.
#[derive(Debug, Clone, Copy)]
pub struct Parameters<'p>(&'p [AttributeValue]);

impl<'p> Parameters<'p> {
    /// Surplus values are accepted.
    pub fn check(
        statement: &Statement,
        values: &'p [AttributeValue],
    ) -> Result<Parameters<'p>, StatementFault> {
        match values.len() >= statement.parameters {
            true => Ok(Parameters(values)),
            false => Err(StatementFault::ParameterCount),
        }
    }

    fn term(self, term: &'p Term) -> &'p AttributeValue {
        match term {
            Term::Literal(value) => value,
            Term::Parameter(number) => &self.0[*number],
        }
    }

    fn shared(self, term: &Term) -> Arc<AttributeValue> {
        match term {
            Term::Literal(value) => Arc::clone(value),
            Term::Parameter(number) => Arc::new(self.0[*number].clone()),
        }
    }
}

impl SelectStatement {
    pub fn projection(&self) -> Option<Projection> {
        let columns = self.columns.as_ref()?;
        let columns = columns.iter().map(|column| (column.name.clone(), column.path.clone()));
        Some(Projection::columns(columns.collect()))
    }
}

impl InsertStatement {
    pub fn item(&self, parameters: Parameters<'_>) -> Result<Attributes, StatementFault> {
        let fields = match &self.item {
            InsertedItem::Fields(fields) => fields,
            InsertedItem::Parameter(number) => {
                return match &parameters.0[*number] {
                    AttributeValue::M(item) => Ok(item.clone()),
                    other => Err(StatementFault::ItemNotMap { actual: other.attribute_type() }),
                };
            }
        };
        let fields = fields.iter();
        Ok(fields.map(|(name, term)| (name.clone(), parameters.term(term).clone())).collect())
    }
}

// ---- conditions ---------------------------------------------------------------------------------

impl Test {
    pub fn bind<'s>(&'s self, parameters: Parameters<'s>) -> Result<Predicate<'s>, StatementFault> {
        Ok(match self {
            Test::And(tests) => Predicate::And(bind_all(tests, parameters)?),
            Test::Or(tests) => Predicate::Or(bind_all(tests, parameters)?),
            Test::Not(test) => Predicate::Not(Box::new(test.bind(parameters)?)),
            Test::Compare { left, comparator, right } => {
                let (left, right) = (left.bind(parameters)?, right.bind(parameters)?);
                if comparator.is_ordering() {
                    check_types(comparator.symbol(), [&left, &right], AttributeType::is_key_type)?;
                }
                Predicate::Compare { left, comparator: *comparator, right }
            }
            Test::Between { operand, low, high, written } => {
                let operand = operand.bind(parameters)?;
                let (low, high) = (low.bind(parameters)?, high.bind(parameters)?);
                check_types(written, [&operand, &low, &high], AttributeType::is_key_type)?;
                Predicate::Between { operand, low, high }
            }
            Test::In { operand, list } => {
                let operand = operand.bind(parameters)?;
                let list = list.iter().map(|listed| listed.bind(parameters));
                Predicate::In { operand, list: list.collect::<Result<_, _>>()? }
            }
            Test::InParameter { operand, parameter } => {
                let list = listed(&parameters.0[*parameter])?;
                Predicate::In { operand: operand.bind(parameters)?, list }
            }
            Test::Is { operand, test } => type_test(&operand.bind(parameters)?, *test)?,
            Test::Exists(path) => Predicate::Exists(path),
            Test::NotExists(path) => Predicate::NotExists(path),
            Test::AttributeType { operand, name } => {
                let name = name.bind(parameters)?;
                attribute_type_test(&operand.bind(parameters)?, &name)?
            }
            Test::BeginsWith { operand, prefix } => {
                let (operand, prefix) = (operand.bind(parameters)?, prefix.bind(parameters)?);
                let is_text = |known| matches!(known, AttributeType::S | AttributeType::B);
                check_types("begins_with", [&operand, &prefix], is_text)?;
                Predicate::BeginsWith { operand, prefix }
            }
            Test::Contains { container, element } => Predicate::Contains {
                container: container.bind(parameters)?,
                element: element.bind(parameters)?,
            },
            Test::Value(operand) => truth(operand.bind(parameters)?)?,
        })
    }
}

fn bind_all<'s>(
    tests: &'s [Test],
    parameters: Parameters<'s>,
) -> Result<Vec<Predicate<'s>>, StatementFault> {
    tests.iter().map(|test| test.bind(parameters)).collect()
}

impl TestOperand {
    fn bind<'s>(
        &'s self,
        parameters: Parameters<'s>,
    ) -> Result<PredicateOperand<'s>, StatementFault> {
        Ok(match self {
            TestOperand::Path(path) => PredicateOperand::Path(path),
            TestOperand::Term(term) => PredicateOperand::Value(parameters.term(term)),
            TestOperand::Size(operand) => size(&operand.bind(parameters)?)?,
            TestOperand::Test(test) => PredicateOperand::Test(Box::new(test.bind(parameters)?)),
        })
    }
}

/// The size of a literal is known now.
fn size<'s>(operand: &PredicateOperand<'s>) -> Result<PredicateOperand<'s>, StatementFault> {
    let has_size =
        |known| !matches!(known, AttributeType::N | AttributeType::Bool | AttributeType::Null);
    check_types("size", [operand], has_size)?;
    if let PredicateOperand::Path(path) = operand {
        return Ok(PredicateOperand::Size(path));
    }
    let literal = operand.value().map(EncodedValue::encode);
    let size = literal.and_then(|literal| size_of(literal.as_value()));
    size.map(PredicateOperand::number).ok_or(StatementFault::PathRequired { operator: "size" })
}

/// The members of a collection that is a parameter of IN.
fn listed(collection: &AttributeValue) -> Result<Vec<PredicateOperand<'_>>, StatementFault> {
    let computed = |value: AttributeValue| PredicateOperand::Computed(Box::new(value));
    let list: Vec<PredicateOperand<'_>> = match collection {
        AttributeValue::L(elements) => elements.iter().map(PredicateOperand::Value).collect(),
        AttributeValue::Ss(members) => {
            members.iter().map(|member| computed(AttributeValue::S(member.clone()))).collect()
        }
        AttributeValue::Ns(members) => {
            members.iter().map(|member| computed(AttributeValue::N(*member))).collect()
        }
        AttributeValue::Bs(members) => {
            members.iter().map(|member| computed(AttributeValue::B(member.clone()))).collect()
        }
        other => return Err(operand_type("IN", other.attribute_type())),
    };
    StatementFault::check_listed(list.len())?;
    Ok(list)
}

fn type_test<'s>(
    operand: &PredicateOperand<'s>,
    test: TypeTest,
) -> Result<Predicate<'s>, StatementFault> {
    if let PredicateOperand::Path(path) = operand {
        return Ok(match test {
            TypeTest::Missing => Predicate::NotExists(path),
            TypeTest::Present => Predicate::Exists(path),
            TypeTest::OneOf(types) => Predicate::Type { path, types },
        });
    }
    // Whether a size is missing depends on the item.
    let known = operand.known_type().filter(|_| !matches!(operand, PredicateOperand::Size(_)));
    let Some(known) = known else {
        return Err(StatementFault::UnsupportedOperation { operation: "IsType" });
    };
    Ok(Predicate::Constant(match test {
        TypeTest::Missing => false,
        TypeTest::Present => true,
        TypeTest::OneOf(types) => types.contains(&known),
    }))
}

fn attribute_type_test<'s>(
    operand: &PredicateOperand<'s>,
    name: &PredicateOperand<'s>,
) -> Result<Predicate<'s>, StatementFault> {
    const OPERATOR: &str = "attribute_type";
    let Some(AttributeValue::S(name)) = name.value() else {
        let operand_type = name.known_type().map_or(OperandType::Any, OperandType::Known);
        return Err(StatementFault::OperandType { operator: OPERATOR.to_owned(), operand_type });
    };
    let Some(attribute_type) = AttributeType::from_name(name) else {
        return Err(StatementFault::InvalidAttributeTypeName { name: name.clone() });
    };
    match operand {
        PredicateOperand::Path(path) => {
            Ok(Predicate::Type { path, types: one_type(attribute_type) })
        }
        PredicateOperand::Size(_) => Err(StatementFault::PathRequired { operator: OPERATOR }),
        known => Ok(Predicate::Constant(known.known_type() == Some(attribute_type))),
    }
}

fn one_type(attribute_type: AttributeType) -> &'static [AttributeType] {
    let position = AttributeType::ALL.iter().position(|known| *known == attribute_type);
    let position = position.expect("all types are listed");
    &AttributeType::ALL[position..=position]
}

/// A value in the place of a condition.
fn truth(operand: PredicateOperand<'_>) -> Result<Predicate<'_>, StatementFault> {
    static TRUE: AttributeValue = AttributeValue::Bool(true);
    match operand {
        PredicateOperand::Path(_) => Ok(Predicate::Compare {
            left: operand,
            comparator: crate::condition::Comparator::Equal,
            right: PredicateOperand::Value(&TRUE),
        }),
        PredicateOperand::Value(AttributeValue::Bool(flag)) => Ok(Predicate::Constant(*flag)),
        PredicateOperand::Test(predicate) => Ok(*predicate),
        _ => Err(StatementFault::UnsupportedOperation { operation: "Lit" }),
    }
}

fn check_types<const COUNT: usize>(
    operator: &str,
    operands: [&PredicateOperand<'_>; COUNT],
    allowed: impl Fn(AttributeType) -> bool,
) -> Result<(), StatementFault> {
    let mut known_types = operands.into_iter().filter_map(PredicateOperand::known_type);
    match known_types.find(|known| !allowed(*known)) {
        None => Ok(()),
        Some(wrong) => Err(operand_type(operator, wrong)),
    }
}

fn operand_type(operator: &str, wrong: AttributeType) -> StatementFault {
    let operand_type = OperandType::Known(wrong);
    StatementFault::OperandType { operator: operator.to_owned(), operand_type }
}

// ---- assignments --------------------------------------------------------------------------------

impl UpdateStatement {
    /// What SET and REMOVE do to an item.
    pub fn bind(&self, parameters: Parameters<'_>) -> Result<crate::Update, StatementFault> {
        let actions = self.assignments.iter().map(|assignment| assignment.bind(parameters));
        Ok(crate::Update { actions: actions.collect::<Result<_, _>>()? })
    }
}

impl Assignment {
    fn bind(&self, parameters: Parameters<'_>) -> Result<Action, StatementFault> {
        Ok(match self {
            Assignment::Set { path, value } => {
                Action::Set { path: path.clone(), value: value.bind(parameters)? }
            }
            Assignment::Remove { path } => Action::Remove { path: path.clone() },
            Assignment::AddToSet { path, members, argument } => Action::Add {
                path: path.clone(),
                value: set_members("SET_ADD", members, *argument, parameters)?,
            },
            Assignment::DeleteFromSet { path, members, argument } => Action::Delete {
                path: path.clone(),
                value: set_members("SET_DELETE", members, *argument, parameters)?,
            },
        })
    }
}

fn set_members(
    function: &'static str,
    members: &Term,
    position: Position,
    parameters: Parameters<'_>,
) -> Result<Arc<AttributeValue>, StatementFault> {
    let members = parameters.shared(members);
    match members.attribute_type().is_set() {
        true => Ok(members),
        false => Err(StatementFault::SetArgumentType { function, position }),
    }
}

impl AssignmentValue {
    fn bind(&self, parameters: Parameters<'_>) -> Result<SetValue, StatementFault> {
        let both = |operator, left: &AssignmentOperand, right: &AssignmentOperand| {
            let operand = |operand: &AssignmentOperand| {
                let operand = operand.bind(parameters)?;
                check_literal(operator, &operand, AttributeType::N)?;
                Ok(operand)
            };
            Ok((operand(left)?, operand(right)?))
        };
        match self {
            AssignmentValue::Operand(operand) => operand.bind(parameters).map(SetValue::Operand),
            AssignmentValue::Add(left, right) => {
                both("+", left, right).map(|(left, right)| SetValue::Add(left, right))
            }
            AssignmentValue::Subtract(left, right) => {
                both("-", left, right).map(|(left, right)| SetValue::Subtract(left, right))
            }
        }
    }
}

impl AssignmentOperand {
    fn bind(&self, parameters: Parameters<'_>) -> Result<SetOperand, StatementFault> {
        Ok(match self {
            AssignmentOperand::Path(path) => SetOperand::Path(path.clone()),
            AssignmentOperand::Term(term) => SetOperand::Literal(parameters.shared(term)),
            AssignmentOperand::ListAppend(front, back) => {
                let (front, back) = (front.bind(parameters)?, back.bind(parameters)?);
                check_literal("list_append", &front, AttributeType::L)?;
                check_literal("list_append", &back, AttributeType::L)?;
                SetOperand::ListAppend(Box::new(front), Box::new(back))
            }
            AssignmentOperand::IfNotExists(path, default) => {
                let default = Box::new(default.bind(parameters)?);
                SetOperand::IfNotExists { path: path.clone(), default }
            }
        })
    }
}

fn check_literal(
    operator: &str,
    operand: &SetOperand,
    expected: AttributeType,
) -> Result<(), StatementFault> {
    match operand {
        SetOperand::Literal(value) if value.attribute_type() != expected => {
            Err(operand_type(operator, value.attribute_type()))
        }
        _ => Ok(()),
    }
}
