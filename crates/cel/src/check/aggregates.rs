//! List, map and message literals, and comprehensions.

use crate::ast::{Comprehension, ExprId, ListExpr, MapEntry, StructExpr};
use crate::checked::Reference;
use crate::types::{Kind, Type};

use super::unify::most_general;
use super::{Checker, is_well_known, undeclared};

impl Checker<'_> {
    pub(super) fn check_list(&mut self, id: ExprId, list: &mut ListExpr) {
        let mut joined = None;
        let mut optional = list.optional.iter().peekable();
        for (i, element) in list.elements.iter_mut().enumerate() {
            self.check(element);
            let mut ty = self.type_of(element.id).clone();
            if optional.next_if(|at| **at as usize == i).is_some() {
                ty = self.optional_value(element.id, ty);
            }
            joined = Some(self.join(joined, ty));
        }
        let element = joined.unwrap_or_else(|| self.unifier.fresh());
        self.set_type(id, Type::list(element));
    }

    pub(super) fn check_map(&mut self, id: ExprId, entries: &mut [MapEntry]) {
        let mut joined = None;
        for entry in entries {
            let (key, value) = joined.unzip();
            self.check(&mut entry.key);
            let key = self.join(key, self.type_of(entry.key.id).clone());
            self.check(&mut entry.value);
            let mut ty = self.type_of(entry.value.id).clone();
            if entry.optional {
                ty = self.optional_value(entry.value.id, ty);
            }
            joined = Some((key, self.join(value, ty)));
        }
        let (key, value) = match joined {
            Some(types) => types,
            None => (self.unifier.fresh(), self.unifier.fresh()),
        };
        self.set_type(id, Type::map(key, value));
    }

    pub(super) fn check_struct(&mut self, id: ExprId, message: &mut StructExpr) {
        let Some(ident) = self.lookup_ident(&message.type_name) else {
            self.errors.push((id, undeclared(&message.type_name)));
            self.set_type(id, Type::Error);
            return;
        };
        let mut object = ident.name.clone();
        message.type_name = ident.name.clone();
        self.set_reference(id, Reference::Ident { name: ident.name, value: None });
        let mut result = Type::Error;
        match &ident.ty {
            Type::Error => {}
            Type::Type(of) => {
                let of = of.as_deref().cloned().unwrap_or(Type::Type(None));
                if let Some(name) = is_well_known(&of) {
                    object = name.into();
                    result = of;
                } else if let Type::Object(name) = &of {
                    object = name.clone();
                    result = of;
                } else {
                    self.errors.push((id, format!("'{}' is not a message type", of.runtime_name())));
                }
            }
            other => {
                let name = match other {
                    Type::Wrapper(_) => other.to_string(),
                    _ => other.runtime_name().to_owned(),
                };
                self.errors.push((id, format!("'{name}' is not a type")));
            }
        }
        self.set_type(id, result);

        for field in &mut message.fields {
            self.check(&mut field.value);
            let expected = self.lookup_field(field.id, &object, &field.name).unwrap_or(Type::Error);
            let mut actual = self.type_of(field.value.id).clone();
            if field.optional {
                actual = self.optional_value(field.value.id, actual);
            }
            if !self.unifier.assignable(&expected, &actual) {
                let message =
                    format!("expected type of field '{}' is '{expected}' but provided type is '{actual}'", field.name);
                self.errors.push((field.id, message));
            }
        }
    }

    pub(super) fn check_comprehension(&mut self, id: ExprId, fold: &mut Comprehension) {
        self.check(&mut fold.range);
        self.check(&mut fold.accu_init);
        let range = self.unifier.substitute(self.type_of(fold.range.id), false);
        let accu = self.type_of(fold.accu_init.id).clone();
        let outer = self.scope.len();
        self.scope.push((fold.accu_var.clone(), accu.clone()));

        let (first, second) = match &range {
            Type::List(element) if fold.iter_var2.is_some() => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(entry) => entry.as_ref().clone(),
            _ if matches!(range.kind(), Kind::Dyn | Kind::Error | Kind::Param) => {
                // The variable is dyn from here on, so that nothing narrower is assigned to it later.
                self.unifier.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.errors.push((fold.range.id, message));
                (Type::Error, Type::Error)
            }
        };
        let block = self.scope.len();
        self.scope.push((fold.iter_var.clone(), first));
        if let Some(name) = &fold.iter_var2 {
            self.scope.push((name.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert_type(fold.condition.id, &Type::Bool);
        self.check(&mut fold.step);
        self.assert_type(fold.step.id, &accu);
        self.scope.truncate(block);

        self.check(&mut fold.result);
        self.scope.truncate(outer);
        let ty = self.unifier.substitute(self.type_of(fold.result.id), false);
        self.set_type(id, ty);
    }

    /// The value's type of an element, entry or field written with `?`, which must be optional.
    fn optional_value(&mut self, id: ExprId, ty: Type) -> Type {
        if let Some(value) = ty.optional_value() {
            return value.clone();
        }
        if !ty.is_dyn() {
            self.mismatch(id, &Type::optional(ty.clone()), &ty);
        }
        ty
    }

    /// The type that covers both; dyn when they differ, which a validator may forbid later.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.unifier.assignable(&previous, &current) { most_general(previous, current) } else { Type::Dyn }
    }
}
