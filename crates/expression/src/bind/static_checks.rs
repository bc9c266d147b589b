//! Faults that show in the text alone. Each class outranks the next across the whole expression,
//! wherever the faults are; within a class the first in the text is reported.

use crate::bind::list_index;
use crate::error::ExpressionFault;
use crate::limits;
use crate::operator::{Operator, Section};
use crate::parser::Parsed;
use crate::reserved_words::is_reserved_word;
use crate::syntax::{
    RawAction, RawActionValue, RawCall, RawElement, RawLeaf, RawName, RawOperand, RawPath,
    RawUpdate, Tree,
};

pub(super) fn check_condition(
    text: &str,
    parsed: &Parsed<Tree<RawLeaf>>,
) -> Result<(), ExpressionFault> {
    check_parsed(parsed)?;
    let mut faults = Faults::new(text, Operator::condition_function);
    parsed.syntax.try_for_each(&mut |leaf| {
        faults.leaf(leaf);
        Ok(())
    })?;
    first([faults.unknown_function, faults.misused_function, faults.reserved_word, faults.shape])
}

pub(super) fn check_update(text: &str, parsed: &Parsed<RawUpdate>) -> Result<(), ExpressionFault> {
    check_parsed(parsed)?;
    let mut faults = Faults::new(text, Operator::update_function);
    parsed.syntax.actions.iter().for_each(|action| faults.action(action));
    let repeated = repeated_section(&parsed.syntax.sections);
    first([
        faults.reserved_word,
        faults.unknown_function,
        faults.misused_function,
        repeated,
        faults.shape,
    ])
}

pub(super) fn check_paths(text: &str, paths: &[RawPath]) -> Result<(), ExpressionFault> {
    let mut faults = Faults::new(text, |_| None);
    paths.iter().for_each(|path| faults.path(path));
    first([faults.reserved_word, faults.shape])
}

/// The first fault of each class.
struct Faults<'t> {
    text: &'t str,
    function_named: fn(&str) -> Option<Operator>,
    unknown_function: Option<ExpressionFault>,
    misused_function: Option<ExpressionFault>,
    reserved_word: Option<ExpressionFault>,
    /// A path that is too deep or an index that is too large.
    shape: Option<ExpressionFault>,
}

impl<'t> Faults<'t> {
    fn new(text: &'t str, function_named: fn(&str) -> Option<Operator>) -> Faults<'t> {
        Faults {
            text,
            function_named,
            unknown_function: None,
            misused_function: None,
            reserved_word: None,
            shape: None,
        }
    }

    fn leaf(&mut self, leaf: &RawLeaf) {
        self.condition_operands(leaf.operands());
        if let RawLeaf::Call(call) = leaf {
            let function = self.function(call);
            if function == Some(Operator::Size) {
                self.misuse(Operator::Size);
            }
        }
    }

    /// `size` is the only function allowed among operands.
    fn condition_operands(&mut self, operands: &[RawOperand]) {
        for operand in operands {
            match operand {
                RawOperand::Path(path) => self.path(path),
                RawOperand::Value(_) => {}
                RawOperand::Call(call) => {
                    self.condition_operands(&call.arguments);
                    match self.function(call) {
                        None | Some(Operator::Size) => {}
                        Some(function) => self.misuse(function),
                    }
                }
            }
        }
    }

    fn action(&mut self, action: &RawAction) {
        self.path(&action.path);
        match &action.value {
            RawActionValue::None | RawActionValue::Value(_) => {}
            RawActionValue::Operand(operand) => self.update_operand(operand),
            RawActionValue::Arithmetic { left, right, .. } => {
                self.update_operand(left);
                self.update_operand(right);
            }
        }
    }

    fn update_operand(&mut self, operand: &RawOperand) {
        match operand {
            RawOperand::Path(path) => self.path(path),
            RawOperand::Value(_) => {}
            RawOperand::Call(call) => {
                call.arguments.iter().for_each(|argument| self.update_operand(argument));
                if self.function(call) == Some(Operator::ListAppend) {
                    self.no_list_append(&call.arguments);
                }
            }
        }
    }

    /// The arguments of `list_append` may not include another `list_append`; `if_not_exists` is
    /// fine.
    fn no_list_append(&mut self, arguments: &[RawOperand]) {
        for argument in arguments {
            if let RawOperand::Call(call) = argument
                && Operator::update_function(call.function.of(self.text))
                    == Some(Operator::ListAppend)
            {
                self.misuse(Operator::ListAppend);
            }
        }
    }

    fn function(&mut self, call: &RawCall) -> Option<Operator> {
        let name = call.function.of(self.text);
        let function = (self.function_named)(name);
        match (function, Operator::update_function(name)) {
            (Some(_), _) => {}
            // An update function in a condition.
            (None, Some(function)) => self.misuse(function),
            (None, None) => {
                let function = name.to_owned();
                self.unknown_function
                    .get_or_insert(ExpressionFault::InvalidFunctionName { function });
            }
        }
        function
    }

    fn misuse(&mut self, function: Operator) {
        self.misused_function.get_or_insert(ExpressionFault::FunctionNotAllowed { function });
    }

    fn path(&mut self, path: &RawPath) {
        for name in path.names() {
            if let RawName::Word(word) = name
                && is_reserved_word(word.of(self.text))
            {
                let word = word.of(self.text).to_owned();
                self.reserved_word.get_or_insert(ExpressionFault::ReservedWord { word });
            }
        }
        for element in &path.below {
            if let RawElement::Index(digits) = element
                && let Err(fault) = list_index(digits.of(self.text))
            {
                self.shape.get_or_insert(fault);
            }
        }
        let levels = 1 + path.below.len();
        if levels > limits::PATH_ELEMENTS_MAX {
            self.shape.get_or_insert(ExpressionFault::PathTooDeep { levels });
        }
    }
}

/// Reports what the parser noticed. It ranks this high because everything after it walks the syntax
/// recursively, and the limit on operators bounds that depth.
fn check_parsed<Syntax>(parsed: &Parsed<Syntax>) -> Result<(), ExpressionFault> {
    if parsed.redundant_parentheses {
        return Err(ExpressionFault::RedundantParentheses);
    }
    if parsed.operators > limits::OPERATORS_MAX {
        return Err(ExpressionFault::TooManyOperators);
    }
    Ok(())
}

fn repeated_section(sections: &[Section]) -> Option<ExpressionFault> {
    let is_repeated = |position: &usize| sections[..*position].contains(&sections[*position]);
    let repeated = (1..sections.len()).find(is_repeated);
    repeated.map(|position| ExpressionFault::RepeatedSection { section: sections[position] })
}

fn first<const CLASSES: usize>(
    classes: [Option<ExpressionFault>; CLASSES],
) -> Result<(), ExpressionFault> {
    classes.into_iter().flatten().next().map_or(Ok(()), Err)
}
