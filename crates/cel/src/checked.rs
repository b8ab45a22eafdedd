//! A checked expression: the tree with a type for every node and what every name and call resolved to.

use std::sync::Arc;

use crate::ast::{Ast, Expr, ExprId, Literal};
use crate::env::OverloadDecl;
use crate::types::Type;

/// What a name or a call resolved to.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable, a type, or (with a value) a constant, by its qualified name.
    Ident {
        /// The qualified name.
        name: Arc<str>,
        /// The value, of a constant.
        value: Option<Literal>,
    },
    /// The one overload that fits.
    Overload(Arc<OverloadDecl>),
    /// The overloads that may fit once the types are known.
    Overloads(Vec<Arc<OverloadDecl>>),
}

impl Reference {
    /// The overloads of a call; empty for names.
    pub fn overloads(&self) -> &[Arc<OverloadDecl>] {
        match self {
            Reference::Ident { .. } => &[],
            Reference::Overload(overload) => std::slice::from_ref(overload),
            Reference::Overloads(overloads) => overloads,
        }
    }
}

/// An expression that type-checks.
///
/// In its tree qualified names are single [`crate::ast::ExprKind::Ident`]s, and calls of qualified functions
/// have no receiver.
#[derive(Clone, Debug)]
pub struct CheckedAst {
    /// The tree, as rewritten by the checker.
    pub ast: Ast,
    /// By id.
    pub(crate) types: Vec<Option<Type>>,
    /// By id.
    pub(crate) references: Vec<Option<Reference>>,
}

impl CheckedAst {
    /// The type of the whole.
    pub fn result_type(&self) -> &Type {
        self.type_of(self.ast.expr.id)
    }

    /// The type of a node; dyn for a node the checker did not visit, such as the qualifier of a function's name.
    pub fn type_of(&self, id: ExprId) -> &Type {
        self.types.get(id as usize).and_then(Option::as_ref).unwrap_or(&Type::Dyn)
    }

    /// What a node refers to.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id as usize).and_then(Option::as_ref)
    }

    /// The overloads a call may be of, at least one for a call.
    pub fn overloads(&self, id: ExprId) -> &[Arc<OverloadDecl>] {
        self.reference(id).map(Reference::overloads).unwrap_or_default()
    }

    /// Whether a variable of the given name occurs anywhere in the expression.
    pub fn mentions(&self, variable: &str) -> bool {
        self.references
            .iter()
            .flatten()
            .any(|reference| matches!(reference, Reference::Ident { name, .. } if &**name == variable))
    }

    /// The root of the tree.
    pub fn expr(&self) -> &Expr {
        &self.ast.expr
    }
}
