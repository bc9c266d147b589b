//! What the parser yields: the structure of the text, with names and placeholders still unresolved.

use crate::operator::{Operator, Section};

/// A boolean tree over leaves, which are text slices after parsing and resolved operands after binding.
#[derive(Debug)]
pub(crate) enum Tree<Leaf> {
    And(Vec<Tree<Leaf>>),
    Or(Vec<Tree<Leaf>>),
    Not(Box<Tree<Leaf>>),
    Leaf(Leaf),
}

#[derive(Debug)]
pub(crate) enum RawLeaf<'t> {
    /// A comparison, BETWEEN or IN.
    Operation {
        operator: Operator,
        operands: Vec<RawOperand<'t>>,
    },
    Call(RawCall<'t>),
}

#[derive(Debug)]
pub(crate) enum RawOperand<'t> {
    Path(RawPath<'t>),
    /// `:value`, with its prefix.
    Value(&'t str),
    Call(RawCall<'t>),
}

#[derive(Debug)]
pub(crate) struct RawCall<'t> {
    pub function: &'t str,
    pub arguments: Vec<RawOperand<'t>>,
}

/// Like a bound path: most have a root alone.
#[derive(Debug)]
pub(crate) struct RawPath<'t> {
    pub root: RawName<'t>,
    pub below: Vec<RawElement<'t>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RawElement<'t> {
    Name(RawName<'t>),
    /// The digits.
    Index(&'t str),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum RawName<'t> {
    Word(&'t str),
    /// `#name`, with its prefix.
    Placeholder(&'t str),
}

/// The sections and all their actions, both in the order of the text.
#[derive(Debug)]
pub(crate) struct RawUpdate<'t> {
    pub sections: Vec<Section>,
    pub actions: Vec<RawAction<'t>>,
}

#[derive(Debug)]
pub(crate) struct RawAction<'t> {
    pub section: Section,
    pub path: RawPath<'t>,
    pub value: RawActionValue<'t>,
}

#[derive(Debug)]
pub(crate) enum RawActionValue<'t> {
    /// REMOVE has none.
    None,
    /// ADD and DELETE take a `:value`.
    Value(&'t str),
    Operand(RawOperand<'t>),
    Arithmetic {
        operator: Operator,
        left: RawOperand<'t>,
        right: RawOperand<'t>,
    },
}

impl<'t> RawLeaf<'t> {
    pub fn operands(&self) -> &[RawOperand<'t>] {
        match self {
            RawLeaf::Operation { operands, .. } => operands,
            RawLeaf::Call(call) => &call.arguments,
        }
    }
}

impl<'t> RawPath<'t> {
    pub fn names(&self) -> impl Iterator<Item = RawName<'t>> + use<'_, 't> {
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

    /// Replaces the leaves from left to right and stops at the first error.
    pub fn try_map<Mapped, Error>(
        self,
        map: &mut impl FnMut(Leaf) -> Result<Mapped, Error>,
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
    branches: Vec<Tree<Leaf>>,
    map: &mut impl FnMut(Leaf) -> Result<Mapped, Error>,
) -> Result<Vec<Tree<Mapped>>, Error> {
    // A loop and not an iterator chain, since branches nest deeply and a chain takes many frames.
    let mut mapped = Vec::with_capacity(branches.len());
    for branch in branches {
        mapped.push(branch.try_map(map)?);
    }
    Ok(mapped)
}
