//! The grammar of conditions, filters and key conditions.

use super::{Grammar, Parsed, Parser};
use crate::error::ExpressionFault;
use crate::lexer::TokenKind;
use crate::operator::Operator;
use crate::syntax::{RawLeaf, RawOperand, Tree};

pub(crate) type RawCondition = Tree<RawLeaf>;

pub(crate) fn parse_condition(text: &str) -> Result<Parsed<RawCondition>, ExpressionFault> {
    let mut parser = Parser::new(text, Grammar::Condition)?;
    let condition = parser.condition()?;
    parser.finish(condition)
}

/// What the parser has read before the current term inside one pair of parentheses (or outside all
/// of them).
#[derive(Default)]
struct Level {
    alternatives: Vec<RawCondition>,
    conjuncts: Vec<RawCondition>,
    negations: usize,
}

/// A term between AND, OR and parentheses. Until a comparator follows, `(a)` could be an operand or
/// a condition. A function call can be both; which one is legal is not a question of syntax.
enum ConditionTerm {
    Operand(RawOperand),
    Condition(RawCondition),
}

impl<'t> Parser<'t> {
    /// Keeps an explicit stack instead of recursing, so no text can exhaust the thread's.
    fn condition(&mut self) -> Result<RawCondition, ExpressionFault> {
        let mut outer: Vec<Level> = Vec::new();
        let mut level = Level::default();
        loop {
            level.negations = self.negations();
            if self.accept(TokenKind::OpenParenthesis) {
                outer.push(std::mem::take(&mut level));
                continue;
            }
            let operand = self.operand()?;
            let term = self.after_operand(operand)?;
            let term = self.close_parentheses(term, &mut level, &mut outer)?;
            let Some(condition) = self.continue_level(term, &mut level)? else { continue };
            if !outer.is_empty() {
                return Err(self.syntax_error());
            }
            return Ok(level.finish(condition));
        }
    }

    fn negations(&mut self) -> usize {
        let mut negations = 0;
        while self.accept_keyword("NOT") {
            self.count_operator();
            negations += 1;
        }
        negations
    }

    /// Leaves one level for each parenthesis that closes after a term.
    fn close_parentheses(
        &mut self,
        mut term: ConditionTerm,
        level: &mut Level,
        outer: &mut Vec<Level>,
    ) -> Result<ConditionTerm, ExpressionFault> {
        let mut closed_just_now = false;
        while self.peek() == TokenKind::CloseParenthesis {
            let Some(enclosing) = outer.pop() else { break };
            let inner = std::mem::replace(level, enclosing);
            let grouped = inner.is_plain();
            if !grouped {
                term = ConditionTerm::Condition(inner.finish(self.as_condition(term)?));
            }
            self.position += 1;
            self.redundant_parentheses |= grouped && closed_just_now;
            closed_just_now = true;
            if let ConditionTerm::Operand(mut operand) = term {
                closed_just_now = !self.extend_grouped_path(&mut operand)?;
                term = self.after_operand(operand)?;
                closed_just_now &= matches!(term, ConditionTerm::Operand(_));
            }
        }
        Ok(term)
    }

    /// Returns `None` if AND or OR announces another term. Otherwise this term ends the level.
    fn continue_level(
        &mut self,
        term: ConditionTerm,
        level: &mut Level,
    ) -> Result<Option<RawCondition>, ExpressionFault> {
        let condition = self.as_condition(term)?;
        if self.accept_keyword("AND") {
            self.count_operator();
            level.add_conjunct(condition);
            return Ok(None);
        }
        if self.accept_keyword("OR") {
            self.count_operator();
            level.add_alternative(condition);
            return Ok(None);
        }
        Ok(Some(condition))
    }

    /// Only a function call can be a condition without a comparator.
    fn as_condition(&self, term: ConditionTerm) -> Result<RawCondition, ExpressionFault> {
        match term {
            ConditionTerm::Condition(condition) => Ok(condition),
            ConditionTerm::Operand(RawOperand::Call(call)) => Ok(Tree::Leaf(RawLeaf::Call(call))),
            ConditionTerm::Operand(_) => Err(self.syntax_error()),
        }
    }

    /// A comparator, BETWEEN or IN turns an operand into a condition.
    fn after_operand(&mut self, operand: RawOperand) -> Result<ConditionTerm, ExpressionFault> {
        let (operator, operands) = if let TokenKind::Comparator(comparator) = self.peek() {
            self.position += 1;
            (Operator::Compare(comparator), vec![operand, self.operand()?])
        } else if self.accept_keyword("BETWEEN") {
            let low = self.operand()?;
            if !self.accept_keyword("AND") {
                return Err(self.syntax_error());
            }
            (Operator::Between, vec![operand, low, self.operand()?])
        } else if self.accept_keyword("IN") {
            (Operator::In, self.in_operands(operand)?)
        } else {
            return Ok(ConditionTerm::Operand(operand));
        };
        self.count_operator();
        Ok(ConditionTerm::Condition(Tree::Leaf(RawLeaf::Operation { operator, operands })))
    }

    fn in_operands(&mut self, tested: RawOperand) -> Result<Vec<RawOperand>, ExpressionFault> {
        self.expect(TokenKind::OpenParenthesis)?;
        let mut operands = vec![tested];
        self.comma_separated(&mut operands, Parser::operand)?;
        self.expect(TokenKind::CloseParenthesis)?;
        Ok(operands)
    }
}

impl Level {
    /// Whether the parentheses hold nothing but the current term.
    fn is_plain(&self) -> bool {
        self.alternatives.is_empty() && self.conjuncts.is_empty() && self.negations == 0
    }

    fn add_conjunct(&mut self, condition: RawCondition) {
        let condition = self.negate(condition);
        self.conjuncts.push(condition);
    }

    fn add_alternative(&mut self, condition: RawCondition) {
        let condition = self.conjunction(condition);
        self.alternatives.push(condition);
    }

    fn finish(mut self, last: RawCondition) -> RawCondition {
        let last = self.conjunction(last);
        if self.alternatives.is_empty() {
            return last;
        }
        self.alternatives.push(last);
        Tree::Or(self.alternatives)
    }

    fn conjunction(&mut self, last: RawCondition) -> RawCondition {
        let last = self.negate(last);
        if self.conjuncts.is_empty() {
            return last;
        }
        let mut conjuncts = std::mem::take(&mut self.conjuncts);
        conjuncts.push(last);
        Tree::And(conjuncts)
    }

    /// Two negations cancel out, but the tree still shows that there was a NOT, because key
    /// conditions reject any.
    fn negate(&mut self, condition: RawCondition) -> RawCondition {
        let negated = |condition| Tree::Not(Box::new(condition));
        match std::mem::take(&mut self.negations) {
            0 => condition,
            odd if odd % 2 == 1 => negated(condition),
            _ => negated(negated(condition)),
        }
    }
}
