//! What built-in types say about strategic merge patches, from their published definitions.

use kinds::definitions::{self, Definition, Type};
use patch::strategic::{Error, Member, Schema, Shape};

/// A type within a built-in kind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    /// A structure.
    Structure(&'static Definition),
    /// Anything else.
    Other(&'static definitions::Schema),
}

impl Node {
    /// The type of a field, or of its items.
    fn of(schema: &'static definitions::Schema) -> Self {
        match schema.ty.definition() {
            Some(definition) if matches!(definition.schema.ty, Type::Object) => Node::Structure(definition),
            Some(definition) => Node::Other(&definition.schema),
            None => Node::Other(schema),
        }
    }
}

impl Schema for Node {
    fn member(&self, name: &str, shape: Shape) -> Result<Member<Self>, Error> {
        let definition = match self {
            Node::Structure(definition) => *definition,
            // The values of a map are all alike.
            Node::Other(definitions::Schema { ty: Type::Map(item), .. }) if shape == Shape::Object => {
                return Ok(Member { schema: Node::of(item), strategy: String::new(), merge_key: String::new() });
            }
            Node::Other(_) => return Err(Error::not_a_struct(self.go_kind())),
        };
        let field = definition.field(name).ok_or_else(|| Error::unknown_field(definition.type_name(), name))?;
        let schema = match (&field.schema.ty, shape) {
            (Type::List(item), _) => Node::of(item),
            (_, Shape::List) => return Err(Error::not_a_list(Node::of(&field.schema).go_kind())),
            (_, Shape::Object) => Node::of(&field.schema),
        };
        if let (Node::Other(definitions::Schema { ty: Type::List(_), .. }), Shape::List) = (schema, shape) {
            return Err(Error::list_of_lists());
        }
        let (strategy, merge_key) = (field.schema.patch_strategy.to_owned(), field.schema.patch_merge_key.to_owned());
        Ok(Member { schema, strategy, merge_key })
    }

    fn go_kind(&self) -> &str {
        match self {
            Node::Structure(_) => "struct",
            Node::Other(schema) => match schema.ty {
                Type::Map(_) | Type::Object => "map",
                Type::List(_) | Type::Bytes => "slice",
                Type::Int32 => "int32",
                Type::Int64 => "int64",
                Type::Bool => "bool",
                Type::Double => "float64",
                Type::Any | Type::DateTime | Type::IntOrString | Type::Quantity | Type::Ref(_) => "struct",
                Type::String => "string",
            },
        }
    }
}
