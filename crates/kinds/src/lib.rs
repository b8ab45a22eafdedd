//! The catalogue of built-in kinds: names, scope, schema, list keys, defaults, checks, table columns.
