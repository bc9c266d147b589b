//! The statements and their clauses.

use super::StatementParser;
use super::expression::{Expression, Node};
use crate::partiql::fault::{Position, StatementFault, Unsupported};
use crate::partiql::lexer::{StatementTokenKind, unquoted};
use crate::partiql::statement::{
    Column, DeleteStatement, Image, InsertStatement, InsertedItem, OrderKey, Returning,
    SelectStatement, StatementKind, TableReference, Term, Test, UpdateStatement,
};
use crate::syntax::Span;
use zenobe_value::{Path, PathElement};

impl StatementParser<'_> {
    pub(super) fn statement(&mut self) -> Result<StatementKind, StatementFault> {
        if self.accept_word("SELECT") {
            return self.select().map(StatementKind::Select);
        }
        if self.accept_word("INSERT") {
            return self.insert().map(StatementKind::Insert);
        }
        if self.accept_word("UPDATE") {
            return self.update().map(StatementKind::Update);
        }
        if self.accept_word("DELETE") {
            return self.delete().map(StatementKind::Delete);
        }
        if self.accept_word("FROM") {
            return self.update_from_first().map(StatementKind::Update);
        }
        if self.at_word("EXISTS") && self.peek_second() == StatementTokenKind::OpenParenthesis {
            return self.exists();
        }
        Err(self.no_statement())
    }

    /// The fault of a text that is not a statement. A type test gets a fault of its own.
    fn no_statement(&mut self) -> StatementFault {
        let expression = match self.peek() {
            StatementTokenKind::Name | StatementTokenKind::QuotedName => self.expression(),
            _ => return StatementFault::ExpectedStatement,
        };
        match expression {
            Err(fault @ StatementFault::ExpectedTypeName) => fault,
            Ok(Expression { node: Node::Is { .. }, .. }) => match self.finish() {
                Ok(()) => StatementFault::UnsupportedOperation { operation: "IsType" },
                Err(fault) => fault,
            },
            _ => StatementFault::ExpectedStatement,
        }
    }

    fn exists(&mut self) -> Result<StatementKind, StatementFault> {
        let function = self.advance();
        self.advance();
        if !self.accept_word("SELECT") {
            let position = self.place(function);
            return Err(StatementFault::UnknownFunction { function: "exists".into(), position });
        }
        let select = self.select()?;
        self.expect(StatementTokenKind::CloseParenthesis, "RIGHT_PAREN")?;
        Ok(StatementKind::Exists(select))
    }

    // ---- SELECT ---------------------------------------------------------------------------------

    fn select(&mut self) -> Result<SelectStatement, StatementFault> {
        let mut function_column = None;
        let columns = match self.accept(StatementTokenKind::Star) {
            true => None,
            false => Some(self.columns(&mut function_column)?),
        };
        if !self.accept_word("FROM") {
            return Err(StatementFault::ExpectedFrom);
        }
        let source = self.select_source()?;
        self.refuse_alias();
        let condition = self.condition()?;
        let order = self.order()?;
        if condition.is_none() && !order.is_empty() {
            self.keep(StatementFault::OrderWithoutCondition);
        }
        if source.index.is_none()
            && let Some(position) = function_column
        {
            self.keep_first(StatementFault::UnexpectedPathComponent { position });
        }
        Ok(SelectStatement { columns, source, condition, order, function_column })
    }

    fn columns(
        &mut self,
        function_column: &mut Option<Position>,
    ) -> Result<Vec<Column>, StatementFault> {
        let mut columns = Vec::new();
        loop {
            let expression = self.expression()?;
            match expression.node {
                Node::Path(path) => columns.push(Column { name: column_name(&path), path }),
                Node::Call { .. } => {
                    function_column.get_or_insert(self.place(expression.span));
                }
                _ => self.unexpected_component(expression.span),
            }
            if self.accept_word("AS") || matches!(self.peek(), StatementTokenKind::Name) {
                self.advance();
                self.keep(StatementFault::Aliasing);
            }
            if !self.accept(StatementTokenKind::Comma) {
                return Ok(columns);
            }
        }
    }

    fn select_source(&mut self) -> Result<TableReference, StatementFault> {
        let span = self.span();
        match self.peek() {
            StatementTokenKind::Name | StatementTokenKind::QuotedName => {
                self.source().map(|(source, _)| source)
            }
            StatementTokenKind::Text => {
                self.advance();
                self.unexpected_component(span);
                Ok(TableReference { table: unquoted(self.text_of(span)), index: None })
            }
            _ => Err(self.unexpected()),
        }
    }

    /// The name of a table, optionally with an index after a dot, and its position.
    fn source(&mut self) -> Result<(TableReference, Span), StatementFault> {
        let span = self.span();
        let table = self.accept_name().ok_or(StatementFault::ExpectedTableName)?;
        let mut components = Vec::new();
        while self.accept(StatementTokenKind::Dot) {
            components.push(self.accept_name().ok_or(StatementFault::InvalidDotComponent)?);
        }
        if components.len() > 1 {
            self.keep(StatementFault::TooManySourceComponents);
        }
        let source = TableReference { table, index: components.into_iter().next() };
        if source.table.is_empty() || source.index.as_ref().is_some_and(String::is_empty) {
            self.keep(StatementFault::EmptySourceComponent);
        }
        Ok((source, span))
    }

    /// A name in place of a clause is an alias.
    fn refuse_alias(&mut self) {
        if self.at_word("RETURNING") {
            return;
        }
        if self.accept_word("AS")
            || matches!(self.peek(), StatementTokenKind::Name | StatementTokenKind::QuotedName)
        {
            self.accept_name();
            self.keep(StatementFault::Aliasing);
        }
    }

    fn condition(&mut self) -> Result<Option<Test>, StatementFault> {
        if !self.accept_word("WHERE") {
            return Ok(None);
        }
        let expression = self.expression()?;
        Ok(Some(self.test(expression)))
    }

    fn order(&mut self) -> Result<Vec<OrderKey>, StatementFault> {
        let mut keys = Vec::new();
        if !self.accept_word("ORDER") {
            return Ok(keys);
        }
        self.expect_word("BY")?;
        loop {
            let root = match self.accept_name() {
                Some(root) => root,
                None => return Err(self.unexpected()),
            };
            let path = self.path_below(root)?;
            let descending = self.accept_word("DESC");
            if !descending {
                self.accept_word("ASC");
            }
            keys.push(OrderKey { path, descending });
            if !self.accept(StatementTokenKind::Comma) {
                return Ok(keys);
            }
        }
    }

    // ---- INSERT ---------------------------------------------------------------------------------

    fn insert(&mut self) -> Result<InsertStatement, StatementFault> {
        self.expect_word("INTO")?;
        let (source, span) = self.source()?;
        if source.index.is_some() {
            let position = self.place(span);
            self.keep(StatementFault::IndexInInsert { position });
        }
        if !self.accept_word("VALUE") {
            return Err(match self.peek() {
                StatementTokenKind::End | StatementTokenKind::Semicolon => {
                    StatementFault::UnexpectedTerm
                }
                _ => StatementFault::UnexpectedToken,
            });
        }
        let value = self.expression()?;
        let item = self.inserted_item(value);
        Ok(InsertStatement { table: source.table, item })
    }

    fn inserted_item(&mut self, value: Expression) -> InsertedItem {
        let span = value.span;
        let what = match value.node {
            Node::Parameter(parameter) => return InsertedItem::Parameter(parameter),
            Node::Map(fields) => {
                let field = |(name, value): (String, Expression)| {
                    self.check_name(&name);
                    match value.node {
                        Node::Parameter(parameter) => (name, Term::Parameter(parameter)),
                        _ => (name, Term::Literal(self.literal(value))),
                    }
                };
                return InsertedItem::Fields(fields.into_iter().map(field).collect());
            }
            Node::Path(_) => Unsupported::Path,
            Node::Call { .. } => Unsupported::Function(self.text_of(span).to_ascii_lowercase()),
            Node::Text(_) | Node::Number { .. } | Node::Bool(_) | Node::Null => Unsupported::Scalar,
            Node::List(_) | Node::Bag(_) => Unsupported::Collection,
            _ => Unsupported::Operator,
        };
        self.unsupported_root(what, span);
        InsertedItem::Fields(Vec::new())
    }

    // ---- UPDATE and DELETE ----------------------------------------------------------------------

    fn update(&mut self) -> Result<UpdateStatement, StatementFault> {
        let table = self.written_table()?;
        if !self.at_word("SET") && !self.at_word("REMOVE") {
            self.refuse_alias();
        }
        let assignments = self.assignments()?;
        let condition = self.condition()?;
        let returning = self.returning()?.map(|(returning, _)| returning);
        Ok(UpdateStatement { table, assignments, condition, returning })
    }

    /// `FROM table WHERE … SET …`
    fn update_from_first(&mut self) -> Result<UpdateStatement, StatementFault> {
        let table = self.written_table()?;
        self.refuse_alias();
        let condition = self.condition()?;
        let assignments = self.assignments()?;
        let returning = self.returning()?.map(|(returning, _)| returning);
        Ok(UpdateStatement { table, assignments, condition, returning })
    }

    fn delete(&mut self) -> Result<DeleteStatement, StatementFault> {
        self.expect_word("FROM")?;
        let table = self.written_table()?;
        self.refuse_alias();
        let condition = self.condition()?;
        let returning = self.returning()?;
        let returns_old = returning.is_some();
        if let Some((returning, clause)) = returning
            && (returning.modified_only || returning.image != Image::Old)
        {
            self.keep(StatementFault::DeleteReturning { clause });
        }
        Ok(DeleteStatement { table, condition, returns_old })
    }

    fn written_table(&mut self) -> Result<String, StatementFault> {
        let (source, _) = self.source()?;
        if source.index.is_some() {
            self.keep(StatementFault::IndexInWrite);
        }
        Ok(source.table)
    }

    /// What to return, and the clause as written, without its keyword.
    fn returning(&mut self) -> Result<Option<(Returning, String)>, StatementFault> {
        if !self.accept_word("RETURNING") {
            return Ok(None);
        }
        let start = self.span();
        let modified_only = self.accept_word("MODIFIED");
        if !modified_only && !self.accept_word("ALL") {
            return Err(self.unexpected());
        }
        let image = if self.accept_word("OLD") {
            Image::Old
        } else if self.accept_word("NEW") {
            Image::New
        } else {
            return Err(self.unexpected());
        };
        let end = self.expect(StatementTokenKind::Star, "STAR")?;
        let clause = self.text_of(start.to(end)).to_owned();
        Ok(Some((Returning { modified_only, image }, clause)))
    }
}

/// The last name of a path and the indexes after it.
fn column_name(path: &Path) -> String {
    let below = path.below_root();
    let is_name = |element: &PathElement| matches!(element, PathElement::Name(_));
    let (mut name, indexes) = match below.iter().rposition(is_name) {
        Some(last) => match &below[last] {
            PathElement::Name(name) => (name.to_string(), &below[last + 1..]),
            PathElement::Index(_) => unreachable!("a name was found"),
        },
        None => (path.root().to_owned(), below),
    };
    for index in indexes {
        if let PathElement::Index(index) = index {
            name.push_str(&format!("[{index}]"));
        }
    }
    name
}
