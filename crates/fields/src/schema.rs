//! How values of a kind are merged.

use compact_str::CompactString;
use object::Value;

/// A type within a [`TypeSchema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId(u32);

/// The merge schema of one kind in one version: an arena of types that refer to each other, so that recursive types are
/// possible. It is built once and shared.
#[derive(Clone, Debug)]
pub struct TypeSchema {
    atoms: Vec<Atom>,
    root: TypeId,
    deduced: bool,
}

/// What a value may be. Several may be allowed at once; the value decides which one counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Atom {
    /// The scalar it may be.
    pub scalar: Option<Scalar>,
    /// The list it may be.
    pub list: Option<ListType>,
    /// The map or struct it may be.
    pub map: Option<MapType>,
}

/// A scalar type. `null` fits each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar {
    /// An integer or a float.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any scalar.
    Untyped,
}

/// A list type.
#[derive(Clone, Debug, PartialEq)]
pub struct ListType {
    /// The type of the items.
    pub element: TypeId,
    /// How two lists merge.
    pub kind: ListKind,
}

/// How two lists merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// As a whole.
    Atomic,
    /// By value.
    Set,
    /// By the values of these fields of the items.
    Map(Vec<CompactString>),
}

/// A map or struct type.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapType {
    /// The declared fields, in the order of their hashes: a lookup compares numbers, and one name at its end.
    fields: Vec<(u32, Field)>,
    /// The type of all other fields; `None` where there may be none.
    pub element: Option<TypeId>,
    /// Whether the map is owned and replaced as a whole.
    pub atomic: bool,
}

/// A declared field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: CompactString,
    /// Its type.
    pub ty: TypeId,
    /// Its default, which stands in for a list-map key that an item leaves out.
    pub default: Option<Value>,
}

impl MapType {
    /// A granular map of declared fields, and no others. Of a repeated name the first counts.
    pub fn of_fields(fields: impl IntoIterator<Item = Field>) -> Self {
        let mut map = MapType::default();
        fields.into_iter().for_each(|f| map.declare(f));
        map
    }

    /// A granular map of any fields, all of one type.
    pub fn of_elements(element: TypeId) -> Self {
        MapType { element: Some(element), ..MapType::default() }
    }

    /// Declares a field, unless its name is declared already.
    pub fn declare(&mut self, field: Field) {
        if self.field(&field.name).is_none() {
            let hash = hash(&field.name);
            let at = self.fields.partition_point(|(h, _)| *h <= hash);
            self.fields.insert(at, (hash, field));
        }
    }

    /// Takes a declaration away.
    pub fn undeclare(&mut self, name: &str) {
        self.fields.retain(|(_, f)| f.name != name);
    }

    /// The declared field of a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        let hash = hash(name);
        let from = self.fields.partition_point(|(h, _)| *h < hash);
        self.fields[from..].iter().take_while(|(h, _)| *h == hash).map(|(_, f)| f).find(|f| f.name == name)
    }

    /// How many fields are declared.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether no field is declared.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The type of what stands at a name, declared or not.
    pub fn type_of(&self, name: &str) -> Option<TypeId> {
        self.field(name).map(|f| f.ty).or(self.element)
    }
}

/// Of the length and the bytes at both ends, which tell nearly all names apart. Schemas come from administrators and have
/// few fields, so that nothing is gained by making names collide.
fn hash(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let ends = match (bytes.first_chunk(), bytes.last_chunk(), bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last), ..) => u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29),
        (_, _, Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ => bytes.iter().fold(0, |all, byte| all << 8 | u64::from(*byte)),
    };
    let mixed = (ends ^ bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32
}

impl TypeSchema {
    /// The schema of what has no schema: maps merge key by key, lists are atomic.
    pub fn deduced() -> Self {
        TypeSchema { deduced: true, ..SchemaBuilder::new().build(DEDUCED) }
    }

    /// The type of the object.
    pub fn root(&self) -> TypeId {
        self.root
    }

    /// What a type allows.
    pub fn atom(&self, ty: TypeId) -> &Atom {
        &self.atoms[ty.0 as usize]
    }

    /// Whether this is [`TypeSchema::deduced`]; such objects' sets are not brought in line with the schema.
    pub fn is_deduced(&self) -> bool {
        self.deduced
    }
}

/// Makes a [`TypeSchema`].
///
/// ```
/// use fields::schema::{Atom, MapType, SchemaBuilder, Scalar};
/// let mut b = SchemaBuilder::new();
/// let string = b.scalar(Scalar::String);
/// let labels = b.map(MapType::of_elements(string));
/// let root = b.structure([("labels", labels)]);
/// let schema = b.build(root);
/// assert!(schema.atom(schema.root()).map.is_some());
/// ```
#[derive(Clone, Debug)]
pub struct SchemaBuilder {
    atoms: Vec<Atom>,
}

const UNTYPED: TypeId = TypeId(0);
const DEDUCED: TypeId = TypeId(1);

impl Default for SchemaBuilder {
    fn default() -> Self {
        SchemaBuilder::new()
    }
}

impl SchemaBuilder {
    /// A builder that knows the two types of what is not described.
    pub fn new() -> Self {
        let any = |element, atomic| Atom {
            scalar: Some(Scalar::Untyped),
            list: Some(ListType { element: UNTYPED, kind: ListKind::Atomic }),
            map: Some(MapType { atomic, ..MapType::of_elements(element) }),
        };
        SchemaBuilder { atoms: vec![any(UNTYPED, true), any(DEDUCED, false)] }
    }

    /// Anything, owned as a whole.
    pub fn untyped(&self) -> TypeId {
        UNTYPED
    }

    /// Anything: maps merge key by key, lists are atomic.
    pub fn deduced(&self) -> TypeId {
        DEDUCED
    }

    /// A type that is described later by [`SchemaBuilder::define`]; until then it allows anything.
    pub fn reserve(&mut self) -> TypeId {
        let atom = self.atoms[DEDUCED.0 as usize].clone();
        self.add(atom)
    }

    /// Describes a reserved type.
    pub fn define(&mut self, ty: TypeId, atom: Atom) {
        self.atoms[ty.0 as usize] = atom;
    }

    /// Adds a type.
    pub fn add(&mut self, atom: Atom) -> TypeId {
        let ty = TypeId(u32::try_from(self.atoms.len()).unwrap_or(u32::MAX));
        self.atoms.push(Atom::default());
        self.define(ty, atom);
        ty
    }

    /// Adds a scalar type.
    pub fn scalar(&mut self, scalar: Scalar) -> TypeId {
        self.add(Atom { scalar: Some(scalar), ..Atom::default() })
    }

    /// Adds a list type.
    pub fn list(&mut self, element: TypeId, kind: ListKind) -> TypeId {
        self.add(Atom { list: Some(ListType { element, kind }), ..Atom::default() })
    }

    /// Adds a map type.
    pub fn map(&mut self, map: MapType) -> TypeId {
        self.add(Atom { map: Some(map), ..Atom::default() })
    }

    /// Adds a granular struct of declared fields without defaults.
    pub fn structure<'n>(&mut self, fields: impl IntoIterator<Item = (&'n str, TypeId)>) -> TypeId {
        let fields = fields.into_iter().map(|(name, ty)| Field { name: name.into(), ty, default: None });
        self.map(MapType::of_fields(fields))
    }

    /// The type of `metadata` (`ObjectMeta`).
    pub fn object_meta(&mut self) -> TypeId {
        let string = self.scalar(Scalar::String);
        let number = self.scalar(Scalar::Numeric);
        let time = self.scalar(Scalar::Untyped);
        let flag = self.scalar(Scalar::Boolean);
        let strings = self.map(MapType::of_elements(string));
        let finalizers = self.list(string, ListKind::Set);
        let owner = [
            ("apiVersion", string),
            ("blockOwnerDeletion", flag),
            ("controller", flag),
            ("kind", string),
            ("name", string),
            ("uid", string),
        ];
        let owner = self.structure(owner);
        if let Some(map) = &mut self.atoms[owner.0 as usize].map {
            map.atomic = true;
        }
        let owners = self.list(owner, ListKind::Map(vec!["uid".into()]));
        let entry = [
            ("apiVersion", string),
            ("fieldsType", string),
            ("fieldsV1", DEDUCED),
            ("manager", string),
            ("operation", string),
            ("subresource", string),
            ("time", time),
        ];
        let entry = self.structure(entry);
        let entries = self.list(entry, ListKind::Atomic);
        self.structure([
            ("annotations", strings),
            ("creationTimestamp", time),
            ("deletionGracePeriodSeconds", number),
            ("deletionTimestamp", time),
            ("finalizers", finalizers),
            ("generateName", string),
            ("generation", number),
            ("labels", strings),
            ("managedFields", entries),
            ("name", string),
            ("namespace", string),
            ("ownerReferences", owners),
            ("resourceVersion", string),
            ("selfLink", string),
            ("uid", string),
        ])
    }

    /// The schema whose objects are of type `root`.
    pub fn build(self, root: TypeId) -> TypeSchema {
        TypeSchema { atoms: self.atoms, root, deduced: false }
    }
}
