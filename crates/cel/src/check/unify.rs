//! Assignability of types, with free type variables bound on the way.

use crate::types::{Kind, Type};

/// The bindings of the free type variables of one check.
#[derive(Default)]
pub(super) struct Unifier {
    bindings: Vec<Option<Type>>,
    trail: Vec<(u32, Option<Type>)>,
}

impl Unifier {
    /// A new variable, not bound.
    pub(super) fn fresh(&mut self) -> Type {
        let number = self.reserve(1);
        Type::Var(number)
    }

    /// The number of the first of `count` new variables.
    pub(super) fn reserve(&mut self, count: usize) -> u32 {
        let first = self.bindings.len();
        self.bindings.resize(first + count, None);
        u32::try_from(first).unwrap_or(u32::MAX)
    }

    /// Whether a value of `from` may stand where one of `to` is expected; bindings are kept only if so.
    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.trail.clear();
        let holds = self.assign(from, to);
        self.settle(holds)
    }

    /// [`Unifier::assignable`] for all pairs; different lengths never are.
    pub(super) fn all_assignable(&mut self, from: &[Type], to: &[Type]) -> bool {
        self.trail.clear();
        let holds = self.assign_all(from, to);
        self.settle(holds)
    }

    /// The type with every bound variable replaced by what it stands for, and with `to_dyn` every other by dyn.
    pub(super) fn substitute(&self, ty: &Type, to_dyn: bool) -> Type {
        match ty {
            Type::Var(number) => match self.binding(*number) {
                Some(bound) => self.substitute(bound, to_dyn),
                None if to_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::Param(_) if to_dyn => Type::Dyn,
            _ if !has_variables(ty) => ty.clone(),
            Type::List(element) => Type::list(self.substitute(element, to_dyn)),
            Type::Map(entry) => Type::map(self.substitute(&entry.0, to_dyn), self.substitute(&entry.1, to_dyn)),
            Type::Opaque(opaque) => Type::opaque(
                opaque.name.clone(),
                opaque.params.iter().map(|param| self.substitute(param, to_dyn)).collect(),
            ),
            Type::Type(Some(of)) => Type::type_of(self.substitute(of, to_dyn)),
            _ => ty.clone(),
        }
    }

    fn settle(&mut self, holds: bool) -> bool {
        if !holds {
            while let Some((number, old)) = self.trail.pop() {
                if let Some(binding) = self.bindings.get_mut(number as usize) {
                    *binding = old;
                }
            }
        }
        holds
    }

    fn binding(&self, number: u32) -> Option<&Type> {
        self.bindings.get(number as usize)?.as_ref()
    }

    fn bind(&mut self, number: u32, to: Type) {
        if let Some(binding) = self.bindings.get_mut(number as usize) {
            self.trail.push((number, binding.replace(to)));
        }
    }

    fn assign(&mut self, from: &Type, to: &Type) -> bool {
        if to.kind() == Kind::Param {
            let (valid, bound) = self.substitutes(from, to);
            if valid || bound {
                return valid;
            }
        }
        if from.kind() == Kind::Param {
            return self.substitutes(to, from).0;
        }
        if from.is_dyn_or_error() || to.is_dyn_or_error() {
            return true;
        }
        if matches!(from, Type::Null) {
            return is_nullable(to);
        }
        if matches!(to, Type::Null) {
            return is_nullable(from);
        }
        match (from, to) {
            (Type::List(from), Type::List(to)) => self.assign(from, to),
            (Type::Map(from), Type::Map(to)) => self.assign(&from.0, &to.0) && self.assign(&from.1, &to.1),
            (Type::Opaque(from), Type::Opaque(to)) => from.name == to.name && self.assign_all(&from.params, &to.params),
            (Type::Object(from), Type::Object(to)) => from == to,
            // All types of types are alike: their parameter plays no part in choosing an overload.
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(_) | Type::Map(_) | Type::Opaque(_) | Type::Object(_) | Type::Type(_), _) => false,
            _ => from.kind() == to.kind(),
        }
    }

    fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.assign(from, to))
    }

    /// Whether the parameter may stand for the type, and whether it is bound (or the same) already.
    fn substitutes(&mut self, ty: &Type, param: &Type) -> (bool, bool) {
        if ty.kind() == Kind::Param && ty == param {
            return (true, true);
        }
        let Type::Var(number) = param else { return (true, false) };
        let Some(bound) = self.binding(*number).cloned() else {
            let free = self.not_within(param, ty);
            if free {
                self.bind(*number, ty.clone());
            }
            return (free, false);
        };
        if ty.kind() == bound.kind() && *ty == bound {
            return (true, true);
        }
        if !self.assign(ty, &bound) {
            return (false, true);
        }
        let general = if is_equal_or_less_specific(ty, &bound) { ty.clone() } else { bound };
        if self.not_within(param, &general) {
            self.bind(*number, general);
        }
        (true, true)
    }

    /// The occurs check.
    fn not_within(&self, param: &Type, ty: &Type) -> bool {
        if param == ty {
            return false;
        }
        match ty {
            Type::Var(number) => self.binding(*number).is_none_or(|bound| self.not_within(param, bound)),
            Type::List(element) => self.not_within(param, element),
            Type::Map(entry) => self.not_within(param, &entry.0) && self.not_within(param, &entry.1),
            Type::Opaque(opaque) => opaque.params.iter().all(|inner| self.not_within(param, inner)),
            _ => true,
        }
    }
}

/// The more general of two types known to unify.
pub(super) fn most_general(a: Type, b: Type) -> Type {
    if is_equal_or_less_specific(&a, &b) { a } else { b }
}

/// The type with the declared parameters replaced by variables numbered from `first`.
pub(super) fn instantiate(ty: &Type, params: &[std::sync::Arc<str>], first: u32) -> Type {
    match ty {
        Type::Param(name) => match params.iter().position(|param| param == name) {
            Some(at) => Type::Var(first.saturating_add(u32::try_from(at).unwrap_or(u32::MAX))),
            None => ty.clone(),
        },
        Type::List(element) => Type::list(instantiate(element, params, first)),
        Type::Map(entry) => Type::map(instantiate(&entry.0, params, first), instantiate(&entry.1, params, first)),
        Type::Opaque(opaque) if !opaque.params.is_empty() => Type::opaque(
            opaque.name.clone(),
            opaque.params.iter().map(|param| instantiate(param, params, first)).collect(),
        ),
        Type::Type(Some(of)) => Type::type_of(instantiate(of, params, first)),
        _ => ty.clone(),
    }
}

fn has_variables(ty: &Type) -> bool {
    match ty {
        Type::Var(_) | Type::Param(_) => true,
        Type::List(element) => has_variables(element),
        Type::Map(entry) => has_variables(&entry.0) || has_variables(&entry.1),
        Type::Opaque(opaque) => opaque.params.iter().any(has_variables),
        Type::Type(Some(of)) => has_variables(of),
        _ => false,
    }
}

/// Whether null may stand for a value of the type. Opaque types are among them for compatibility with cel-go's
/// first checker.
fn is_nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null
            | Type::Wrapper(_)
            | Type::Opaque(_)
            | Type::Object(_)
            | Type::Any
            | Type::Duration
            | Type::Timestamp
    )
}

fn is_equal_or_less_specific(a: &Type, b: &Type) -> bool {
    if a.is_dyn() || a.kind() == Kind::Param {
        return true;
    }
    if b.is_dyn() || b.kind() == Kind::Param {
        return false;
    }
    match (a, b) {
        (Type::Opaque(a), Type::Opaque(b)) => {
            a.name == b.name
                && a.params.len() == b.params.len()
                && a.params.iter().zip(&b.params).all(|(a, b)| is_equal_or_less_specific(a, b))
        }
        (Type::List(a), Type::List(b)) => is_equal_or_less_specific(a, b),
        (Type::Map(a), Type::Map(b)) => is_equal_or_less_specific(&a.0, &b.0) && is_equal_or_less_specific(&a.1, &b.1),
        (Type::Type(_), Type::Type(_)) => true,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Primitive;

    #[test]
    fn null_goes_with_messages_wrappers_and_times_only() {
        let mut unifier = Unifier::default();
        for (ty, expected) in [
            (Type::object("o"), true),
            (Type::optional(Type::Int), true),
            (Type::Timestamp, true),
            (Type::Wrapper(Primitive::Int), true),
            (Type::Dyn, true),
            (Type::Int, false),
            (Type::list(Type::Int), false),
        ] {
            assert_eq!(unifier.assignable(&Type::Null, &ty), expected, "{ty}");
            assert_eq!(unifier.assignable(&ty, &Type::Null), expected, "{ty}");
        }
    }

    #[test]
    fn a_variable_widens_to_dyn_and_keeps_its_binding_after_a_failure() {
        let mut unifier = Unifier::default();
        let var = unifier.fresh();
        assert!(unifier.all_assignable(&[Type::Int, Type::Int], &[var.clone(), var.clone()]));
        assert!(!unifier.assignable(&Type::String, &var));
        assert_eq!(unifier.substitute(&var, true), Type::Int);
        assert!(unifier.assignable(&Type::Dyn, &var));
        assert_eq!(unifier.substitute(&Type::list(var), true), Type::list(Type::Dyn));
    }

    #[test]
    fn a_variable_is_never_bound_to_a_type_that_contains_it() {
        let mut unifier = Unifier::default();
        let var = unifier.fresh();
        assert!(!unifier.assignable(&Type::list(var.clone()), &var));
        assert_eq!(unifier.substitute(&var, true), Type::Dyn);
    }
}
