//! The parser's output: the structure of the text, with names and placeholders still unresolved.

use crate::operator::{Operator, Section};

/// A piece of the text. The syntax holds no text itself, so it can outlive the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    start: u16,
    end: u16,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Span {
        let bound = |position: usize| u16::try_from(position).expect("expressions are short");
        Span { start: bound(start), end: bound(end) }
    }

    pub fn start(self) -> usize {
        usize::from(self.start)
    }

    /// From the start of this span to the end of another.
    pub fn to(self, last: Span) -> Span {
        Span { start: self.start, end: last.end }
    }

    pub fn of(self, text: &str) -> &str {
        &text[usize::from(self.start)..usize::from(self.end)]
    }
}

/// A boolean tree over leaves, which are text slices after parsing and resolved operands after binding.
#[derive(Debug)]
pub(crate) enum Tree<Leaf> {
    And(Vec<Tree<Leaf>>),
    Or(Vec<Tree<Leaf>>),
    Not(Box<Tree<Leaf>>),
    Leaf(Leaf),
}

#[derive(Debug)]
pub(crate) enum RawLeaf {
    /// A comparison, BETWEEN or IN.
    Operation {
        operator: Operator,
        operands: Vec<RawOperand>,
    },
    Call(RawCall),
}

#[derive(Debug)]
pub(crate) enum RawOperand {
    Path(RawPath),
    /// `:value`, with its prefix.
    Value(Span),
    Call(RawCall),
}

#[derive(Debug)]
pub(crate) struct RawCall {
    pub function: Span,
    pub arguments: Vec<RawOperand>,
}

/// Like a bound path, most have only a root.
#[derive(Debug)]
pub(crate) struct RawPath {
    pub root: RawName,
    pub below: Vec<RawElement>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RawElement {
    Name(RawName),
    /// The digits.
    Index(Span),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RawName {
    Word(Span),
    /// `#name`, with its prefix.
    Placeholder(Span),
}

/// The sections and all their actions, both in the order of the text.
#[derive(Debug)]
pub(crate) struct RawUpdate {
    pub sections: Vec<Section>,
    pub actions: Vec<RawAction>,
}

#[derive(Debug)]
pub(crate) struct RawAction {
    pub section: Section,
    pub path: RawPath,
    pub value: RawActionValue,
}

#[derive(Debug)]
pub(crate) enum RawActionValue {
    /// For REMOVE.
    None,
    /// ADD and DELETE take a `:value`.
    Value(Span),
    Operand(RawOperand),
    Arithmetic {
        operator: Operator,
        left: RawOperand,
        right: RawOperand,
    },
}

impl RawLeaf {
    pub fn operands(&self) -> &[RawOperand] {
        match self {
            RawLeaf::Operation { operands, .. } => operands,
            RawLeaf::Call(call) => &call.arguments,
        }
    }
}

impl RawPath {
    pub fn names(&self) -> impl Iterator<Item = RawName> {
        let below = self.below.iter().filter_map(|element| match element {
            RawElement::Name(name) => Some(*name),
            RawElement::Index(_) => None,
        });
        std::iter::once(self.root).chain(below)
    }
}

impl<Leaf> Tree<Leaf> {
    /// Visits the leaves from left to right and stops at the first error.
    pub fn try_for_each<Error>(
        &self,
        visit: &mut impl FnMut(&Leaf) -> Result<(), Error>,
    ) -> Result<(), Error> {
        match self {
            Tree::And(branches) | Tree::Or(branches) => {
                branches.iter().try_for_each(|branch| branch.try_for_each(visit))
            }
            Tree::Not(branch) => branch.try_for_each(visit),
            Tree::Leaf(leaf) => visit(leaf),
        }
    }

    /// The same tree with other leaves, built from left to right. Stops at the first error.
    pub fn try_map<Mapped, Error>(
        &self,
        map: &mut impl FnMut(&Leaf) -> Result<Mapped, Error>,
    ) -> Result<Tree<Mapped>, Error> {
        Ok(match self {
            Tree::And(branches) => Tree::And(map_branches(branches, map)?),
            Tree::Or(branches) => Tree::Or(map_branches(branches, map)?),
            Tree::Not(branch) => Tree::Not(Box::new(branch.try_map(map)?)),
            Tree::Leaf(leaf) => Tree::Leaf(map(leaf)?),
        })
    }
}

fn map_branches<Leaf, Mapped, Error>(
    branches: &[Tree<Leaf>],
    map: &mut impl FnMut(&Leaf) -> Result<Mapped, Error>,
) -> Result<Vec<Tree<Mapped>>, Error> {
    // A loop instead of an iterator chain: branches nest deeply, and a chain takes many stack
    // frames.
    let mut mapped = Vec::with_capacity(branches.len());
    for branch in branches {
        mapped.push(branch.try_map(map)?);
    }
    Ok(mapped)
}
